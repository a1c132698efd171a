package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// keep renews the lease while the handler works past its deadline. Renewals begin
// after the time at which a killed process would be dead, and end when stop is
// called: no renewal is in progress after stop. lost ends the handler's context.
func (f *flow) keep(ctx context.Context, lost context.CancelCauseFunc) (stop func()) {
	f.lost = lost
	if f.a.opt.RenewFor < 0 {
		return func() {}
	}
	f.turn = make(chan struct{}, 1)
	quit, done := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(time.Until(f.a.deadline)+f.a.spare(), func() {
		defer close(done)
		f.renews(ctx, quit)
	})
	return func() {
		close(quit)
		if !timer.Stop() {
			<-done
		}
	}
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
	ctx, cancel := a.within(ctx, time.Now().Add(a.spare()))
	defer cancel()
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
		f.renewed()
		a.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(a.pk), "until", held.Lease)
	case held.State != store.Open:
		return 0, false // answered after all: release will see the answer
	}
	f.set(held) // the renewal, or an earlier write of this attempt that landed after all
	return 0, true
}

// renewed counts a renewal by this attempt.
func (f *flow) renewed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewals++
}

// alone keeps renewals and commits apart: both are writes of one owner, in
// sequence.
func (f *flow) alone() (done func()) {
	if f.turn == nil {
		return func() {}
	}
	f.turn <- struct{}{}
	return func() { <-f.turn }
}
