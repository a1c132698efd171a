package idem

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The commits of an attempt: a phase, the outcome of an intent, the answer, the
// mark of a stuck operation. All of them go through flow.write.

// keeps writes that the record is kept: a call follows, which sends sent and leaves mark if
// the process dies.
func (f *flow) keeps(ctx context.Context, mark string, sent map[string]string) error {
	_, err := f.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.Calling(base, mark, sent)
	}, nil, false)
	return err
}

// commit writes a phase, with the user's writes, and ends it unless it is an intent.
// Jobs that were staged for the phase join its end.
func (f *flow) commit(ctx context.Context, phase store.Phase, got collected, rerun bool) error {
	var jobs map[string]Job
	var err error
	if !phase.Intent {
		jobs, err = f.staged(ctx, got.jobs, f.a.due, f.a.jobsNow)
	}
	if err == nil && len(jobs) > 0 {
		err = f.reaches("a phase that isn't the last stages jobs")
	}
	if err != nil {
		return f.fail(err)
	}
	_, err = f.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.Advanced(base, f.a.opt.Now(), []store.Phase{phase}, jobs, got.calls)
	}, got.writes, rerun)
	if err != nil || phase.Intent {
		return err
	}
	f.committed(ctx, phase.Name, len(jobs), got.calls)
	return nil
}

// replaceIntent replaces the intent at the end of the record by phases: none or
// one. No job waits: the intent was committed with all of them, and takes none.
func (f *flow) replaceIntent(ctx context.Context, calls []string, phases ...store.Phase) error {
	_, err := f.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.IntentReplaced(base, f.a.opt.Now(), phases, nil, calls)
	}, nil, false)
	if err != nil {
		return err
	}
	if len(phases) > 0 {
		f.committed(ctx, phases[0].Name, 0, calls)
	}
	return nil
}

// committed notes and tells that a phase is stored, with jobs and calls.
func (f *flow) committed(ctx context.Context, phase string, jobs int, calls []string) {
	f.pass()
	f.log.recorded(calls)
	f.a.tell(ctx, evCommitted, f.record(), nil, func(ev *Event) {
		ev.Phase, ev.Duration, ev.Jobs = phase, f.duration(), jobs
	})
}

// conclude stores the handler's answer and returns it. The effect has happened,
// so a failed write need not be an error: at worst, the answer of a handler
// without phases is returned unstored. A failure is an error if the commit
// contains jobs, and with phases or a stored request, since another attempt may come to
// another answer.
func (f *flow) conclude(ctx context.Context, resp Response) (Result, error) {
	a := f.a
	var err error
	for try := range 3 {
		if f.statusOnly = try == 2; f.statusOnly {
			if !f.mayDrop(err) {
				break
			}
			// That the operation is done matters more than its answer.
			a.log.ErrorContext(ctx, "answer can't be stored: storing its status only", "record", redact.Record(a.pk), "error", err)
		}
		err = f.finish(ctx, resp, nil, nil, false)
		if end := f.ended(); end != nil {
			return end.res, end.err
		}
		if rec := f.record(); rec != nil && rec.State == store.Done { // an answer whose write was reported as failed is stored after all
			return reply{a}.answer(ctx, rec, state.Replay)
		}
		if store.Passing(err) {
			break
		}
	}
	rec := f.record()
	if refuses(err) && rec.Keep == store.KeepOpen { // no retry helps: people do
		return f.release(ctx, Response{}, f.fail(err), err)
	}
	// Keep the lease: a retry must not repeat the effect at once.
	err = a.fail("finish", err)
	a.log.ErrorContext(ctx, "answer not stored: a retry after the lease runs again", "record", redact.Record(a.pk), "error", err)
	a.tell(ctx, evFailed, rec, err)
	if rec.Keep == store.KeepOpen || f.hasLoose() {
		return Result{}, a.unavailable("finish", err)
	}
	a.tell(ctx, evUnstored, rec, err)
	return Result{Response: resp, Unstored: true}, nil
}

// mayDrop reports whether an answer whose storing failed with err may be given up for
// its status: if it can never fit, or if nothing but the record shows that a handler
// without phases has had its effect. A record that is kept stays open instead: its next
// attempt comes to an answer that can be stored.
func (f *flow) mayDrop(err error) bool {
	return errors.Is(err, store.ErrTooLarge) || !state.Kept(f.record())
}

// finish stores the answer, which is clean, together with writes and jobs. Without an
// error, the operation has ended.
func (f *flow) finish(ctx context.Context, resp Response, writes []Write, jobs []Job, rerun bool) error {
	a := f.a
	waiting, err := f.staged(ctx, jobs, a.due, a.jobsNow)
	if err == nil {
		err = f.leftover(&f.log)
	}
	if err != nil {
		return f.fail(err)
	}
	if f.log.missed(f.record().Doubts) {
		f.withholds(ctx, resp)
		return ErrAnswered
	}
	stored := storedPart(resp, a.headers)
	var made *store.Record
	keeps := func() { // the next try uses the companions that a try has written
		if made != nil {
			f.kept = made.Overflow
		}
	}
	build := func(base *store.Record) *store.Record {
		keeps()
		now := a.opt.Now()
		made = state.Finished(state.Advanced(base, now, nil, waiting, nil), stored, now)
		switch {
		case len(resp.Body) > a.opt.MaxBody || f.statusOnly:
			state.StatusOnly(made)
		case f.kept != nil && f.kept.SHA256 == sha256.Sum256(resp.Body):
			made.Overflow = f.kept // an earlier try has written the body
		}
		return made
	}
	rec, err := f.write(ctx, trace.Finish, build, writes, rerun)
	if err != nil {
		keeps()
		return err
	}
	f.stop(reply{a}.finished(ctx, rec, made, resp, len(waiting)))
	return nil
}

// markStuck marks the operation as stuck, for a human to settle.
func (f *flow) markStuck(ctx context.Context, why string, begun ...store.Phase) error {
	a := f.a
	return f.stick(ctx, why, func(base *store.Record) *store.Record {
		return state.Advanced(base, a.opt.Now(), begun, nil, nil)
	})
}

// tires marks the operation as stuck instead of releasing it once more: its handler
// gives an answer each time that is not stored, and the operation can't end by itself.
func (f *flow) tires(ctx context.Context, b state.Release) error {
	return f.stick(ctx, fmt.Sprintf("not completed in %d tries: %s", f.a.opt.MaxTries, b.Why), func(base *store.Record) *store.Record {
		return state.Released(base, f.a.opt.Now(), b)
	})
}

// stick marks the record that before returns as stuck.
func (f *flow) stick(ctx context.Context, why string, before func(*store.Record) *store.Record) error {
	a := f.a
	rec, err := f.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		return state.MadeStuck(before(base), a.opt.Now(), why)
	}, nil, false)
	if err != nil {
		return f.commitFailed("that is to be settled", err) // the next attempt finds the operation open
	}
	a.log.ErrorContext(ctx, "operation is stuck and waits for an operator", "record", redact.Record(a.pk), "operation", rec.ID)
	stuckErr := a.phaseError("phase", ErrStuck)
	a.tell(ctx, evStuck, rec, stuckErr)
	f.stop(Result{}, stuckErr)
	return stuckErr
}

// write sends the record that build returns, and sets and returns the resulting record.
// kind names the write in traces.
func (f *flow) write(ctx context.Context, kind trace.Kind, build func(*store.Record) *store.Record, writes []Write, rerun bool) (rec *store.Record, err error) {
	a := f.a
	ctx, sp := a.step(ctx, kind, "")
	defer func() {
		if sp.end != nil {
			a.met(rec)
			sp.done(err)
		}
	}()
	if left, _ := f.failure(); left {
		// The attempt has ended without this phase, and may have been answered.
		return nil, f.fail(fmt.Errorf("%w: it outlived its handler", ErrPhaseOrder))
	}
	if f.turn != nil { // renewals and commits are writes of one owner, one after the other
		f.turn <- struct{}{}
		defer func() { <-f.turn }()
	}
	prev := f.record()
	if prev.State != store.Open {
		return nil, ErrAnswered // nothing may follow an answer
	}
	next := build(prev)
	held, l, err := a.write(ctx, change{prev, next, writes, rerun}, a.until(prev), patient)
	if l == state.Crossed && state.Renewal(held, prev) {
		// Our own renewal, whose acknowledgement was lost: nothing else has changed.
		prev = held
		next = build(prev)
		held, l, err = a.write(ctx, change{prev, next, writes, rerun}, a.until(prev), patient)
	}
	switch {
	case err != nil:
		return nil, err
	case l == state.Landed:
		f.set(held)
		return held, nil
	case l == state.Crossed:
		// An earlier write of this attempt, which was reported as failed, has landed
		// after all: the record's contents are uncertain.
		f.set(held)
		return nil, store.ErrUnknown
	}
	f.loses()
	f.stop(reply{a}.overtaken(ctx, held))
	return nil, a.phaseError("phase", ErrLeaseLost)
}

// commitFailed wraps the error of a commit, except errors that the phase itself
// must see.
func (f *flow) commitFailed(phase string, err error) error {
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	if errors.Is(err, store.ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return f.a.phaseError("phase "+phase, err)
}

// reaches refuses calls and jobs under a key that names a delivery.
func (f *flow) reaches(what string) error {
	if state.MayReach(f.a.req.DeliveryKey, f.record()) {
		return nil
	}
	return fmt.Errorf("%w: %s, and would do so again, under a new derived key, once the message comes back from a dead-letter queue with another id; "+
		"have a key that names the work: lambda.Batch.WithKey or WithBodyKey, or the message attribute lambda.KeyAttribute; "+
		"or say that you accept it: lambda.Batch.CallsAgainAfterRedrive", ErrDeliveryKey, what)
}
