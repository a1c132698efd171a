package idem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

// A key has one place. While the scope of keys changes ([Former]), a key has two
// places, and can have a record at each of them. If both records are live, they belong
// to two callers. In the larger of the two scopes, both callers have the same place.

// layout is the first part of every partition key, so that records of another
// layout version are never mistaken for ours.
const layout = "v1"

// The type naming makes the partition keys of records.
type naming struct {
	prefix   string   // prefix of every partition key
	claimsBy scoping  // the scoping under which keys are claimed
	alsoBy   *scoping // the other scoping while the scope of keys changes; nil without Options.Former
}

// namingOf returns the naming for opt. The defaults of opt must be set.
func namingOf(opt *Options) naming {
	n := naming{prefix: layout + "#" + opt.Namespace + "#", claimsBy: scoping{scope: opt.Scope, one: opt.oneScope, path: opt.rules.path}}
	if f := opt.Former; f != nil {
		former, present := scoping{scope: f.Scope, all: f.OneScope, path: opt.rules.path}, n.claimsBy
		if was := f.preset(); was != nil {
			former.path = was.rules.path
		}
		if n.claimsBy, n.alsoBy = present, &former; f.Claims {
			n.claimsBy, n.alsoBy = former, &present
		}
	}
	return n
}

// place says where the record of a key is, and which caller has the key there.
type place struct {
	pk, scope string
	whose     store.Identity
}

// partitionKey appends the partition key of r's record to b: a prefix and a hash. The
// partition key has a fixed length, is evenly distributed and hides the client's key. Each
// part is hashed with its length before it, so a client can't choose a key that gives a
// partition key of another scope.
func (n *naming) partitionKey(b, text []byte, r *Request, by *scoping) []byte {
	buf := appendPart(make([]byte, 0, 256), text)
	buf = appendPart(buf, r.Key)
	switch {
	case by.path && r.Path != "":
		buf = appendPart(buf, r.Method+" "+patternHost(r)+r.Path)
	case by.path: // not an HTTP request: the route that the source names is hashed, instead of method and path
		buf = appendPart(buf, r.Route)
	}
	sum := sha256.Sum256(buf)
	return base64.RawURLEncoding.AppendEncode(append(b, n.prefix...), sum[:])
}

// naming.place returns the place of r's key for caller. The parameter by is the scoping
// that named the caller.
func (n *naming) place(r *Request, by *scoping, caller store.Identity) place {
	text := scope.Append(nil, r.Operation, r.Tenant, caller)
	return place{pk: string(n.partitionKey(nil, text, r, by)), scope: string(text), whose: caller}
}

// naming.other returns the other place of r's key; nil if home is the only place.
func (n *naming) other(ctx context.Context, r *Request, home string) (*place, error) {
	if n.alsoBy == nil {
		return nil, nil
	}
	caller, err := n.alsoBy.callerOf(ctx, r)
	if _, none := errors.AsType[callerless](err); none || errors.Is(err, errNobody) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Op: "scope", Err: err}
	}
	p := n.place(r, n.alsoBy, caller)
	if p.pk == home {
		return nil, nil
	}
	return &p, nil
}

// ask.away reports whether pk is the key's other place.
func (q *ask) away(pk string) bool { return q.other != nil && pk == q.other.pk }

// ask.beside returns the pk of the key's other place; "" if the key has one place.
func (q *ask) beside() string {
	if q.other == nil {
		return ""
	}
	return q.other.pk
}

// placeOf returns the place where rec is: home, or the key's other place.
func (q *ask) placeOf(rec *store.Record) *place {
	if q.away(rec.PK) {
		return q.other
	}
	return &q.home
}

// ask.meets reports whether q asks for the same operation as other, whose record
// is at pk. If pk is a place that two callers share, in the larger of two scopes, meets
// returns true for the operations of both callers.
func (q *ask) meets(other *ask, pk string) bool {
	return q.home.pk == other.home.pk || pk == q.home.pk || q.away(pk)
}
