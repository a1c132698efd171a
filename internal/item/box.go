package item

import (
	"strconv"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

// Seal holds the data key of a record, and the parts of the record that haven't been
// opened. A Seal never changes.
type Seal struct {
	keyID, algorithm string
	wrapped          []byte

	key    *seal.Key // nil until it is needed
	closed *closed   // nil if nothing is left to open
}

// NewSeal returns the Seal of a record with the given data key.
func NewSeal(key *seal.Key) *Seal {
	return &Seal{keyID: key.ID(), algorithm: seal.Algorithm, wrapped: key.Wrapped(), key: key}
}

// KeyID names the key that wraps the record's data key. store.Record.Seal needs this method.
func (s *Seal) KeyID() string { return s.keyID }

// SealOf returns the Seal of r; nil if r isn't sealed.
func SealOf(r *store.Record) *Seal {
	if r == nil {
		return nil
	}
	s, _ := r.Seal.(*Seal)
	return s
}

// Closed reports whether the record has contents that were not opened.
func (s *Seal) Closed() bool { return s != nil && s.closed != nil }

// Key returns the data key; nil if it isn't open.
func (s *Seal) Key() *seal.Key {
	if s == nil {
		return nil
	}
	return s.key
}

// Kinds of sealed parts. The values must never change, since each stored part is bound to its kind.
const (
	kindScope   = "scope"
	kindRequest = "request"
	kindResult  = "result"
	kindArgs    = "args"
	kindAnswer  = "answer"
	kindBody    = "body"
)

// Box seals and opens the parts of a record. It ignores changes that are made to the
// record after the call of NewBox. If the Box is nil, the parts are stored plain.
type Box struct {
	key    *seal.Key
	pk, id string
	tenant string
	whose  [6]string
}

// NewBox returns a Box that seals and opens the parts of r with the given data key; nil
// if the key is nil. Requests, results and answers are bound to the scope. So a Box for
// these parts needs an r whose scope is open.
func NewBox(key *seal.Key, r *store.Record) *Box {
	if key == nil {
		return nil
	}
	return &Box{
		key: key, pk: r.PK, id: r.ID, tenant: r.Tenant,
		whose: [...]string{r.Handler.Function, r.Handler.Name, r.Tenant, r.Route, r.Scope, r.Fingerprint + r.Scheme},
	}
}

// sealLayout is in the context of each part. It must stay the same when [Layout]
// changes, so that parts that were sealed before still open.
const sealLayout = "1"

// Box.context returns the place to which a part is bound. At any other place the part
// doesn't open. Each component of the place prevents an exchange of parts:
//   - pk: with another record;
//   - id: with an earlier or later operation under the same key;
//   - kind and part: with another part of the record;
//   - function, handler, tenant and route: with another handler, tenant or route;
//   - scope: with another caller;
//   - fingerprint and its scheme: with another request of the caller.
//
// The last three lines apply only to requests, results and answers. Args are also bound
// to the tenant, and to the kind and group of their job. The chunks of a body are bound
// to their request or answer: its sealed head contains the chunks' place and the body's
// hash.
func (b *Box) context(kind string, part ...string) []byte {
	place := append(make([]string, 0, 16), "samekey", sealLayout, b.pk, b.id, kind)
	switch kind {
	case kindRequest, kindResult, kindAnswer:
		place = append(place, b.whose[:]...)
	case kindArgs:
		place = append(place, b.tenant)
	}
	return seal.Context(append(place, part...)...)
}

func (b *Box) seal(plain []byte, kind string, part ...string) []byte {
	return b.key.Seal(plain, b.context(kind, part...))
}

func (b *Box) open(sealed []byte, kind string, part ...string) ([]byte, error) {
	return b.key.Open(sealed, b.context(kind, part...))
}

func resultPart(at int, phase string) []string { return []string{strconv.Itoa(at), phase} }

// argsPart includes kind and group, so that a job's args can't be delivered as
// another kind or in another group.
func argsPart(name string, j store.Job) []string { return []string{name, j.Kind, j.Group} }

// Chunk seals the content of companion number i of a large body. The parameter over is the body's
// place.
func (b *Box) Chunk(plain []byte, over *store.Overflow, i int) []byte {
	return b.seal(plain, kindBody, chunkPart(over, i)...)
}

// OpenChunk is the inverse of [Box.Chunk].
func (b *Box) OpenChunk(sealed []byte, over *store.Overflow, i int) ([]byte, error) {
	return b.open(sealed, kindBody, chunkPart(over, i)...)
}

// chunkPart includes the owner and the first companion's number, which together
// identify the body.
func chunkPart(o *store.Overflow, i int) []string {
	return []string{o.Owner, strconv.FormatInt(o.First, 10), strconv.Itoa(o.Count), strconv.Itoa(i)}
}
