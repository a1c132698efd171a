package idem

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// flow is the course of one attempt through its handler's phases. Phases run in phaserun.go;
// commit.go commits them and ends the flow, or release.go does.
type flow struct {
	a *attempt

	progress
	gate
	lease
	log calls

	statusOnly bool            // store only the answer's status
	kept       *store.Overflow // body that a store has written for an answer that is not stored yet

	within opContext // the handler's, in the same block
}

// flow begins the flow of an attempt, which holds rec.
func (a *attempt) flow(rec *store.Record) *flow {
	return &flow{a: a, progress: progress{rec: rec, started: time.Now()}, gate: gate{about: &a.subject}}
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
	f.timer = time.AfterFunc(time.Until(f.a.deadline)+f.a.spare, func() {
		f.renews(func() (time.Duration, bool) { return f.renew(ctx) })
	})
}

// stage keeps jobs for the next commit.
func (f *flow) stage(ctx context.Context, jobs []Job) error {
	return f.between(func() error {
		mine, err := f.checked(ctx, jobs)
		if err != nil {
			return err
		}
		if !f.progress.stage(mine) {
			return nil // the recorded phase that follows already has the jobs
		}
		return f.stages(ctx, nil)
	})
}

// stages returns why jobs can't be committed with all that waits for the next commit; nil
// if they can.
func (f *flow) stages(ctx context.Context, jobs []Job) error {
	mine, err := f.checked(ctx, jobs)
	if err != nil {
		return err
	}
	all, err := f.staged(ctx, mine, f.a.due, f.a.jobsNow)
	sizer, sizes := f.a.store.(store.Sizer)
	if err != nil || !sizes {
		return err
	}
	rec := f.record()
	return sizer.Fits(rec, state.Advanced(rec, f.a.opt.Now(), nil, all, nil))
}

// checked returns jobs with the trace of ctx, or why one of them can never be staged.
func (f *flow) checked(ctx context.Context, jobs []Job) ([]Job, error) {
	for _, j := range jobs {
		if err := checkJob(j); err != nil {
			return nil, err
		}
	}
	mine := slices.Clone(jobs)
	f.a.traced(ctx, mine)
	return mine, nil
}

// releasing describes an attempt without an answer. If the program refuses to
// continue, Why is the phase's error, which the handler may have hidden.
func (f *flow) releasing() state.Release {
	left, err := f.failure()
	b := state.Release{Calls: f.log.out(left), Sent: f.log.sentOut()}
	if refuses(err) {
		b.Refusal, b.Why = err, redact.Error(err)
	}
	return b
}

// refuses reports whether err is a mistake that the same program will always
// repeat with this record. A retry doesn't help: people have to change the
// program or the record.
func refuses(err error) bool {
	for _, mistake := range []error{ErrPhaseOrder, ErrResult, ErrWrite, ErrKeyReused, ErrDeliveryKey, store.ErrTooLarge} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}
