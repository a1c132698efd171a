package seal

import (
	"context"
	"errors"
)

// Provider makes data keys, and opens wrapped data keys that the same provider made. It is safe
// for concurrent use. Methods return promptly when ctx ends.
type Provider interface {
	// Generate returns a new data key. An error means that the provider can't make a data key at
	// the moment.
	Generate(ctx context.Context) (DataKey, error)
	// Open returns the plain data key. The argument wrapped is the data key's wrapped
	// form, and keyID is its KeyID. Both come from a record, which somebody may have
	// altered. If the provider has the key keyID, but did not make wrapped with that
	// key, Open returns an error that matches [ErrInvalid]. Any other error means that
	// the provider can't open the data key at the moment, or never can, for instance
	// because the provider doesn't have the key keyID.
	Open(ctx context.Context, keyID string, wrapped []byte) ([]byte, error)
}

// DataKey is a key that encrypts the contents of records.
type DataKey struct {
	KeyID   string // name of the provider's key that wraps this data key
	Plain   []byte // 32 random bytes; the Sealer overwrites them after use
	Wrapped []byte // Plain, encrypted by the provider; at most 1 KiB
}

// Errors of this package. Compare with errors.Is.
var (
	// ErrInvalid means that sealed bytes, or a wrapped key, were altered, truncated, or moved
	// from another place.
	ErrInvalid = errors.New("sealed data is not as it was made")
	// ErrNoKey means that a data key is unavailable: its provider refuses or is unreachable, or
	// the program has no provider.
	ErrNoKey = errors.New("data key can't be had")
)
