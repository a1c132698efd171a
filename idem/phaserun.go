package idem

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The functions of a phase's run, in call order: runPhase, then atomic or foreign, then commitOutcome.

type phaseRun struct {
	run  *run
	spec phaseSpec
}

// runPhase runs a phase, from the check of its name to its commit. raw is the phase's result.
func (r *run) runPhase(ctx context.Context, s phaseSpec, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	if raw, recorded, err := r.gate.enter(s, r.progress.recall); recorded || err != nil {
		return raw, err
	}
	ctx, sp := r.watch.step(ctx, trace.Phase, cmp.Or(s.name, "finish"))
	back := false
	defer func() { // runs also after a panic of fn
		if !back {
			err = errPanic
		}
		end, over := errors.AsType[*attemptOver](err)
		if over {
			err = end.toPhase
		}
		sp.done(err)
		r.gate.done(end, err)
	}()
	p := phaseRun{r, s}
	if s.kind == foreign {
		raw, err = p.foreign(ctx, fn)
	} else {
		raw, err = p.atomic(ctx, fn)
	}
	back = true
	return raw, err
}

// rerunFor is the time within which an Atomic is run again after a conflict.
const rerunFor = 5 * time.Second

// phaseRun.atomic runs fn and commits the result. After a conflict, atomic repeats fn
// and the commit, for up to rerunFor.
func (p *phaseRun) atomic(ctx context.Context, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	until := time.Now().Add(rerunFor)
	for round := 0; ; round++ {
		tx := p.tx(ctx)
		raw, err := fn(ctx, tx)
		raw, err = p.commitOutcome(ctx, tx, raw, err)
		if !errors.Is(err, ErrConflict) || !p.run.times.rerun(ctx, round, until) {
			return raw, err
		}
	}
}

// phaseRun.tx returns an empty Tx for a run of the phase.
func (p *phaseRun) tx(ctx context.Context) *Tx {
	tx := p.run.progress.tx()
	tx.checkJobs = func(jobs []Job) error { return p.run.checkJobs(ctx, jobs) }
	if p.spec.kind == foreign {
		tx.called, tx.others = p.run.calls.keyGiven, p.madeByAnother
	}
	if p.spec.lookUp != nil {
		tx.only = p.spec.only(tx.made)
	}
	return tx
}

// commitOutcome commits what fn has given: a result or an answer. If fn or its Tx has
// failed, commitOutcome commits nothing and returns an error.
func (p *phaseRun) commitOutcome(ctx context.Context, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	p.run.watch.giveTrace(ctx, got.jobs)
	answer, responds := errors.AsType[*answered](err)
	switch {
	case errors.Is(err, ErrResult):
		return nil, p.run.gate.fail(err)
	case err != nil && !responds:
		if _, retry := errors.AsType[*safe](err); retry {
			p.run.calls.recorded(got.calls) // the calls had no effect, so none is in doubt
		}
		if p.spec.kind == foreign && txErr != nil { // err may be only a consequence: txErr, from a write, a job or a key, has ended fn's context
			return nil, p.run.gate.fail(errors.Join(txErr, err))
		}
		return nil, err
	case txErr != nil:
		return nil, p.run.gate.fail(txErr)
	}
	if err := p.run.gate.mayCommit(); err != nil {
		return nil, err
	}
	if p.spec.kind == foreign {
		got.calls = append(got.calls, state.Marks(p.spec.name)...)
	}
	if responds {
		resp, rerr := p.run.ask.req.response(answer.v)
		if rerr != nil {
			return nil, p.run.gate.fail(rerr)
		}
		return nil, p.respond(ctx, resp, got.writes, got.jobs, err)
	}
	if err := p.run.commit(ctx, store.Phase{Name: p.spec.name, Result: raw}, got); err != nil {
		return nil, commitFailed(p.run.gate.pk, p.spec.name, err)
	}
	return p.run.progress.lastResult(), nil
}

// phaseRun.respond ends the operation with the phase's answer, which is stored together
// with writes and jobs. It returns an *attemptOver if the attempt has ended, else
// another error.
func (p *phaseRun) respond(ctx context.Context, resp Response, writes []Write, jobs []Job, answer error) error {
	p.run.ask.core.cleaned(ctx, p.run.gate.pk, &resp)
	end, err := p.run.endInPhase(ctx, resp, writes, jobs)
	switch {
	case err != nil:
		return commitFailed(p.run.gate.pk, p.spec.name, err)
	case end.toPhase == nil:
		end.toPhase = answer
	default:
		end.toPhase = commitFailed(p.run.gate.pk, p.spec.name, end.toPhase)
	}
	return end
}
