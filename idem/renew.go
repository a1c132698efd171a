package idem

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// renewals are those of a flow's lease. Most handlers end before the first.
type renewals struct {
	timer *time.Timer // of the first renewal; nil without renewals

	mu         sync.Mutex
	over       bool
	quit, done chan struct{} // nil before the first renewal
}

// keep renews the lease while the handler works past its deadline. Renewals begin
// after the time at which a killed process would be dead, and end with unkeep.
// lost ends the handler's context.
func (f *flow) keep(ctx context.Context, lost context.CancelCauseFunc) {
	f.lost = lost
	if f.a.opt.RenewFor < 0 {
		return
	}
	f.turn = make(chan struct{}, 1)
	f.renewing.timer = time.AfterFunc(time.Until(f.a.deadline)+f.a.spare(), func() {
		if f.renewing.begin() {
			defer close(f.renewing.done)
			f.renews(ctx, f.renewing.quit)
		}
	})
}

// unkeep ends the renewals: none is in progress after unkeep.
func (f *flow) unkeep() {
	r := &f.renewing
	if r.timer == nil || r.timer.Stop() {
		return
	}
	r.mu.Lock()
	r.over = true
	quit, done := r.quit, r.done
	r.mu.Unlock()
	if quit != nil {
		close(quit)
		<-done
	}
}

// begin returns false if the handler has ended.
func (r *renewals) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.quit, r.done = make(chan struct{}), make(chan struct{})
	return true
}

// renews renews the lease whenever only the margin is left.
func (f *flow) renews(ctx context.Context, quit <-chan struct{}) {
	for due := time.Duration(0); ; {
		if due > 0 {
			t := time.NewTimer(due)
			select {
			case <-t.C:
			case <-quit:
				t.Stop()
				return
			}
		}
		select {
		case f.turn <- struct{}{}: // the handler has no commit in progress
		case <-quit:
			return
		}
		var more bool
		due, more = f.renew(ctx)
		<-f.turn
		if !more {
			return
		}
	}
}

// renew renews the lease if due, and returns the time to the next renewal; false
// if there is nothing left to renew.
func (f *flow) renew(ctx context.Context) (due time.Duration, more bool) {
	a, rec := f.a, f.record()
	left := time.Until(a.deadline) + a.opt.RenewFor
	switch {
	case rec != nil && rec.State != store.Open:
		return 0, false // answered
	case left <= 0:
		a.log.ErrorContext(ctx, "handler works on: its lease is no longer renewed", "record", redact.Record(a.pk), "after", a.opt.RenewFor)
		return 0, false
	case rec == nil: // the claim comes with the handler's first commit
		return a.spare(), true
	}
	now := a.opt.Now()
	if due := rec.Lease.Sub(now) - a.spare(); due > 0 {
		return due, true
	}
	next := state.Renewed(rec, now, now.Add(min(a.opt.Lease, left)+a.opt.LeaseMargin), a.opt.Retention)
	held, l, err := a.send(ctx, change{prev: rec, next: next}, time.Now().Add(a.spare()), patient)
	switch {
	case err != nil:
		a.log.ErrorContext(ctx, "lease not renewed", "record", redact.Record(a.pk), "error", err)
		return a.spare(), true // we hold the lease until another attempt takes over
	case l == state.Fenced:
		a.log.ErrorContext(ctx, "lease lost: the handler outlived it", "record", redact.Record(a.pk))
		f.lost(ErrLeaseLost)
		_ = f.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))
		return 0, false
	case l == state.Landed:
		a.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(a.pk), "until", held.Lease)
	case held.State != store.Open:
		return 0, false // answered after all: release will see the answer
	}
	f.set(held) // the renewal, or an earlier write of this attempt that landed after all
	return 0, true
}
