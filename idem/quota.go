package idem

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// Quota limits the new operations of callers; see [Options.Quota]. Package idem/quota
// implements it. A Quota must be safe for concurrent use.
type Quota interface {
	// The engine calls Begin before each claim, except inside another operation, to
	// reserve a place in the caller's quota. A wait above zero means that the quota is
	// used up for that long. An error means that the quota could not be read. In both
	// cases the engine looks for the record of the key. If the key has a record, the
	// request is served as always. Otherwise the request is refused: a wait leads to
	// ErrQuota, an error to ErrUnavailable.
	//
	// If Begin returns neither a wait nor an error, the place is reserved, and end gives
	// it back. The engine calls end exactly once: when it finds that the key has a record,
	// or else when the attempt has ended, even by a panic. A nil end is not called.
	//
	// Begin and end run on the request's goroutine, and must not panic. Begin must return
	// promptly when ctx ends.
	Begin(ctx context.Context, r QuotaRequest) (end func(QuotaUse), wait time.Duration, err error)
}

// QuotaRequest describes a request to a [Quota]. A QuotaRequest holds no key and no body.
type QuotaRequest struct {
	// Caller is the request's scope, without [Request.Operation]. Caller may name a
	// person: don't log it. Under [OneScope] all unverified callers of a tenant have
	// the same Caller.
	Caller string
	// Route is the request's route. If the request has no route, Route is
	// [Request.Operation], such as the name of a batch.
	Route string
	// Bytes is the size of the request's body.
	Bytes int64
	// Kept is how long the record of a finished operation lasts.
	Kept time.Duration
}

// QuotaUse says how an attempt used its place in a [Quota].
type QuotaUse struct {
	// New reports whether a new operation began. If New is false, the key had a record or
	// the claim failed, so the place was not needed.
	New bool
	// Bytes estimates the size of the operation's record, including the answer, before
	// compression; 0 if New is false. A later attempt at the operation may enlarge the
	// record; Bytes doesn't count that.
	Bytes int64
}

// takeSeat takes a seat in the quota, or returns the error that refuses the new operation.
func (c *claiming) takeSeat(ctx context.Context, until time.Time) *Error {
	ctx, cancel := context.WithTimeout(ctx, half(until)) // leave time to read the record
	defer cancel()
	r, opt, home := c.ask.req, &c.core.opt, &c.ask.home
	end, wait, err := opt.Quota.Begin(ctx, QuotaRequest{
		Caller: string(scope.Append(nil, "", r.Tenant, home.whose)), Route: cmp.Or(r.Route, r.Operation), Bytes: int64(len(r.Body)), Kept: opt.Retention,
	})
	switch {
	case err != nil:
		return recordError("quota", home.pk, fmt.Errorf("%w: quota: %w", ErrUnavailable, err))
	case wait > 0:
		refusal := recordError("quota", home.pk, ErrQuota)
		refusal.RetryAfter = wait
		return refusal
	}
	c.seat = &seat{end: end}
	return nil
}

// seat is an attempt's place in the caller's quota. The seat is nil unless
// [Quota].Begin has reserved a place.
type seat struct {
	end func(QuotaUse)
	use QuotaUse
}

// seat.settle notes the outcome of a claim. If the claim found a record, settle gives
// the seat up, because no new operation begins.
func (s *seat) settle(v state.Verdict, err error) {
	switch {
	case s == nil || err != nil || v == state.Claimable:
	case v == state.Own:
		s.use.New = true
	default:
		s.leave()
	}
}

// [seat.holds] notes the size of rec, the operation's record. rec may be nil.
func (s *seat) holds(rec *store.Record) {
	if s != nil && rec != nil {
		s.use.Bytes = stored(rec)
	}
}

// seat.leave gives the seat up. Later calls have no effect.
func (s *seat) leave() {
	if s == nil || s.end == nil {
		return
	}
	end, use := s.end, s.use
	s.end = nil
	if !use.New {
		use.Bytes = 0
	}
	end(use)
}

// The function stored estimates the size of a record's item, in bytes.
func stored(r *store.Record) int64 {
	const numbers = 250 // for numbers, times and attribute names
	n := numbers + len(r.PK) + len(r.Owner) + len(r.ID) + len(r.Fingerprint) + len(r.Secret) + len(r.Scheme) + len(r.Scope) + len(r.Route) + len(r.LastErr)
	if r.Response != nil {
		n += bodySize(r.Response.Body, r.Overflow)
		for name, values := range r.Response.Header {
			n += len(name) + len(strings.Join(values, ""))
		}
	}
	if r.Input != nil {
		n += bodySize(r.Input.Body, r.Input.Overflow) + len(r.Input.Snapshot) + len(r.Input.Path) + len(r.Input.Query)
	}
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result)
	}
	for id, j := range r.Jobs {
		n += len(id) + len(j.Kind) + len(j.Args) + len(j.Group)
	}
	return int64(n)
}

// bodySize returns the size of a stored body: 0 if the body was not stored. The body is
// in the record if o is nil, and otherwise in companions. If the body is in companions,
// the parameter body is ignored, so that no body counts twice.
func bodySize(body []byte, o *store.Overflow) int {
	switch {
	case o == nil:
		return len(body)
	case o.Count == 0:
		return 0
	}
	return o.Length
}
