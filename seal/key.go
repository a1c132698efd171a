package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Algorithm is the name by which records identify the encryption, AES-256-GCM. A sealed
// part is a random nonce of 12 bytes, the ciphertext, and a tag of 16 bytes.
const Algorithm = "A256GCM"

// overhead is the number of bytes that sealing adds.
const overhead = 12 + 16

const (
	keySize    = 32
	maxWrapped = 1 << 10
)

// Key is a data key in use. It is safe for concurrent use.
type Key struct {
	id      string
	wrapped []byte
	aead    cipher.AEAD
	made    time.Time
	used    atomic.Int64 // parts of records that this process has sealed
}

// newKey returns the key for data, and overwrites data.Plain. Afterwards only the cipher holds
// the plain key, until the garbage collector frees the Key with its cipher.
func newKey(data DataKey, now time.Time) (*Key, error) {
	defer clear(data.Plain)
	switch {
	case len(data.Plain) != keySize:
		return nil, fmt.Errorf("seal: a data key has %d bytes, want %d", len(data.Plain), keySize)
	case data.KeyID == "" || len(data.Wrapped) == 0 || len(data.Wrapped) > maxWrapped:
		return nil, fmt.Errorf("seal: a data key of %q has a wrapped form of %d bytes", data.KeyID, len(data.Wrapped))
	}
	block, err := aes.NewCipher(data.Plain)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Key{id: data.KeyID, wrapped: data.Wrapped, aead: aead, made: now}, nil
}

// ID returns the name of the provider's key that wraps this key.
func (k *Key) ID() string { return k.id }

// Wrapped returns the wrapped form of the key, which a record stores. Callers must not change the
// bytes.
func (k *Key) Wrapped() []byte { return k.wrapped }

// Seal encrypts the bytes of plain, and binds the result to the context: Open returns the bytes
// only with an equal context. The result is 28 bytes longer than plain. Each call returns a
// different result, even for equal arguments.
func (k *Key) Seal(plain, context []byte) []byte {
	k.used.Add(1)
	return k.aead.Seal(make([]byte, 0, len(plain)+overhead), nil, plain, context) //nolint:gosec // the AEAD draws the nonce
}

// Open returns the data that Seal has encrypted with this key and context. For any other input Open
// returns an error that matches [ErrInvalid].
func (k *Key) Open(sealed, context []byte) ([]byte, error) {
	plain, err := k.aead.Open(nil, nil, sealed, context)
	if err != nil {
		return nil, errors.Join(ErrInvalid, err)
	}
	return plain, nil
}

// Context makes a context of the parts, for [Key.Seal] and [Key.Open]. Different lists of parts
// never make equal contexts.
func Context(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + binary.MaxVarintLen32
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}
