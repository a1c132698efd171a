package idem

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The functions of a phase's run, in call order: do, then atomic or foreign, then outcome.

// phaseRun is one run of a phase.
type phaseRun struct {
	run  *run
	step step
}

// do runs a phase, from the check of its name to its commit. raw is the phase's result.
func (r *run) do(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	if raw, recorded, err := r.gate.enter(s, r.progress.recall); recorded || err != nil {
		return raw, err
	}
	ctx, sp := r.watch.step(ctx, trace.Phase, cmp.Or(s.name, "finish"))
	back := false
	defer func() { // runs also after a panic of fn
		if !back {
			err = errPanic
		}
		end, over := errors.AsType[*ended](err)
		if over {
			err = end.toPhase
		}
		sp.done(err)
		r.gate.leave(end, err)
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

// rerunFor limits how long an Atomic is run again after conflicts.
const rerunFor = 5 * time.Second

// atomic runs fn and commits, again after each conflict, for up to rerunFor.
func (p *phaseRun) atomic(ctx context.Context, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	until := time.Now().Add(rerunFor)
	for round := 0; ; round++ {
		tx := p.tx(ctx)
		raw, err := fn(ctx, tx)
		raw, err = p.outcome(ctx, tx, raw, err)
		if !errors.Is(err, ErrConflict) || !p.run.times.rerun(ctx, round, until) {
			return raw, err
		}
	}
}

// foreign marks the record as kept until the operation ends, calls fn once, and commits.
func (p *phaseRun) foreign(ctx context.Context, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	if p.step.lookUp == nil && p.run.progress.begun() {
		return nil, p.run.markStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt began the call, and never came back", p.step.name))
	}
	if p.run.progress.hasLoose() {
		return nil, p.run.gate.fail(fmt.Errorf("%w: jobs are staged for %q, a Foreign: stage them for the Atomic or Finish behind it", ErrWrite, p.step.name))
	}
	if err := reaches(p.run.ask.req.DeliveryKey, p.run.record(), fmt.Sprintf("phase %q calls another system", p.step.name)); err != nil {
		return nil, p.run.gate.fail(err)
	}
	sent, err := p.sends()
	if err != nil {
		return nil, p.run.gate.fail(err)
	}
	for call := range sent {
		if err := p.madeByAnother(call); err != nil {
			return nil, p.markCallStuck(ctx, err.Error())
		}
	}
	if p.step.lookUp != nil {
		if raw, done, err := p.lookUp(ctx, sent); done || err != nil {
			return raw, err
		}
	} else if since := p.forgotten(); !since.IsZero() {
		return nil, p.markCallStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt may have made the call since %s, and the provider may no longer know the call's key",
			p.step.name, since.UTC().Format(time.RFC3339)))
	}
	if p.step.recordsBegin() {
		if err := p.intend(ctx); err != nil {
			return nil, err
		}
	} else if mark := p.step.doubtful("").Mark(); p.run.record().Mark != mark || p.unsent(sent) {
		if err := p.alive(ctx); err != nil {
			return nil, err
		}
		if err := p.run.mark(ctx, mark, sent); err != nil {
			return nil, commitFailed(p.run.gate.pk, p.step.name, err)
		}
	}
	if call := p.differs(sent); call != "" && !p.step.recordsBegin() {
		return nil, p.markCallStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: the call %s may have been made with other parameters than it would send now", p.step.name, call))
	}
	if err := p.alive(ctx); err != nil {
		if !p.step.recordsBegin() {
			return nil, err
		}
		if rerr := p.run.replaceIntent(ctx, nil); rerr != nil {
			return nil, commitFailed(p.run.gate.pk, p.step.name, rerr)
		}
		return nil, err
	}
	p.run.calls.enter(p.step.name)
	tx := p.tx(ctx)
	raw, err := p.call(ctx, tx, fn)
	if p.step.recordsBegin() {
		return p.endIntent(ctx, tx, raw, err)
	}
	return p.outcome(ctx, tx, raw, err)
}

// call runs the function of a Foreign.
func (p *phaseRun) call(ctx context.Context, tx *Tx, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	ctx, sp := p.run.watch.step(ctx, trace.Call, p.step.name)
	ctx, tx.refuse = context.WithCancelCause(ctx)
	defer tx.refuse(nil)
	back := false
	defer func() {
		end := err
		if !back {
			end = errPanic
		}
		sp.done(end)
	}()
	raw, err = fn(ctx, tx)
	back = true
	return raw, err
}

// sends returns hashes of the data that the phase's calls send, by the calls' names.
func (p *phaseRun) sends() (map[string]string, error) {
	tx := p.run.progress.tx()
	sent := make(map[string]string, len(p.step.sends))
	for _, one := range p.step.sends {
		raw, err := json.Marshal(one.v)
		if err != nil {
			return nil, fmt.Errorf("%w: what %q sends: %w", ErrResult, p.step.name, err)
		}
		sent[callName(tx.made, one.service, one.step)] = sentHash(tx.id, raw)
	}
	p.run.calls.send(sent)
	return sent, nil
}

// sentHash hashes the data that a call of an operation sends.
func sentHash(operation string, raw []byte) string {
	sum := sha256.Sum256(append([]byte(operation), raw...))
	return hex.EncodeToString(sum[:16])
}

// unsent reports whether an earlier attempt's mark lacks one of the hashes in sent.
func (p *phaseRun) unsent(sent map[string]string) bool {
	rec := p.run.record()
	if state.LookedUpInVain(rec) {
		return true // after the look-up, another copy of the call follows
	}
	for call := range sent {
		if _, known := rec.Sent[call]; len(rec.Doubts) > 0 && !known {
			return true
		}
	}
	return false
}

// forgotten returns the time since which a call of the phase may have been made, if the
// provider may have forgotten the key meanwhile. Otherwise forgotten returns the zero time.
func (p *phaseRun) forgotten() (since time.Time) {
	rec, d := p.run.record(), p.step.doubtful("")
	d.Keyless = d.Keyless && slices.ContainsFunc(rec.Doubts, state.IsMark) // if a named call is in doubt, intend returns an error
	if !d.Asks(rec, p.run.ask.core.opt.Now()) {
		return time.Time{}
	}
	return rec.DoubtSince
}

// intend commits the begin of a call that can't be repeated.
func (p *phaseRun) intend(ctx context.Context) error {
	if err := p.run.calls.unrepeated(p.run.record().Doubts, fmt.Sprintf("%q, which is NotIdempotent, begins", p.step.name)); err != nil {
		return p.run.gate.fail(err)
	}
	if err := p.alive(ctx); err != nil {
		return err
	}
	if err := p.run.commit(ctx, p.step.begins(), collected{}); err != nil {
		return commitFailed(p.run.gate.pk, p.step.name, err)
	}
	return nil
}

// differs returns a call that may have been made with different data, or "".
func (p *phaseRun) differs(sent map[string]string) string {
	rec := p.run.record()
	for call, hash := range sent {
		if first := rec.Sent[call]; first != "" && first != hash {
			return call
		}
	}
	return ""
}

// alive refuses a call whose context is over. The call would fail before anything
// is sent, but its error could not show that.
func (p *phaseRun) alive(ctx context.Context) error {
	why := context.Cause(ctx)
	if why == nil && p.step.lookUp != nil && p.run.ask.core.opt.Now().After(p.run.record().Lease) {
		// The process was paused: the record says that no copy of the call is sent after the
		// lease.
		why = errors.New("its lease is over")
	}
	if why == nil {
		return nil
	}
	return p.run.gate.fail(fmt.Errorf("%w: phase %q is not begun: %w", ErrNoTime, p.step.name, why))
}

// tx returns an empty Tx for a run of the phase.
func (p *phaseRun) tx(ctx context.Context) *Tx {
	tx := p.run.progress.tx()
	tx.stageable = func(jobs []Job) error { return p.run.stageable(ctx, jobs) }
	if p.step.kind == foreign {
		tx.called, tx.others = p.run.calls.ask, p.madeByAnother
	}
	if p.step.lookUp != nil {
		tx.only = p.step.only(tx.made)
	}
	return tx
}

// madeByAnother refuses a call that is never repeated, if a phase of another name may have
// made it: the call would be made twice under one key.
func (p *phaseRun) madeByAnother(call string) error {
	if other := state.SentByAnother(p.run.record(), p.step.name, call); other != "" {
		return fmt.Errorf("%w: phase %q may have made the call %s: people decide", ErrKeyReused, other, call)
	}
	return nil
}

// outcome commits the result of a run of a phase.
func (p *phaseRun) outcome(ctx context.Context, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	p.run.watch.traced(ctx, got.jobs)
	answer, responds := errors.AsType[*answered](err)
	switch {
	case errors.Is(err, ErrResult):
		return nil, p.run.gate.fail(err)
	case err != nil && !responds:
		if _, retry := errors.AsType[*safe](err); retry {
			p.run.calls.recorded(got.calls) // the calls had no effect, so none is in doubt
		}
		if p.step.kind == foreign && txErr != nil { // the refusal has ended the phase's context
			return nil, p.run.gate.fail(errors.Join(txErr, err))
		}
		return nil, err
	case txErr != nil:
		return nil, p.run.gate.fail(txErr)
	}
	if err := p.run.gate.refused(); err != nil {
		return nil, err
	}
	if p.step.kind == foreign {
		got.calls = append(got.calls, state.Marks(p.step.name)...)
	}
	if responds {
		resp, rerr := p.run.ask.req.response(answer.v)
		if rerr != nil {
			return nil, p.run.gate.fail(rerr)
		}
		return nil, p.respond(ctx, resp, got.writes, got.jobs, err)
	}
	if err := p.run.commit(ctx, store.Phase{Name: p.step.name, Result: raw}, got); err != nil {
		return nil, commitFailed(p.run.gate.pk, p.step.name, err)
	}
	return p.run.progress.lastResult(), nil
}

// respond ends the operation with the phase's answer, which is stored together with writes
// and jobs. It returns an *ended, or an error if the operation has not ended.
func (p *phaseRun) respond(ctx context.Context, resp Response, writes []Write, jobs []Job, answer error) error {
	p.run.ask.core.cleaned(ctx, p.run.gate.pk, &resp)
	end, err := p.run.ends(ctx, resp, writes, jobs)
	switch {
	case err != nil:
		return commitFailed(p.run.gate.pk, p.step.name, err)
	case end.toPhase == nil:
		end.toPhase = answer
	default:
		end.toPhase = commitFailed(p.run.gate.pk, p.step.name, end.toPhase)
	}
	return end
}

// endIntent writes the outcome of a call that can't be repeated.
func (p *phaseRun) endIntent(ctx context.Context, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	answer, responds := errors.AsType[*answered](err)
	_, retry := errors.AsType[*safe](err)
	var resp Response
	if txErr == nil && !retry {
		txErr = p.run.gate.refused()
	}
	if responds && txErr == nil {
		resp, txErr = p.run.ask.req.response(answer.v)
	}
	switch {
	case retry && txErr == nil:
		// Remove the intent, as if the call had never begun. The key stays, and the call
		// may be made again.
		p.run.calls.recorded(got.calls)
		if rerr := p.run.replaceIntent(ctx, nil); rerr != nil {
			return nil, commitFailed(p.run.gate.pk, p.step.name, rerr)
		}
		return nil, err
	case err != nil && !responds || txErr != nil:
		return nil, p.run.markStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: %s", p.step.name, redact.Error(errors.Join(err, txErr))))
	case responds:
		p.run.progress.advance() // the phase's outcome is the answer
		return nil, p.respond(ctx, resp, nil, nil, err)
	}
	if err := p.run.replaceIntent(ctx, append(got.calls, state.Marks(p.step.name)...), store.Phase{Name: p.step.name, Result: raw}); err != nil {
		return nil, commitFailed(p.run.gate.pk, p.step.name, err)
	}
	return p.run.progress.lastResult(), nil
}

// markCallStuck marks the operation as stuck in the phase, whose call has an unknown
// outcome.
func (p *phaseRun) markCallStuck(ctx context.Context, why string) error {
	return p.run.markStuck(ctx, why, p.step.begins())
}
