package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"maps"
)

// Static is a [Provider] that wraps data keys with keys in this process's memory. Use it for
// tests, for DynamoDB Local, and for programs that get a key from a secret store.
type Static struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewStatic returns a provider with your own keys. The map keys holds your keys by
// their names. Each key has 32 random bytes. The parameter current is the name of the
// key that wraps new data keys. Every key opens the data keys that it has wrapped. To
// rotate the keys, add a key and pass its name as current. Remove an old key when the
// last record whose data key it wrapped has expired. NewStatic copies the keys.
func NewStatic(current string, keys map[string][]byte) (*Static, error) {
	if len(keys[current]) == 0 || current == "" {
		return nil, fmt.Errorf("seal: NewStatic: there is no key %q", current)
	}
	s := &Static{current: current, keys: make(map[string]cipher.AEAD, len(keys))}
	for name, key := range maps.All(keys) {
		if len(key) != keySize {
			return nil, fmt.Errorf("seal: NewStatic: key %q has %d bytes, want %d", name, len(key), keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if s.keys[name], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Generate implements [Provider]. It never fails.
func (s *Static) Generate(context.Context) (DataKey, error) {
	plain := make([]byte, keySize)
	_, _ = rand.Read(plain)                                                    // never fails
	wrapped := s.keys[s.current].Seal(nil, nil, plain, wrapContext(s.current)) //nolint:gosec // the AEAD draws the nonce
	return DataKey{KeyID: s.current, Plain: plain, Wrapped: wrapped}, nil
}

// Open implements [Provider]. If no key has the name keyID, the error doesn't match [ErrInvalid],
// because the key may exist elsewhere.
func (s *Static) Open(_ context.Context, keyID string, wrapped []byte) ([]byte, error) {
	key, ok := s.keys[keyID]
	if !ok {
		return nil, fmt.Errorf("seal: there is no key %q", keyID)
	}
	plain, err := key.Open(nil, nil, wrapped, wrapContext(keyID))
	if err != nil {
		return nil, fmt.Errorf("seal: %w: a data key of %q", ErrInvalid, keyID)
	}
	return plain, nil
}

func wrapContext(keyID string) []byte { return Context("samekey data key", keyID) }
