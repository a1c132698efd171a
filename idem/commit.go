package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The commits of a run before its answer: the mark of a call, an intent (a call begins
// that must not be repeated), the outcome of that call, a phase, and a stuck operation.
// The commit of the answer is in finish.go. All commits of a run go through run.write.

// markCall writes the mark of a call that follows, and the hashes of the call's data
// (the parameter sent). From this write on, the record doesn't expire, so the record
// shows the call even if the process dies.
func (r *run) markCall(ctx context.Context, mark string, sent map[string]string) error {
	_, err := r.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.Calling(base, mark, sent)
	}, nil)
	return err
}

// run.commit writes a phase together with the user's writes and jobs. An intent has
// neither writes nor jobs, and its phase goes on: the call follows. Any other phase is
// over after its commit, so commit then calls committed.
func (r *run) commit(ctx context.Context, phase store.Phase, got collected) error {
	jobs, err := jobsOfCommit(ctx, r, got.jobs)
	if err == nil && len(jobs) > 0 {
		err = refuseDeliveryKey(r.ask.req.DeliveryKey, r.record(), "a phase that isn't the last stages jobs")
	}
	if err != nil {
		return r.gate.fail(err)
	}
	_, err = r.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.Advanced(base, r.ask.core.opt.Now(), []store.Phase{phase}, jobs, got.calls)
	}, got.writes)
	if err != nil || phase.Intent {
		return err
	}
	r.committed(ctx, phase.Name, len(jobs), got.calls)
	return nil
}

// replaceIntent removes the record's last phase, which is an intent. If phases has an
// element, this element takes the intent's place. replaceIntent has no parameter for
// jobs, since a Foreign phase has no jobs.
func (r *run) replaceIntent(ctx context.Context, calls []string, phases ...store.Phase) error {
	_, err := r.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.IntentReplaced(base, r.ask.core.opt.Now(), phases, calls)
	}, nil)
	if err != nil {
		return err
	}
	if len(phases) > 0 {
		r.committed(ctx, phases[0].Name, 0, calls)
	}
	return nil
}

// run.committed updates the run and tells the hooks, after a phase is stored with its
// jobs and calls.
func (r *run) committed(ctx context.Context, phase string, jobs int, calls []string) {
	r.progress.advance()
	r.calls.recorded(calls)
	r.watch.tell(ctx, evCommitted, r.record(), nil, func(ev *Event) {
		ev.Phase, ev.Duration, ev.Jobs = phase, r.progress.duration(), jobs
	})
}

func (r *run) markStuck(ctx context.Context, why string, begun ...store.Phase) error {
	return r.stick(ctx, why, func(base *store.Record) *store.Record {
		return state.Advanced(base, r.ask.core.opt.Now(), begun, nil, nil)
	})
}

// run.stick stores the run's record as stuck. First, the function `before` adds to the
// record what else must be stored. The result is an *attemptOver if the record is stuck
// or another attempt has taken over. Any other error means that the write failed.
func (r *run) stick(ctx context.Context, why string, before func(*store.Record) *store.Record) error {
	rec, err := r.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.MadeStuck(before(base), r.ask.core.opt.Now(), why)
	}, nil)
	if err != nil {
		return commitFailed(r.gate.pk, "that is to be settled", err) // if the write failed, the next attempt finds the operation open
	}
	return r.stuck(ctx, rec)
}

// run.stuck tells the hooks that rec is marked as stuck.
func (r *run) stuck(ctx context.Context, rec *store.Record) *attemptOver {
	r.ask.core.log.ErrorContext(ctx, "operation is stuck and waits for an operator", "record", redact.Record(rec.PK), "operation", rec.ID)
	stuckErr := phaseError("phase", r.gate.pk, ErrStuck)
	r.watch.tell(ctx, evStuck, rec, stuckErr)
	return &attemptOver{err: stuckErr, toPhase: stuckErr}
}

// run.write stores the record that build returns. The stored record becomes the run's
// record, and write returns it. The error is an *attemptOver if another attempt has
// taken over. kind names the write in traces.
func (r *run) write(ctx context.Context, kind trace.Kind, build func(*store.Record) *store.Record, writes []Write) (rec *store.Record, err error) {
	ctx, sp := r.watch.step(ctx, kind, "")
	defer func() {
		if sp.end != nil {
			r.watch.met(rec)
			sp.done(err)
		}
	}()
	if r.gate.hasOutlived() {
		// The handler has returned while this phase was running, so the client may already
		// have an answer.
		return nil, r.gate.fail(fmt.Errorf("%w: it outlived its handler", ErrPhaseOrder))
	}
	if r.lease.turn != nil { // renewals and commits write as the same owner, so they must not overlap
		r.lease.turn <- struct{}{}
		defer func() { <-r.lease.turn }()
	}
	prev := r.record()
	if prev.State != store.Open {
		return nil, ErrAnswered // nothing may follow an answer
	}
	send := func() (*store.Record, state.Landing, error) {
		return r.writer.write(ctx, change{prev: prev, next: build(prev), writes: writes, rerun: len(writes) > 0}, r.times.writeDeadline(prev), untilDeadline)
	}
	held, l, err := send()
	if l == state.Crossed && state.Renewal(held, prev) {
		// Only our own renewal, whose acknowledgement was lost, has changed the record. So
		// write again, from the renewed record.
		prev = held
		held, l, err = send()
	}
	switch {
	case err != nil:
		return nil, err
	case l == state.Landed:
		r.progress.set(held)
		return held, nil
	case l == state.Crossed:
		// An earlier write of this attempt was reported as failed, but has landed, so the
		// record's contents are uncertain.
		r.progress.set(held)
		return nil, store.ErrUnknown
	}
	r.lease.loses()
	res, err := r.answers().overtaken(ctx, r.gate.pk, held)
	return nil, &attemptOver{res, err, phaseError("phase", r.gate.pk, ErrLeaseLost)}
}

// commitFailed wraps the error of a commit in an *Error that the handler may return. If
// err contains an *Error already, commitFailed returns err unchanged.
func commitFailed(pk, phase string, err error) error {
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	if errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrSealed) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return phaseError("phase "+phase, pk, err)
}
