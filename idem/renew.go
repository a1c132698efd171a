package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// keep renews the lease for as long as the handler works on after its time. It
// begins when a process that is to be killed at the deadline is dead, and ends
// when stop is called: no renewal is under way after that. lost ends the
// handler's context.
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

// renews renews the lease whenever the margin is all that is left of it.
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
		case f.turn <- struct{}{}: // no commit of the handler's is under way
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

// renew renews the lease if that is due, and says when it is due again; false
// where there is nothing to renew any more.
func (f *flow) renew(ctx context.Context) (due time.Duration, more bool) {
	a, rec := f.a, f.record()
	left := time.Until(a.deadline) + a.opt.RenewFor
	switch {
	case rec != nil && rec.State != store.Open:
		return 0, false // answered
	case left <= 0:
		a.log.ErrorContext(ctx, "handler works on: its lease is no longer renewed", "record", redact.Record(a.pk), "after", a.opt.RenewFor)
		return 0, false
	case rec == nil: // the claim is still to come, with the handler's first commit
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
		return a.spare(), true // as long as nobody takes over, it is ours
	case l == state.Fenced:
		a.log.ErrorContext(ctx, "lease lost: the handler outlived it", "record", redact.Record(a.pk))
		f.lost(ErrLeaseLost)
		_ = f.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))
		return 0, false
	case l == state.Landed:
		f.renewed()
		a.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(a.pk), "until", held.Lease)
	case held.State != store.Open:
		return 0, false // answered after all: the release will see it
	}
	f.set(held) // or it is an earlier write of this attempt that has landed after all
	return 0, true
}

// renewed counts a renewal of this attempt's.
func (f *flow) renewed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewals++
}

// alone keeps renewals away from a commit of the handler's: both are writes of
// one owner, one after the other.
func (f *flow) alone() (done func()) {
	if f.turn == nil {
		return func() {}
	}
	f.turn <- struct{}{}
	return func() { <-f.turn }
}
