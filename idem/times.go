package idem

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
)

const (
	// maxClaim limits how long a claim is repeated. It is much shorter than any
	// retention, so that no late copy of the claim arrives after the claim's record has
	// expired.
	maxClaim = 60 * time.Second
	// answerShare says which part of defaults.Reserve is for sending the answer: a fifth.
	answerShare = 5
)

// The type times holds the time limits of an attempt: when its work ends, and how long it
// may wait for the store.
type times struct {
	core *core

	deadline   time.Time     // when the attempt's work ends
	handlerEnd time.Time     // deadline of the handler's context, and of calls to the store before the handler runs
	lastCall   time.Time     // deadline of the last call to the store, which leaves time to send the answer
	callLimit  time.Duration // time limit of each call to the store in ModeObserve; 0 in other modes
	spent      atomic.Bool   // waiting for the store has used up the time
}

// times.arrives sets the deadlines.
func (t *times) arrives(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	now := time.Now()
	if !ok {
		t.core.noLimit.Do(func() {
			t.core.log.WarnContext(ctx, "context has no deadline: using Options.Lease", "lease", t.core.opt.Lease)
		})
		deadline = now.Add(t.core.opt.Lease)
	}
	if farthest := now.Add(t.core.opt.Retention); deadline.After(farthest) {
		deadline = farthest // a lease beyond the key's lifetime protects nothing
	}
	t.deadline, t.handlerEnd, t.lastCall = deadline, deadline.Add(-defaults.Reserve), deadline.Add(-defaults.Reserve/answerShare)
}

// times.observing reports whether the engine only observes ([ModeObserve]).
func (t *times) observing() bool { return t.callLimit > 0 }

// times.short returns an error if too little time is left to begin: interrupted work is
// worse than work that never began.
func (t *times) short() error {
	if left := time.Until(t.deadline); left <= defaults.Reserve {
		return fmt.Errorf("%w: %v, more than %v is required", ErrNoTime, left.Round(time.Millisecond), defaults.Reserve)
	}
	return nil
}

// times.enough returns an error if too little time is left to continue with the record at
// pk.
func (t *times) enough(pk string) error {
	if err := t.short(); err != nil {
		return recordError("start", pk, err)
	}
	return nil
}

// leaseEnd returns the end of a lease that begins at now by the engine's clock. The
// real clock measures the time that is left until the deadline.
func (t *times) leaseEnd(now time.Time) time.Time {
	return now.Add(time.Until(t.deadline) + t.core.opt.LeaseMargin)
}

// writeDeadline returns the deadline for calls to the store that begin now, after the
// handler's effect. Usually the deadline is t.lastCall. If waiting for the store used
// up the time, the deadline is t.lastCall even if t.lastCall has passed. If the handler
// used up the time, the deadline is shortly before the end of rec's lease, but at least
// a second from now. If the process was paused, this second may come after the lease,
// and another attempt may have taken the record over. The check of the record's version
// then refuses the write.
func (t *times) writeDeadline(rec *store.Record) time.Time {
	now := time.Now()
	if now.Before(t.lastCall) || t.spent.Load() {
		return t.lastCall
	}
	left := time.Second
	if rec != nil {
		left = max(left, rec.Lease.Sub(t.core.opt.Now())-t.core.spare)
	}
	return now.Add(left)
}

// times.within returns a context for calls to the store. The parameter until is the
// time at which the context ends. The context doesn't end if the client goes away, since an
// incomplete write is useless.
func (t *times) within(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithoutCancel(ctx), t.capped(until))
}

// times.capped returns until. If the engine only observes, and callLimit from now is
// earlier, capped returns that earlier time.
func (t *times) capped(until time.Time) time.Time {
	if t.observing() {
		return earlier(until, time.Now().Add(t.callLimit))
	}
	return until
}

// If ctx has ended, ranOut notes that waiting for the store used up the time.
func (t *times) ranOut(ctx context.Context) {
	if ctx.Err() != nil {
		t.spent.Store(true)
	}
}

// half returns the time limit of one of several tries: about half of the time left. So
// the next try has time even if a packet of this try hangs.
func half(until time.Time) time.Duration {
	return min(maxClaim, max(time.Until(until)/2, 100*time.Millisecond))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// times.pause sleeps before the given round of a write. The parameter until limits the
// sleep: if the limit comes first, pause returns false.
func (t *times) pause(ctx context.Context, round int, until time.Time) bool {
	ctx, cancel := t.within(ctx, until)
	defer cancel()
	return pause(ctx, round)
}

// pause sleeps before the given round, for a random time of at most 0.64 s
// (state.ResendWithin). If ctx ends first, pause returns false.
func pause(ctx context.Context, round int) bool {
	return sleep(ctx, chance.N(ctx, state.ResendWithin(min(round, maxRounds))))
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// times.rerun pauses before the next run of an Atomic, and returns false if no time is
// left.
func (t *times) rerun(ctx context.Context, round int, until time.Time) bool {
	return pause(ctx, round) && time.Now().Before(until) && time.Until(t.deadline) > defaults.Reserve
}
