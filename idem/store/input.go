package store

import (
	"crypto/sha256"
	"net/http"
	"slices"
)

// Input is a request as a record keeps it, to run it again without its client:
// without the key, and with the headers of idem.Options.InputHeaders only.
type Input struct {
	Method   string
	Path     string
	Query    string
	Route    string
	Header   http.Header
	Identity Identity
	Snapshot []byte // the adapter's, for its event
	Body     []byte
	Overflow *Overflow // set when Body is not in the record itself
}

func (in *Input) clone() *Input {
	if in == nil {
		return nil
	}
	c := *in
	c.Header, c.Snapshot, c.Body = in.Header.Clone(), slices.Clone(in.Snapshot), slices.Clone(in.Body)
	if in.Overflow != nil {
		o := *in.Overflow
		c.Overflow = &o
	}
	return &c
}

// MaxStoredRequest is the most bytes that the body of an [Input] has.
const MaxStoredRequest = 10 << 20

// Identity is who sent a request, as verified by what stands before the
// handler (an authorizer, IAM), never as the client says. The zero Identity is
// nobody.
type Identity struct {
	// Kind says who vouches for it: "jwt", "iam", "cognito", "lambda", "apikey".
	Kind string
	// Subject is unique within Kind. Empty with a Kind means that an
	// authorizer did answer, but named nobody: such a request is refused
	// (idem.ErrScope), unless idem.Options.Scope knows better.
	Subject string
}

// Overflow describes a body that is too large for its record.
type Overflow struct {
	Owner  string            // nonce in the companions' keys
	First  int64             // number of the first companion
	Count  int               // how many there are; 0 = the body was not kept
	Length int               // bytes of the body
	Gzip   bool              // the companions hold it compressed
	SHA256 [sha256.Size]byte // of the body

	// Missing is how many of the last companions are still to be written. It is the
	// store's own note, in a record that it was handed; in none that is stored.
	Missing int
}
