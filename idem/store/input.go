package store

import (
	"crypto/sha256"
	"net/http"
	"slices"
)

// Input is a request as a record stores the request, to run it again without its
// client: without the key, and only with the headers of
// idem.Options.InputHeaders.
type Input struct {
	Method   string
	Path     string
	Query    string
	Header   http.Header
	Identity Identity
	Snapshot []byte // the adapter's snapshot for its event
	Body     []byte
	Overflow *Overflow // set if Body is outside of the record
}

func (in *Input) clone() *Input {
	c := *in
	c.Header, c.Snapshot, c.Body = in.Header.Clone(), slices.Clone(in.Snapshot), slices.Clone(in.Body)
	if in.Overflow != nil {
		o := *in.Overflow
		c.Overflow = &o
	}
	return &c
}

// Identity is a request's sender, as verified in front of the handler (by an
// authorizer or IAM), never as claimed by the client. The zero Identity means no
// known sender.
type Identity struct {
	// Kind is the kind of verifier: "jwt", "iam", "lambda", or an adapter's own.
	// "program", "source", "one", "tenant" and "operation" are refused, and so is a
	// Kind with ":" or "|".
	Kind string
	// Subject is unique within Kind. If two issuers can give the same Subject, it contains
	// the issuer's name. An empty Subject with a Kind means that an authorizer answered
	// without naming a subject. Such a request is refused (idem.ErrScope), unless
	// idem.Options.Scope finds a scope.
	Subject string
}

// Overflow describes a body that is too large for its record. Companions are
// items that hold the body.
type Overflow struct {
	Owner  string            // nonce in the companions' keys
	First  int64             // number of the first companion
	Count  int               // number of companions; 0 = the body was not kept
	Length int               // length of the body in bytes
	Zipped bool              // the companions hold the compressed body
	SHA256 [sha256.Size]byte // hash of the body
	Sealed bool              // the companions are encrypted

	// Missing is how many of the last companions are not yet written. A store sets
	// Missing in a record that it was given; a stored record never contains Missing.
	Missing int
}
