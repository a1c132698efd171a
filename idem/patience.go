package idem

import (
	"context"
	"math"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
)

const (
	// maxClaim is how long a claim is repeated: much shorter than any retention, so
	// that no copy of the claim can outlive its record.
	maxClaim = 60 * time.Second
	// maxRounds limits how often an attempt judges a record that keeps changing.
	maxRounds = 5
	// patient is for a write after the handler's effect has happened: the write is
	// repeated until its time is over.
	patient = math.MaxInt
	// answerShare is the divisor of Options.Reserve that gives the time for sending
	// the answer.
	answerShare = 5
)

// unbegun is the deadline of an attempt that has not called its handler.
func (a *attempt) unbegun() time.Time { return a.deadline.Add(-a.opt.Reserve) }

// end is the deadline of the last call to the store, so that the answer is sent
// before the attempt's deadline.
func (a *attempt) end() time.Time { return a.deadline.Add(-a.opt.Reserve / answerShare) }

// until returns the deadline for calls to the store that begin now, after the
// handler's effect: the attempt's end. A handler that exceeded its time, in a
// process that was not killed, has the rest of rec's lease, and at least a second
// (if a worker wakes up late, the version fence protects the record). If the
// store itself used up the time, there is no extension.
func (a *attempt) until(rec *store.Record) time.Time {
	now, end := time.Now(), a.end()
	if now.Before(end) || a.spent.Load() {
		return end
	}
	left := time.Second
	if rec != nil {
		left = max(left, rec.Lease.Sub(a.opt.Now())-a.spare())
	}
	return now.Add(left)
}

// spare is the part of a lease's margin for renewing the lease. In the other
// part, a timeout may kill late.
func (a *attempt) spare() time.Duration { return a.opt.LeaseMargin / 2 }

// within returns a context for calls to the store. The context ends at until and
// survives a client that goes away, since an incomplete write is useless.
func (a *attempt) within(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if a.limit > 0 {
		until = earlier(until, time.Now().Add(a.limit))
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// gaveUp records a failed write if ctx ended for lack of time.
func (a *attempt) gaveUp(ctx context.Context) {
	if ctx.Err() != nil {
		a.spent.Store(true)
	}
}

// half is the time for one of several tries before until: one packet that hangs
// must not use up the time of another try.
func half(until time.Time) time.Duration {
	return min(maxClaim, max(time.Until(until)/2, 100*time.Millisecond))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pause waits before round of a write, and returns false if until comes first.
func (a *attempt) pause(ctx context.Context, round int, until time.Time) bool {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	return pause(ctx, round)
}

// pause waits before round: full jitter over 20 ms · 2^round, at most 0.64 s.
func pause(ctx context.Context, round int) bool {
	return sleep(ctx, chance.N(ctx, 20*time.Millisecond<<min(round, maxRounds)))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
