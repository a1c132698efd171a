package idem

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// One try at one operation: its fixed data, its time and its errors.

// attempt is one try at one operation. All its data is bound at the start, so
// nested and concurrent attempts can't mix.
type attempt struct {
	*Engine
	req     *Request
	request Request // a place for req, in the same block
	scope   string
	pk      string
	owner   string        // the attempt's nonce; "" while cached may answer
	id      string        // id of the operation if the operation is new; "" like owner
	accepts bool          // a 202 is allowed
	resumed bool          // run by a completer: there is no client, and only the stored request
	seen    bool          // the store has returned a record of the key, from a read or a refused claim
	away    bool          // the attempt has changed places with beside, because a record is there
	spent   atomic.Bool   // waiting for the store has used up the time
	cached  *store.Record // the cache's record of the key, which may answer; must not be changed
	digest  [sha256.Size]byte
	print   string // the fingerprint of digest
	secret  string // id of the secret of print

	whose store.Identity // the caller; zero for an operator

	beside *side // the key's other place while its scope changes; nil without Options.Former

	deadline time.Time     // end of the work
	limit    time.Duration // limit for each call to the store; 0 means the usual limit

	place  *place // in the caller's quota; nil without one
	course course // zero without a tracer
	trail  *trail // for Hooks.Ended; nil without that hook
}

// attempt checks a's request and computes its record's key. spaces allows spaces in
// the key.
func (e *Engine) attempt(ctx context.Context, a *attempt, spaces bool) (err error) {
	if err := checkKey(a.req.Key, e.opt.MinKey, e.opt.MaxKey, spaces); err != nil {
		return &Error{Op: "key", Err: err}
	}
	a.whose, err = e.claims.callerOf(ctx, a.req)
	switch {
	case err != nil:
	case !utf8.ValidString(a.whose.Subject): // a later attempt would read another name, and so for two callers one
		err = fmt.Errorf("%w: the caller's name is not UTF-8", ErrScope)
	case a.whose.Kind == scope.Program:
		err = e.completable(a.req, a.whose)
	case a.whose.Kind == scope.One:
		if err := checkKey(a.req.Key, max(e.opt.MinKey, e.opt.oneKey), e.opt.MaxKey, spaces); err != nil {
			return &Error{Op: "key", Err: err}
		}
	}
	if err != nil {
		return e.refusesNobody(ctx, a.req, err)
	}
	if e.opt.Fingerprint.SkipPath {
		if err = e.checkRoute(a.req); err != nil {
			return &Error{Op: "scope", Err: err}
		}
	}
	if a.digest, err = e.opt.Fingerprint.digest(a.req); err != nil {
		return &Error{Op: "fingerprint", Err: err}
	}
	var more []string
	if e.opt.MismatchIsNew {
		more = []string{string(a.digest[:])}
	}
	b := scope.Append(make([]byte, 2*nonceSize, 320), a.req.Operation, a.req.Tenant, a.whose)
	at := len(b)
	b = e.partitionKey(b, b[2*nonceSize:at], a.req, &e.claims, more...)
	end := len(b)
	a.cached = e.cache.get(b[at:])
	var sum [sha256.Size]byte
	sum, a.secret = e.opt.Fingerprint.sign(a.digest)
	b = hex.AppendEncode(b, sum[:])
	if rec := a.cached; rec != nil && hmac.Equal(b[end:], []byte(rec.Fingerprint)) {
		a.scope, a.pk, a.print = rec.Scope, rec.PK, rec.Fingerprint // the same texts, without new memory
	} else {
		drawNonces(b[:2*nonceSize])
		text := string(b) // in one block of memory
		a.owner, a.id, a.pk, a.print = text[:nonceSize], text[nonceSize:2*nonceSize], text[at:end], text[end:]
		a.scope = text[2*nonceSize : at]
	}
	if e.besides != nil {
		a.beside, err = e.sideOf(ctx, a.req, e.besides, a.pk, more...)
	}
	return err
}

// turn changes to the key's other place.
func (a *attempt) turn() {
	at := side{a.pk, a.scope, a.whose}
	a.pk, a.scope, a.whose = a.beside.pk, a.beside.scope, a.beside.whose
	*a.beside, a.away = at, !a.away
}

// compare reports whether the request is the request that claimed held. An attempt
// without a request of its own may continue with any request.
func (a *attempt) compare(held *store.Record) (same bool, err error) {
	switch {
	case a.resumed:
		return true, nil
	case held.Secret == a.secret && held.Scheme == a.scheme:
		return hmac.Equal([]byte(held.Fingerprint), []byte(a.print)), nil
	}
	return a.opt.Fingerprint.matches(held, a.req)
}

// nonceSize is the length of a text of rand.Text, which has at least 128 random bits.
const nonceSize = 26

// drawNonces fills b with texts like those of rand.Text, in one draw.
func drawNonces(b []byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	_, _ = rand.Read(b) // never fails
	for i, r := range b {
		b[i] = alphabet[int(r)%len(alphabet)]
	}
}

// handler returns the id of the handler that serves a's request.
func (a *attempt) handler() store.HandlerID {
	h := a.req.Handler
	h.Function = cmp.Or(h.Function, a.opt.Function)
	return h
}

// start sets the attempt's deadline, or refuses to begin.
func (a *attempt) start(ctx context.Context) error {
	a.arrives(ctx)
	return a.enough()
}

// arrives sets the attempt's deadline.
func (a *attempt) arrives(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	now := time.Now()
	if !ok {
		a.noLimit.Do(func() {
			a.log.WarnContext(ctx, "context has no deadline: using Options.Lease", "lease", a.opt.Lease)
		})
		deadline = now.Add(a.opt.Lease)
	}
	if farthest := now.Add(a.opt.Retention); deadline.After(farthest) {
		deadline = farthest // a lease beyond the key's lifetime protects nothing
	}
	a.deadline = deadline
}

// enough refuses to continue with too little time left: interrupted work is worse
// than work that never began.
func (a *attempt) enough() error {
	if left := time.Until(a.deadline); left <= a.opt.Reserve {
		return a.fail("start", fmt.Errorf("%w: %v, more than %v is required", ErrNoTime, left.Round(time.Millisecond), a.opt.Reserve))
	}
	return nil
}

// leaseEnd returns the end of a lease that begins now. The remaining time is real
// time; the stored end uses the engine's clock.
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

// unavailable wraps a store's error that prevents the handler from running.
func (a *attempt) unavailable(op string, err error) error {
	if errors.Is(err, ErrCorrupt) {
		return a.fail(op, err)
	}
	return a.fail(op, fmt.Errorf("%w: %w", ErrUnavailable, err))
}

// reads returns the current record; nil without one.
func (a *attempt) reads(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil {
		return nil, a.unavailable("resume", err)
	}
	return rec, nil
}
