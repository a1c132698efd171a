package idem

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// The commits of an attempt: a phase, the outcome of an intent, the answer, the
// mark of a stuck operation. Each of them goes through write.

// commit writes phases and all that waits for a commit, with the user's writes.
// Without a phase, or with one that only begins, what is staged for that phase
// stays with it.
func (f *flow) commit(ctx context.Context, phases []store.Phase, got collected, rerun bool) error {
	ends := len(phases) > 0 && !phases[0].Intent
	f.mu.Lock()
	all := slices.Concat(f.pending, phases)
	waiting, calls := f.waiting, slices.Concat(f.calls, got.calls)
	var err error
	if ends {
		waiting, err = f.stagedJobs(got.jobs)
	}
	f.mu.Unlock()
	if err == nil && len(waiting) > 0 {
		err = f.reaches("a phase that isn't the last stages jobs")
	}
	if err != nil {
		return f.fail(err)
	}
	_, err = f.write(ctx, func(base *store.Record) *store.Record {
		r := *state.Advanced(base, all, waiting, calls)
		r.Sent = state.Sending(r.Sent, got.sent)
		return &r
	}, got.writes, rerun)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.pending, f.waiting, f.calls = nil, nil, nil
	f.mu.Unlock()
	f.recorded(calls)
	if ends {
		f.passes(ctx, phases[0])
	}
	return nil
}

// replaceIntent puts phases, none or one, in the place of the intent that is
// the last of the record.
func (f *flow) replaceIntent(ctx context.Context, calls []string, phases ...store.Phase) error {
	f.mu.Lock()
	waiting, err := f.stagedJobs(nil)
	f.mu.Unlock()
	if err != nil {
		return f.fail(err)
	}
	_, err = f.write(ctx, func(base *store.Record) *store.Record {
		return state.IntentReplaced(base, phases, waiting, calls)
	}, nil, false)
	if err != nil {
		return err
	}
	if len(phases) > 0 {
		f.recorded(calls)
		f.passes(ctx, phases[0])
	}
	return nil
}

// passes notes that a phase is committed.
func (f *flow) passes(ctx context.Context, p store.Phase) {
	f.mu.Lock()
	f.passed++
	f.loose = nil
	ev := f.a.event(f.rec, nil)
	f.mu.Unlock() // a hook may ask for the operation's id
	ev.Phase = p.Name
	call(ctx, f.a.opt.Hooks.Committed, ev)
}

// finish stores the answer, together with writes and jobs and all that waits.
// Without an error, the operation has ended.
func (f *flow) finish(ctx context.Context, resp Response, writes []Write, jobs []Job, rerun bool) error {
	a := f.a
	a.cleaned(ctx, &resp)
	f.mu.Lock()
	phases := f.pending
	waiting, err := f.stagedJobs(jobs)
	if err == nil {
		err = f.leftover()
	}
	f.mu.Unlock()
	if err != nil {
		return f.fail(err)
	}
	stored := storedPart(resp, a.headers)
	var made *store.Record
	keeps := func() { // what a try has written beside the record is the next one's too
		if made != nil && made.Overflow != nil && made.Overflow.Count > 0 {
			f.kept = made.Overflow
		}
	}
	build := func(base *store.Record) *store.Record {
		keeps()
		made = state.Finished(state.Advanced(base, phases, waiting, nil), stored, a.opt.Now(), a.opt.Retention, a.opt.Tombstone)
		switch {
		case len(resp.Body) > a.opt.MaxBody || f.statusOnly:
			state.StatusOnly(made)
		case f.kept != nil && f.kept.SHA256 == sha256.Sum256(resp.Body):
			made.Overflow = f.kept // an earlier try has got that far
		}
		return made
	}
	rec, err := f.write(ctx, build, writes, rerun)
	if err != nil {
		keeps()
		return err
	}
	f.stop(a.finished(ctx, rec, made, resp))
	return nil
}

// giveUpCall marks the operation as stuck in s, whose outcome is unknown. What
// waits for a commit is stored with it: the settled operation goes on behind it.
func (f *flow) giveUpCall(ctx context.Context, s step, why string) error {
	return f.giveUp(ctx, why, store.Phase{Name: s.name, Intent: true})
}

// giveUp marks the operation as stuck, for a human to settle.
func (f *flow) giveUp(ctx context.Context, why string, begun ...store.Phase) error {
	a := f.a
	f.mu.Lock()
	phases, jobs, calls := slices.Concat(f.pending, begun), f.waiting, f.calls
	f.mu.Unlock()
	rec, err := f.write(ctx, func(base *store.Record) *store.Record {
		return state.GivenUp(state.Advanced(base, phases, jobs, calls), why)
	}, nil, false)
	if err != nil {
		return f.commitFailed(step{name: "that is to be settled"}, err) // the next attempt finds it open
	}
	a.log.ErrorContext(ctx, "operation is stuck and waits for an operator", "record", redact.Record(a.pk), "operation", rec.ID)
	stuckErr := a.phaseError("phase", ErrStuck)
	call(ctx, a.opt.Hooks.Stuck, a.event(rec, stuckErr))
	f.stop(Result{}, stuckErr)
	return stuckErr
}

// write sends what build makes of the record: as the claim where that is still
// to come, else as a commit. It keeps and returns the record as it then is.
func (f *flow) write(ctx context.Context, build func(*store.Record) *store.Record, writes []Write, rerun bool) (*store.Record, error) {
	a := f.a
	if f.leftBehind() {
		// The attempt has ended without this phase, and may have said so.
		return nil, f.fail(fmt.Errorf("%w: it outlived its handler", ErrPhaseOrder))
	}
	defer f.alone()()
	prev := f.record()
	if prev != nil && prev.State != store.Open {
		return nil, ErrAnswered // nothing goes on top of an answer
	}
	if prev == nil {
		held, v, err := a.claim(ctx, build, writes, rerun)
		if err != nil {
			return nil, err
		}
		return f.claimed(ctx, held, v, build)
	}
	next := build(prev)
	held, l, err := a.write(ctx, change{prev, next, writes, rerun}, a.until(prev), patient)
	if err == nil && l == state.Crossed && state.Renewal(held, prev) {
		// This attempt's, whose answer was lost: nothing else has changed.
		f.renewed()
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
		// An earlier write of this attempt, which it was told had failed, has landed
		// after all: nothing here can be relied on.
		f.set(held)
		return nil, store.ErrUnknown
	}
	if f.lost != nil {
		f.lost(ErrLeaseLost)
	}
	f.stop(a.overtaken(ctx, held))
	return nil, a.phaseError("phase", ErrLeaseLost)
}

// claimed takes in what a merged claim came to.
func (f *flow) claimed(ctx context.Context, held *store.Record, v state.Verdict, build func(*store.Record) *store.Record) (*store.Record, error) {
	a := f.a
	begin := v == state.TakeOver
	if v == state.InFlight {
		// The handler's writes are not sent again: it begins anew with what was there.
		var err error
		if held, v, err = a.patiently(ctx, held, v); err != nil {
			return nil, err
		}
		begin = v == state.Own || v == state.TakeOver
	}
	switch {
	case begin:
		// An earlier attempt's record: what is recorded there counts, so the handler
		// begins again with it.
		f.set(held)
		f.mu.Lock()
		f.restart = true
		f.mu.Unlock()
		f.stop(Result{}, ErrAnswered)
		return nil, ErrAnswered
	case v == state.Own:
		f.set(held)
		call(ctx, a.opt.Hooks.Claimed, a.event(held, nil))
		if !state.SameShape(held, build(a.fresh(a.opt.Now()))) {
			return nil, store.ErrUnknown // as crossed
		}
		return held, nil
	}
	f.stop(a.answer(ctx, held, v))
	return nil, ErrAnswered
}

// commitFailed puts the engine's words around what a commit came to, but for
// what the phase itself has to see.
func (f *flow) commitFailed(s step, err error) error {
	if _, ours := errors.AsType[*Error](err); ours || errors.Is(err, ErrAnswered) {
		return err
	}
	if errors.Is(err, store.ErrUnknown) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return f.a.phaseError("phase "+s.name, err)
}

// reaches refuses to reach other systems under a key that names a delivery.
func (f *flow) reaches(what string) error {
	if state.MayReach(f.a.req.DeliveryKey, f.record()) {
		return nil
	}
	return fmt.Errorf("%w: %s, and would do so again, under a new derived key, once the message comes back from a dead-letter queue with another id; "+
		"have a key that names the work: lambda.Batch.WithKey or WithBodyKey, or the message attribute lambda.KeyAttribute; "+
		"or say that you accept it: lambda.Batch.CallsAgainAfterRedrive", ErrDeliveryKey, what)
}
