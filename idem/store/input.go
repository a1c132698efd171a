package store

import (
	"crypto/sha256"
	"net/http"
	"slices"
)

// Input is a stored request, with which a completer can run the operation without the
// client. Input doesn't contain the key's header. Of the request's headers, Input
// contains only Content-Type, those that idem.Options.InputHeaders names, and the host if
// the route's pattern names one.
type Input struct {
	Method   string
	Path     string
	Query    string
	Header   http.Header
	Identity Identity
	Snapshot []byte // idem.Request.Snapshot, made by the adapter
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

// Identity is the sender of a request, as an authorizer or IAM has verified it before
// the handler ran. What the client merely says about itself is never an Identity. The
// zero Identity means that the sender is unknown.
type Identity struct {
	// Kind is the kind of verifier: "jwt", "iam", "lambda", or a name of the adapter's own.
	// The engine refuses the Kinds "program", "source", "one", "tenant" and "operation",
	// and any Kind that contains ":" or "|".
	Kind string
	// Subject is the sender's name, unique within Kind. If two issuers can give the
	// same name, Subject must contain the issuer's name, too. If Kind is set and
	// Subject is empty, the verifier has let the request pass without naming a subject.
	// Such a request is refused (idem.ErrScope), unless idem.Options.Scope, or the
	// request's own Scope or Source, names the caller.
	Subject string
}

// Overflow describes a body that isn't in its record. The body is too large and is stored
// in other items, the companions; or it is not stored (Count is 0).
type Overflow struct {
	Owner  string            // nonce in the companions' keys
	First  int64             // number of the first companion
	Count  int               // number of companions; 0 = the body was not stored
	Length int               // length of the body in bytes
	Zipped bool              // the companions hold the compressed body
	SHA256 [sha256.Size]byte // hash of the body
	Sealed bool              // the companions are encrypted

	// Missing is the number of companions that are not yet written. Companions are
	// written in order, so the missing ones are those with the highest numbers. Missing
	// is never stored: a store sets it only in a record that it has been given to
	// write.
	Missing int
}
