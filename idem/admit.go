package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// admit decides whether the request may begin a new operation, and asks the quota, if there
// is one, for a place. The verdict Again allows the claim. Otherwise the record decides: a
// record in the way is no new operation, so its verdict stands. The operations within an
// operation need no place of their own.
func (a before) admit(ctx context.Context) (*store.Record, state.Verdict, error) {
	if a.barred != nil {
		return a.known(ctx, a.barred)
	}
	if a.opt.Quota == nil || nested(ctx) {
		return nil, state.Again, nil
	}
	until := earlier(a.unbegun, time.Now().Add(maxClaim))
	pctx, cancel := a.within(ctx, until)
	defer cancel()
	refusal := a.takePlace(pctx, until)
	switch {
	case refusal == nil:
		return nil, state.Again, nil
	case a.looked:
		return nil, 0, refusal
	}
	return a.known(ctx, refusal)
}

// known returns the record of a request that may begin nothing new, and the verdict about
// it; refusal, if there is none.
func (a before) known(ctx context.Context, refusal *Error) (*store.Record, state.Verdict, error) {
	refusal.Record = redact.Record(a.pk)
	until, short := a.unbegun, a.short()
	if short != nil {
		until = a.end // reading takes less time than beginning
	}
	until = earlier(until, time.Now().Add(maxClaim))
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	var rec *store.Record
	var v state.Verdict
	var err error = a.fail(refusal.Op, ErrUnavailable)
	if time.Now().Before(until) {
		lctx, sp := a.step(ctx, trace.Read, "")
		if rec, v, err = a.lookUp(lctx, refusal.Op, until); err == nil {
			rec, v, err = a.elsewhere(lctx, refusal.Op, rec, v, until)
		}
		sp.done(err)
	}
	switch {
	case err == nil && v == state.Again:
		return nil, 0, refusal
	case short != nil && errors.Is(err, ErrUnavailable):
		a.barred = a.fail("start", &unlooked{short})
		return nil, 0, a.barred
	}
	return rec, v, err
}

// takePlace takes a place, or returns the refusal of a new operation.
func (a before) takePlace(ctx context.Context, until time.Time) *Error {
	ctx, cancel := context.WithTimeout(ctx, half(until)) // leave time for the record
	defer cancel()
	end, wait, err := a.opt.Quota.Begin(ctx, QuotaRequest{
		Caller: string(scope.Append(nil, "", a.req.Tenant, a.whose)), Route: routeName(a.req), Bytes: int64(len(a.req.Body)), Kept: a.opt.Retention + a.opt.Tombstone,
	})
	switch {
	case err != nil:
		return a.fail("quota", fmt.Errorf("%w: quota: %w", ErrUnavailable, err))
	case wait > 0:
		refusal := a.fail("quota", ErrQuota)
		refusal.RetryAfter = wait
		return refusal
	}
	a.place = &place{end: end}
	return nil
}

func routeName(r *Request) string { return cmp.Or(r.Route, r.Operation) }
