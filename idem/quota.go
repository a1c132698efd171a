package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// Quota limits the new operations of callers; see [Options.Quota]. Package
// idem/quota implements it. A Quota is safe for concurrent use.
type Quota interface {
	// Begin is asked before each claim, and takes the place that a new operation
	// needs. A wait above zero means that the caller's quota is used up until then.
	// An error means that the quota could not be read. In both cases the engine looks
	// for the record of the key: a known key is served as always, and only a new
	// operation is refused, by ErrQuota or ErrUnavailable.
	//
	// Without both, the engine calls end exactly once, unless end is nil: as soon as
	// the key turns out to be known, or when the attempt has ended, also by a panic.
	// Begin and end run on the request's goroutine. They must not panic. Begin
	// returns promptly when ctx ends.
	Begin(ctx context.Context, r QuotaRequest) (end func(QuotaUse), wait time.Duration, err error)
}

// QuotaRequest describes a request to a [Quota]. It holds no key and no body.
type QuotaRequest struct {
	// Caller is the request's scope, without [Request.Operation]. It may name a
	// person: don't log it. The callers of [OneScope] share a Caller.
	Caller string
	// Route is the request's route; for records of an event, the name of the batch
	// if there is no route.
	Route string
	// Bytes is the size of the request's body.
	Bytes int64
	// Kept is how long the record of a finished operation lasts: Retention and
	// Tombstone.
	Kept time.Duration
}

// QuotaUse describes what became of a place in a [Quota].
type QuotaUse struct {
	// New reports whether a new operation began. If not, the place was not needed:
	// the key was known, or the claim failed.
	New bool
	// Bytes estimates the size of the operation's record, with its answer, before
	// compression; 0 if New is false. Work that outlives the attempt may add to the
	// record.
	Bytes int64
}

// admit asks the quota for a place. The verdict Again allows the claim. Without a
// place, the record decides: a record in the way is no new operation, so its
// verdict stands. The operations within an operation need no place of their own.
func (a *attempt) admit(ctx context.Context) (*store.Record, state.Verdict, error) {
	until := earlier(a.unbegun(), time.Now().Add(maxClaim))
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	refusal := a.takePlace(ctx, until)
	if refusal == nil {
		return nil, state.Again, nil
	}
	// Not by a Peek, which may miss a record of the last second: then a retry would
	// be refused.
	lctx, sp := a.step(ctx, trace.Read, "")
	rec, v, err := a.lookUp(lctx, "quota", until)
	if err == nil {
		rec, v, err = a.elsewhere(lctx, "quota", rec, v, until)
	}
	sp.done(err)
	if err == nil && v == state.Again {
		return nil, 0, refusal
	}
	return rec, v, err
}

// takePlace takes a place, or returns the refusal of a new operation.
func (a *attempt) takePlace(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, half(until)) // leave time for the record
	defer cancel()
	end, wait, err := a.opt.Quota.Begin(ctx, QuotaRequest{
		Caller: string(scope.Append(nil, "", a.req.Tenant, a.whose)), Route: a.route(), Bytes: int64(len(a.req.Body)), Kept: a.opt.Retention + a.opt.Tombstone,
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

func (a *attempt) route() string {
	if a.req.Route == "" {
		return a.req.Operation
	}
	return a.req.Route
}
