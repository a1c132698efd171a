package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// run is one run of a handler by the attempt that holds the record: the only part of an
// attempt that changes once the record is held. Phases run in phaserun.go and are committed
// in commit.go; settle.go ends the run.
type run struct {
	ask    *ask
	times  *times
	watch  *watch
	writer writer

	progress progress
	gate     gate
	lease    lease
	calls    calls

	statusOnly bool            // store only the answer's status
	kept       *store.Overflow // body that a store has written for an answer that is not stored yet

	within opContext // the handler's, in the same block
}

// run returns the run of an attempt that holds rec.
func (a *attempt) run(rec *store.Record, w writer) *run {
	return &run{
		ask: &a.ask, times: &a.times, watch: &a.watch, writer: w,
		progress: progress{rec: rec, started: time.Now()}, gate: gate{pk: rec.PK},
	}
}

// record returns the record as this attempt last wrote or saw it.
func (r *run) record() *store.Record { return r.progress.record() }

// answers returns what answers for r's attempt.
func (r *run) answers() answers { return answers{r.ask.core, r.ask, r.times, r.watch, r.writer.owner} }

// course runs the handler once, and ends the operation if it can. takenOver says that another
// attempt began it.
func (r *run) course(ctx context.Context, takenOver bool, fn func(context.Context) (Response, error)) (Result, error) {
	begins := evClaimed
	if takenOver {
		begins = evTakenOver
	}
	r.watch.tell(ctx, begins, r.record(), nil)
	resp, err := r.handle(ctx, takenOver, fn)
	return r.settle(ctx, resp, err)
}

// handle calls fn, and releases the lease if fn doesn't return. handle doesn't
// recover a panic (or runtime.Goexit), so that the caller sees it.
func (r *run) handle(ctx context.Context, takenOver bool, fn func(context.Context) (Response, error)) (Response, error) {
	outer, _ := FromContext(ctx)
	r.within = opContext{ctx, Op{run: r, takenOver: takenOver, outer: outer}}
	defer r.within.op.over.Store(true)
	ctx = &r.within //nolint:contextcheck // it inherits from ctx
	hctx := ctx
	if r.times.limit == 0 { // with a limit, the handler's context stays unchanged
		lctx, lost := context.WithCancelCause(ctx)
		defer lost(nil)
		var cancel context.CancelFunc
		hctx, cancel = context.WithDeadline(lctx, r.times.unbegun)
		defer cancel()
		r.keepLease(ctx, lost)
	}
	back := false
	defer func() {
		r.lease.unkeep()
		r.gate.close()
		if !back && r.gate.ended() == nil {
			_, _, _ = r.release(ctx, r.releasing(), errPanic) // release logs its own failure
		}
	}()
	resp, err := fn(hctx)
	back = true
	return resp, err
}

// keepLease renews the lease while the handler works past its deadline. Renewals begin
// after the time at which a killed process would be dead, and end with lease.unkeep.
// lost ends the handler's context.
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

// renew renews the lease if due, and returns the time to the next renewal; false
// if there is nothing left to renew.
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
	held, l, err := r.writer.send(ctx, change{prev: rec, next: next}, time.Now().Add(spare), patient)
	switch {
	case err != nil:
		r.ask.core.log.ErrorContext(ctx, "lease not renewed", "record", redact.Record(rec.PK), "error", err)
		return spare, true // we hold the lease until another attempt takes over
	case l == state.Fenced:
		r.ask.core.log.ErrorContext(ctx, "lease lost: the handler outlived it", "record", redact.Record(rec.PK))
		_ = r.gate.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))
		return 0, false
	case held.State != store.Open:
		return 0, false // answered after all: release will see the answer
	}
	r.ask.core.log.WarnContext(ctx, "handler works on after its time: lease renewed", "record", redact.Record(rec.PK), "until", held.Lease)
	r.progress.set(held) // the renewal, or an earlier write of this attempt that landed after all
	return 0, true
}

// stage keeps jobs for the next commit.
func (r *run) stage(ctx context.Context, jobs []Job) error {
	return r.gate.between(func() error {
		mine, err := r.checked(ctx, jobs)
		if err != nil {
			return err
		}
		if !r.progress.stage(mine) {
			return nil // the recorded phase that follows already has the jobs
		}
		return r.stages(ctx, nil)
	})
}

// stages returns why jobs can't be committed with all that waits for the next commit; nil
// if they can.
func (r *run) stages(ctx context.Context, jobs []Job) error {
	mine, err := r.checked(ctx, jobs)
	if err != nil {
		return err
	}
	all, err := r.progress.staged(ctx, mine, r.ask.core.due, r.writer.jobs)
	sizer, sizes := r.ask.core.store.(store.Sizer)
	if err != nil || !sizes {
		return err
	}
	rec := r.record()
	return sizer.Fits(rec, state.Advanced(rec, r.ask.core.opt.Now(), nil, all, nil))
}

// checked returns jobs with the trace of ctx, or why one of them can never be staged.
func (r *run) checked(ctx context.Context, jobs []Job) ([]Job, error) {
	for _, j := range jobs {
		if err := checkJob(j); err != nil {
			return nil, err
		}
	}
	mine := slices.Clone(jobs)
	r.watch.traced(ctx, mine)
	return mine, nil
}

// refuses reports whether err is a mistake that the same program will always
// repeat with this record. A retry doesn't help: people have to change the
// program or the record.
func refuses(err error) bool {
	for _, mistake := range []error{ErrPhaseOrder, ErrResult, ErrWrite, ErrKeyReused, ErrLookUp, ErrDeliveryKey, store.ErrTooLarge} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}
