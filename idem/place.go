package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// While the scope of keys changes ([Former]), a key has two places: two records, of which
// one at most is live. Both are live only if the request of one is somebody else's, who has
// the same key in the larger of the two scopes.

// place is where the record of a key lies, and whose the key is there.
type place struct {
	pk, scope string
	whose     store.Identity
}

// place returns the place of r's key under a scoping with this caller.
func (n *naming) place(r *Request, by *scoping, caller store.Identity) place {
	text := scope.Append(nil, r.Operation, r.Tenant, caller)
	return place{pk: string(n.partitionKey(nil, text, r, by)), scope: string(text), whose: caller}
}

// other returns the place of r's key besides home; nil if there is no other.
func (n *naming) other(ctx context.Context, r *Request, home string) (*place, error) {
	if n.besides == nil {
		return nil, nil
	}
	caller, err := n.besides.callerOf(ctx, r)
	if _, none := errors.AsType[callerless](err); none || errors.Is(err, errNobody) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Op: "scope", Err: err}
	}
	p := n.place(r, n.besides, caller)
	if p.pk == home {
		return nil, nil
	}
	return &p, nil
}

// away reports whether pk is the key's other place.
func (q *ask) away(pk string) bool { return q.other != nil && pk == q.other.pk }

// placeOf returns the place of a record of the key.
func (q *ask) placeOf(rec *store.Record) *place {
	if q.away(rec.PK) {
		return q.other
	}
	return &q.home
}

// meets reports whether other is a request of the same key, whose record lies at pk. Other
// operations may have a place in common, in the larger of two scopes.
func (q *ask) meets(other *ask, pk string) bool {
	return q.home.pk == other.home.pk || pk == q.home.pk || q.away(pk)
}

// either reads the record that a claim meets, at either place; nil without one.
func (c *claiming) either(ctx context.Context) (*store.Record, error) {
	rec, err := c.core.store.Load(ctx, c.ask.home.pk)
	if err == nil && rec == nil && c.ask.other != nil {
		rec, err = c.core.store.Load(ctx, c.ask.other.pk)
	}
	return rec, err
}

// elsewhere looks for the request at the other place, if nothing is at home, or another
// request: scopes that change may make one key of two, or two of one. It returns the
// verdict about home if the request is at neither.
func (c *claiming) elsewhere(ctx context.Context, op string, own *store.Record, v state.Verdict, until time.Time) (*store.Record, state.Verdict, error) {
	if c.ask.other == nil || v != state.Again && v != state.Mismatch {
		return own, v, nil
	}
	there, found, err := c.lookUp(ctx, op, c.ask.other.pk, until)
	gone := there == nil || there.State == store.None || c.over(there) // otherwise it was released meanwhile
	if err == nil && (gone || found == state.Mismatch && v == state.Mismatch) {
		return own, v, nil
	}
	return there, found, err
}

// bury fences the holders of an expired or freed record at the other place, so that the key
// can be claimed at home, and returns the fenced record. Where a key has one place only,
// the claim itself does that, since it replaces the record. A record that another attempt
// has released in the meantime stays as it is.
func (c *claiming) bury(ctx context.Context, held *store.Record, until time.Time) (*store.Record, error) {
	if !c.over(held) { // gone, or released meanwhile: the next claim shows it
		return nil, nil
	}
	// A nonce of its own: what this attempt takes over later must not look like the fenced record.
	w := c.writer
	w.owner = rand.Text()
	fenced, l, err := w.write(ctx, change{prev: held, next: state.Buried(held, c.core.opt.Now())}, until, maxRounds)
	switch {
	case err != nil && !errors.Is(err, ErrConflict):
		c.core.log.ErrorContext(ctx, "an expired record under the other scope can't be fenced", "record", redact.Record(held.PK), "error", err)
		return nil, unavailable("claim", held.PK, err)
	case l != state.Landed: // the next claim shows what stands there
		return nil, nil
	}
	return fenced, nil
}
