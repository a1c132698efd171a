package idem

import (
	"context"
	"math"
	mathrand "math/rand/v2"
	"time"

	"github.com/samekey/samekey/idem/store"
)

const (
	// maxClaim is for how long a claim is sent again: far shorter than any
	// retention, so that no copy of it can outlive its record.
	maxClaim = 60 * time.Second
	// maxRounds bounds how often an attempt judges a record that keeps changing.
	maxRounds = 5
	// patient is for a write that must not be given up, since the handler's effect
	// has happened: it is tried again until its time is over.
	patient = math.MaxInt
	// answerShare is the part of Options.Reserve in which the answer gets out.
	answerShare = 5
)

// unbegun is when an attempt must be done that has not called its handler.
func (a *attempt) unbegun() time.Time { return a.deadline.Add(-a.opt.Reserve) }

// end is when the last call to the store must be over, so that the answer gets
// out before the deadline.
func (a *attempt) end() time.Time { return a.deadline.Add(-a.opt.Reserve / answerShare) }

// until is how long the calls to the store may go on that begin now, the
// handler's effect having happened: as long as there is time. A handler that
// took more than its time, in a process that nobody has killed, has what is left
// of the lease of rec, and a second in any case (a worker that woke up: the
// version fence protects). Where it was the store that took the time, it is over.
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

// spare is the part of a lease's margin that is left for renewing it. In the
// rest of it a time-out may kill late.
func (a *attempt) spare() time.Duration { return a.opt.LeaseMargin / 2 }

// within returns a context for calls to the store: it survives a client that
// goes away, since a half-made write helps nobody, and ends at until.
func (a *attempt) within(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if a.limit > 0 {
		until = earlier(until, time.Now().Add(a.limit))
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// gaveUp notes that a write has failed, where ctx is over for lack of time.
func (a *attempt) gaveUp(ctx context.Context) {
	if ctx.Err() != nil {
		a.spent.Store(true)
	}
}

// half is the time for one of several tries until then: one packet that hangs
// must not use up what another could do.
func half(until time.Time) time.Duration {
	return min(maxClaim, max(time.Until(until)/2, 100*time.Millisecond))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pause waits before round: full jitter over 20 ms · 2^round, at most 0.64 s.
func pause(ctx context.Context, round int) bool {
	return sleep(ctx, time.Duration(mathrand.Int64N(int64(20*time.Millisecond)<<min(round, maxRounds))))
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
