package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// admit decides whether the request may begin a new operation, and asks the quota, if there
// is one, for a seat. The verdict Again allows the claim. Otherwise the record decides: a
// record in the way is no new operation, so its verdict stands. The operations within an
// operation need no seat of their own.
func (c *claiming) admit(ctx context.Context) (*store.Record, state.Verdict, error) {
	if c.barred != nil {
		return c.known(ctx, c.barred)
	}
	if c.core.opt.Quota == nil || nested(ctx) {
		return nil, state.Again, nil
	}
	until := c.until()
	sctx, cancel := c.times.within(ctx, until)
	defer cancel()
	refusal := c.takeSeat(sctx, until)
	switch {
	case refusal == nil:
		return nil, state.Again, nil
	case c.looked:
		return nil, 0, refusal
	}
	return c.known(ctx, refusal)
}

// known returns the record of a request that may begin nothing new, and the verdict about
// it; refusal, if there is none.
func (c *claiming) known(ctx context.Context, refusal *Error) (*store.Record, state.Verdict, error) {
	home := c.ask.home.pk
	refusal.Record = redact.Record(home)
	until, short := c.times.unbegun, c.times.short()
	if short != nil {
		until = c.times.end // reading takes less time than beginning
	}
	until = earlier(until, time.Now().Add(maxClaim))
	ctx, cancel := c.times.within(ctx, until)
	defer cancel()
	var rec *store.Record
	var v state.Verdict
	var err error = fail(refusal.Op, home, ErrUnavailable)
	if time.Now().Before(until) {
		lctx, sp := c.watch.step(ctx, trace.Read, "")
		if rec, v, err = c.lookUp(lctx, refusal.Op, home, until); err == nil {
			rec, v, err = c.elsewhere(lctx, refusal.Op, rec, v, until)
		}
		sp.done(err)
	}
	switch {
	case err == nil && v == state.Again:
		return nil, 0, refusal
	case short != nil && errors.Is(err, ErrUnavailable):
		c.barred = fail("start", home, &unlooked{short})
		return nil, 0, c.barred
	}
	return rec, v, err
}

// takeSeat takes a seat, or returns the refusal of a new operation.
func (c *claiming) takeSeat(ctx context.Context, until time.Time) *Error {
	ctx, cancel := context.WithTimeout(ctx, half(until)) // leave time for the record
	defer cancel()
	r, opt, home := c.ask.req, &c.core.opt, &c.ask.home
	end, wait, err := opt.Quota.Begin(ctx, QuotaRequest{
		Caller: string(scope.Append(nil, "", r.Tenant, home.whose)), Route: cmp.Or(r.Route, r.Operation), Bytes: int64(len(r.Body)), Kept: opt.Retention,
	})
	switch {
	case err != nil:
		return fail("quota", home.pk, fmt.Errorf("%w: quota: %w", ErrUnavailable, err))
	case wait > 0:
		refusal := fail("quota", home.pk, ErrQuota)
		refusal.RetryAfter = wait
		return refusal
	}
	c.seat = &seat{end: end}
	return nil
}

// seat is an attempt's place in the caller's quota. A nil seat is none.
type seat struct {
	mu  sync.Mutex // a phase may outlive its handler
	end func(QuotaUse)
	use QuotaUse
}

// settle notes the outcome of a claim. The record of a known key is no new
// operation, so the seat is free at once.
func (s *seat) settle(v state.Verdict, err error) {
	switch {
	case s == nil || err != nil || v == state.Again:
	case v == state.Own:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.use.New = true
	default:
		s.leave()
	}
}

// holds notes the size of the operation's record, which may be nil.
func (s *seat) holds(rec *store.Record) {
	if s != nil && rec != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.use.Bytes = stored(rec)
	}
}

// leave gives the seat up. Only the first call counts.
func (s *seat) leave() {
	if s == nil {
		return
	}
	s.mu.Lock()
	end, use := s.end, s.use
	s.end = nil
	s.mu.Unlock()
	if !use.New {
		use.Bytes = 0
	}
	if end != nil {
		end(use)
	}
}

// stored estimates the size of a record's item in bytes.
func stored(r *store.Record) int64 {
	const numbers = 250 // names of attributes, numbers and times
	n := numbers + len(r.PK) + len(r.Owner) + len(r.ID) + len(r.Fingerprint) + len(r.Secret) + len(r.Scheme) + len(r.Scope) + len(r.Route) + len(r.LastErr)
	if r.Response != nil {
		n += kept(r.Response.Body, r.Overflow)
		for name, values := range r.Response.Header {
			n += len(name) + len(strings.Join(values, ""))
		}
	}
	if r.Input != nil {
		n += kept(r.Input.Body, r.Input.Overflow) + len(r.Input.Snapshot) + len(r.Input.Path) + len(r.Input.Query)
	}
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result)
	}
	for id, j := range r.Jobs {
		n += len(id) + len(j.Kind) + len(j.Args) + len(j.Group)
	}
	return int64(n)
}

// kept returns the size of a body that is in its record, or beside it: then the program that
// wrote it still has it, too.
func kept(body []byte, o *store.Overflow) int {
	switch {
	case o == nil:
		return len(body)
	case o.Count == 0:
		return 0
	}
	return o.Length
}
