package idem

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The type lease renews an attempt's lease while the handler works. Most handlers end
// before the first renewal.
type lease struct {
	lost  context.CancelCauseFunc // ends the handler's context; nil in ModeObserve, where the handler keeps its context
	turn  chan struct{}           // full while the record is being written; nil without renewals
	timer *time.Timer             // starts the renewals; nil without renewals

	mu         sync.Mutex
	over       bool
	quit, done chan struct{} // nil before the first renewal
}

// [lease.loses] ends the handler's context after another attempt has taken over.
func (l *lease) loses() {
	if l.lost != nil {
		l.lost(ErrLeaseLost)
	}
}

// lease.unkeep stops the renewals, and waits for a renewal in progress. It may be
// called more than once.
func (l *lease) unkeep() {
	if l.timer == nil || l.timer.Stop() {
		return
	}
	l.mu.Lock()
	again := l.over
	l.over = true
	quit, done := l.quit, l.done
	l.mu.Unlock()
	if quit != nil {
		if !again {
			close(quit)
		}
		<-done
	}
}

// lease.begin prepares the renewals, or returns false if the handler has ended.
func (l *lease) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.quit, l.done = make(chan struct{}), make(chan struct{})
	return true
}

// [lease.renews] is the loop of the renewals: it calls renew, waits for the duration that
// renew returns as due, and calls renew again. The loop ends when renew returns false for
// more, or when the handler ends.
func (l *lease) renews(renew func() (due time.Duration, more bool)) {
	if !l.begin() {
		return
	}
	defer close(l.done)
	for due := time.Duration(0); ; {
		if due > 0 {
			t := time.NewTimer(due)
			select {
			case <-t.C:
			case <-l.quit:
				t.Stop()
				return
			}
		}
		select {
		case l.turn <- struct{}{}: // the handler has no commit in progress
		case <-l.quit:
			return
		}
		var more bool
		due, more = renew()
		<-l.turn
		if !more {
			return
		}
	}
}

// keepLease sets the timer that starts the renewals if the handler still works after
// its deadline. The timer fires a little after the deadline, since Lambda may kill a
// process late, and such a process must not renew the lease. lease.unkeep ends the
// renewals. The function lost ends the handler's context.
func (r *run) keepLease(ctx context.Context, lost context.CancelCauseFunc) {
	r.lease.lost = lost
	if asleep.In(ctx) {
		return
	}
	r.lease.turn = make(chan struct{}, 1)
	r.lease.timer = time.AfterFunc(time.Until(r.times.deadline)+r.ask.core.spare, func() {
		r.lease.renews(func() (time.Duration, bool) { return r.renew(ctx) })
	})
}

// run.renew extends the lease if the lease ends soon. due is the pause before the next
// call of renew. more is false if renew need not be called again.
func (r *run) renew(ctx context.Context) (due time.Duration, more bool) {
	rec, opt, spare := r.record(), &r.ask.core.opt, r.ask.core.spare
	left := time.Until(r.times.deadline) + defaults.RenewFor
	switch {
	case rec.State != store.Open:
		return 0, false // answered
	case left <= 0:
		r.ask.core.log.ErrorContext(ctx, "handler works on: its lease is no longer renewed", "record", redact.Record(rec.PK), "after", defaults.RenewFor)
		return 0, false
	}
	now := opt.Now()
	if due := rec.Lease.Sub(now) - spare; due > 0 {
		return due, true
	}
	next := state.Renewed(rec, now, now.Add(min(opt.Lease, left)+opt.LeaseMargin))
	held, l, err := r.writer.send(ctx, change{prev: rec, next: next}, time.Now().Add(spare), untilDeadline)
	switch {
	case err != nil:
		r.ask.core.log.ErrorContext(ctx, "lease not renewed", "record", redact.Record(rec.PK), "error", err)
		return spare, true // try again: this attempt holds the lease until another one takes over
	case l == state.Overtaken:
		r.ask.core.log.ErrorContext(ctx, "lease lost: the handler outlived it", "record", redact.Record(rec.PK))
		_ = r.gate.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))
		return 0, false
	case held.State != store.Open:
		return 0, false // answered: an earlier write, reported as failed, has landed after all
	}
	r.ask.core.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(rec.PK), "until", held.Lease)
	r.progress.set(held) // held has the renewal, or an earlier write of this attempt that landed after all
	return 0, true
}
