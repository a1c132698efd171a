package idem

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// An attempt is one try at one operation: what it knows from the start, the
// time it has, and the words for what it meets.

// attempt is one try at one operation. Everything it needs is bound to it at
// the start, so nested and concurrent attempts can't mix.
type attempt struct {
	*Engine
	req     *Request
	scope   string
	pk      string
	owner   string // its nonce
	id      string // of the operation, if it is new
	accepts bool   // may be answered with 202
	resumed bool   // by a completer: there is no client, and no request but the stored one
	seen    bool   // a record of the key, by a look at it or in the way of a claim
	digest  [sha256.Size]byte

	anonymous bool              // nobody has verified who is calling: cred tells callers apart
	cred      [sha256.Size]byte // of what the request presents

	deadline time.Time     // when the work must be over
	limit    time.Duration // of each call to the store, where that is not the usual one
	spent    atomic.Bool   // waiting for the store has used up the time
}

// attempt checks a request and names its record. spaces allows them in the key.
func (e *Engine) attempt(ctx context.Context, r *Request, spaces bool) (*attempt, error) {
	if err := checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, spaces); err != nil {
		return nil, &Error{Op: "key", Err: err}
	}
	scope, anonymous, err := e.scopeOf(ctx, r)
	if err != nil {
		return nil, &Error{Op: "scope", Err: err}
	}
	digest, err := e.opt.Fingerprint.digest(r)
	if err != nil {
		return nil, &Error{Op: "fingerprint", Err: err}
	}
	pk := e.partitionKey(scope, r)
	if e.opt.MismatchIsNew {
		pk = e.partitionKey(scope, r, string(digest[:]))
	}
	a := &attempt{
		Engine: e, req: r, scope: scope, pk: pk, owner: rand.Text(), id: rand.Text(), digest: digest,
	}
	a.identify(anonymous)
	return a, nil
}

// identify notes what the request presents, where nobody has verified it.
func (a *attempt) identify(anonymous bool) {
	if a.anonymous = anonymous; anonymous {
		a.cred = a.credentials(a.req)
	}
}

// handler is who serves a's request.
func (a *attempt) handler() store.HandlerID {
	h := a.req.Handler
	h.Function = cmp.Or(h.Function, a.opt.Function)
	return h
}

// start fixes the time the attempt has, or refuses to begin.
func (a *attempt) start(ctx context.Context) error {
	a.arrives(ctx)
	return a.enough()
}

// arrives fixes the time the attempt has.
func (a *attempt) arrives(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if !ok {
		a.noLimit.Do(func() {
			a.log.WarnContext(ctx, "context has no deadline: using Options.Lease", "lease", a.opt.Lease)
		})
		deadline = time.Now().Add(a.opt.Lease)
	}
	if farthest := time.Now().Add(a.opt.Retention); deadline.After(farthest) {
		deadline = farthest // a lease beyond the key's lifetime holds nothing
	}
	a.deadline = deadline
}

// enough refuses to go on with too little time left: work that is cut off in the
// middle is worse than work that was never begun.
func (a *attempt) enough() error {
	if left := time.Until(a.deadline); left <= a.opt.Reserve {
		return a.fail("start", fmt.Errorf("%w: %v, more than %v is required", ErrNoTime, left.Round(time.Millisecond), a.opt.Reserve))
	}
	return nil
}

// leaseEnd is when this attempt would lose the lease. The time left is real,
// the stored end is by the engine's clock.
func (a *attempt) leaseEnd(now time.Time) time.Time {
	return now.Add(time.Until(a.deadline) + a.opt.LeaseMargin)
}

func (a *attempt) event(rec *store.Record, err error) Event {
	ev := Event{Record: redact.Record(a.pk), Route: a.req.Route, Err: err}
	if rec == nil || rec.State == store.None {
		return ev
	}
	ev.ID, ev.Created, ev.Expires = rec.ID, rec.Created, state.Lifetime(rec)
	if rec.Response != nil {
		ev.Status = rec.Response.Status
	}
	if rec.State == store.Open && !rec.Lease.IsZero() {
		ev.Lease = rec.Lease.Sub(a.opt.Now())
	}
	return ev
}

func (a *attempt) fail(op string, err error) *Error {
	return &Error{Op: op, Record: redact.Record(a.pk), Err: err}
}

func (a *attempt) phaseError(op string, err error) *Error {
	e := a.fail(op, err)
	e.phase = true
	return e
}

// unavailable wraps a store's error that keeps the handler from running.
func (a *attempt) unavailable(op string, err error) error {
	if errors.Is(err, ErrCorrupt) {
		return a.fail(op, err)
	}
	return a.fail(op, fmt.Errorf("%w: %w", ErrUnavailable, err))
}
