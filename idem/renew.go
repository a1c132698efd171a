package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// renew renews the lease if due, and returns the time to the next renewal; false
// if there is nothing left to renew.
func (f *flow) renew(ctx context.Context) (due time.Duration, more bool) {
	a, rec := f.a, f.record()
	left := time.Until(a.deadline) + a.opt.RenewFor
	switch {
	case rec.State != store.Open:
		return 0, false // answered
	case left <= 0:
		a.log.ErrorContext(ctx, "handler works on: its lease is no longer renewed", "record", redact.Record(a.pk), "after", a.opt.RenewFor)
		return 0, false
	}
	now := a.opt.Now()
	if due := rec.Lease.Sub(now) - a.spare; due > 0 {
		return due, true
	}
	next := state.Renewed(rec, now, now.Add(min(a.opt.Lease, left)+a.opt.LeaseMargin))
	held, l, err := a.send(ctx, change{prev: rec, next: next}, time.Now().Add(a.spare), patient)
	switch {
	case err != nil:
		a.log.ErrorContext(ctx, "lease not renewed", "record", redact.Record(a.pk), "error", err)
		return a.spare, true // we hold the lease until another attempt takes over
	case l == state.Fenced:
		a.log.ErrorContext(ctx, "lease lost: the handler outlived it", "record", redact.Record(a.pk))
		_ = f.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))
		return 0, false
	case held.State != store.Open:
		return 0, false // answered after all: release will see the answer
	}
	a.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(a.pk), "until", held.Lease)
	f.set(held) // the renewal, or an earlier write of this attempt that landed after all
	return 0, true
}
