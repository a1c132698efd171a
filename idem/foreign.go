package idem

import (
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

// This file runs a Foreign phase. The commit is in phaserun.go.

// phaseRun.foreign runs a Foreign phase. It records that a call may follow, which keeps
// the key from expiring until the operation ends. Then foreign calls fn once, and commits
// the outcome.
//
// If an earlier attempt may have made the call, and a repetition isn't safe, foreign
// looks the call up. If the phase has no look-up, foreign marks the operation as stuck.
func (p *phaseRun) foreign(ctx context.Context, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	if p.spec.lookUp == nil && p.run.progress.begun() {
		return nil, p.run.markStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt began the call, and never came back", p.spec.name))
	}
	if p.run.progress.hasLoose() {
		return nil, p.run.gate.fail(fmt.Errorf("%w: jobs are staged for %q, a Foreign: stage them for the Atomic or Finish behind it", ErrWrite, p.spec.name))
	}
	if err := refuseDeliveryKey(p.run.ask.req.DeliveryKey, p.run.record(), fmt.Sprintf("phase %q calls another system", p.spec.name)); err != nil {
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
	if p.spec.lookUp != nil {
		if raw, done, err := p.lookUp(ctx, sent); done || err != nil {
			return raw, err
		}
	} else if since := p.forgotten(); !since.IsZero() {
		return nil, p.markCallStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt may have made the call since %s, and the provider may no longer know the call's key",
			p.spec.name, since.UTC().Format(time.RFC3339)))
	}
	if p.spec.recordsBegin() {
		if err := p.intend(ctx); err != nil {
			return nil, err
		}
	} else if mark := p.spec.doubtful("").Mark(); p.run.record().Mark != mark || p.unsent(sent) {
		if err := p.alive(ctx); err != nil {
			return nil, err
		}
		if err := p.run.markCall(ctx, mark, sent); err != nil {
			return nil, commitFailed(p.run.gate.pk, p.spec.name, err)
		}
	}
	if call := p.differs(sent); call != "" && !p.spec.recordsBegin() {
		return nil, p.markCallStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: the call %s may have been made with other parameters than it would send now", p.spec.name, call))
	}
	if err := p.alive(ctx); err != nil {
		if !p.spec.recordsBegin() {
			return nil, err
		}
		if rerr := p.run.replaceIntent(ctx, nil); rerr != nil {
			return nil, commitFailed(p.run.gate.pk, p.spec.name, rerr)
		}
		return nil, err
	}
	p.run.calls.enter(p.spec.name)
	tx := p.tx(ctx)
	raw, err := p.call(ctx, tx, fn)
	if p.spec.recordsBegin() {
		return p.endIntent(ctx, tx, raw, err)
	}
	return p.commitOutcome(ctx, tx, raw, err)
}

func (p *phaseRun) call(ctx context.Context, tx *Tx, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	ctx, sp := p.run.watch.step(ctx, trace.Call, p.spec.name)
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

// phaseRun.sends returns the hash of the data that each call of the phase sends, by the
// call's name.
func (p *phaseRun) sends() (map[string]string, error) {
	tx := p.run.progress.tx()
	sent := make(map[string]string, len(p.spec.sends))
	for _, one := range p.spec.sends {
		raw, err := json.Marshal(one.v)
		if err != nil {
			return nil, fmt.Errorf("%w: what %q sends: %w", ErrResult, p.spec.name, err)
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

// phaseRun.unsent reports whether a record that already has the phase's mark must be
// written again before the call. The record must be written again if the mark of an
// earlier attempt lacks one of the hashes in sent, or if the note of an earlier look-up
// must be ended.
func (p *phaseRun) unsent(sent map[string]string) bool {
	rec := p.run.record()
	if state.LookedUpInVain(rec) {
		return true // the look-up decided nothing: its note must be ended before the call is sent again
	}
	for call := range sent {
		if _, known := rec.Sent[call]; len(rec.Doubts) > 0 && !known {
			return true
		}
	}
	return false
}

// phaseRun.forgotten returns the time since which the phase's call may have been made,
// if the provider may no longer know the call's key. Otherwise it returns the zero
// time.
func (p *phaseRun) forgotten() (since time.Time) {
	rec, d := p.run.record(), p.spec.doubtful("")
	// Keyless counts only if a mark is in doubt. If a named call is in doubt, intend returns
	// an error unless this run repeats the call.
	d.Keyless = d.Keyless && slices.ContainsFunc(rec.Doubts, state.IsMark)
	if !d.Asks(rec, p.run.ask.core.opt.Now()) {
		return time.Time{}
	}
	return rec.DoubtSince
}

// phaseRun.intend commits an intent, which says that the phase's call begins and must
// not be repeated.
func (p *phaseRun) intend(ctx context.Context) error {
	if err := p.run.calls.unrepeated(p.run.record().Doubts, fmt.Sprintf("%q, which is NotIdempotent, begins", p.spec.name)); err != nil {
		return p.run.gate.fail(err)
	}
	if err := p.alive(ctx); err != nil {
		return err
	}
	if err := p.run.commit(ctx, p.spec.begins(), collected{}); err != nil {
		return commitFailed(p.run.gate.pk, p.spec.name, err)
	}
	return nil
}

// phaseRun.differs returns the name of a call in sent that an earlier attempt may have
// made with other data, or "" if there is none.
func (p *phaseRun) differs(sent map[string]string) string {
	rec := p.run.record()
	for call, hash := range sent {
		if first := rec.Sent[call]; first != "" && first != hash {
			return call
		}
	}
	return ""
}

// phaseRun.alive returns an error if a call's context is over, because the call's own
// error would not show that nothing was sent. For a phase with a look-up, alive also
// returns an error if the lease is over.
func (p *phaseRun) alive(ctx context.Context) error {
	why := context.Cause(ctx)
	if why == nil && p.spec.lookUp != nil && p.run.ask.core.opt.Now().After(p.run.record().Lease) {
		// The process was paused beyond its lease. A look-up by another attempt assumes
		// that no copy of the call is sent after the lease.
		why = errors.New("its lease is over")
	}
	if why == nil {
		return nil
	}
	return p.run.gate.fail(fmt.Errorf("%w: phase %q is not begun: %w", ErrNoTime, p.spec.name, why))
}

// madeByAnother returns an error if this call may have been made by another phase that
// never repeats its calls. The error keeps this phase from making the call a second
// time under the same key.
func (p *phaseRun) madeByAnother(call string) error {
	if other := state.SentByAnother(p.run.record(), p.spec.name, call); other != "" {
		return fmt.Errorf("%w: phase %q may have made the call %s: people decide", ErrKeyReused, other, call)
	}
	return nil
}

// endIntent writes the outcome of a call that must not be repeated.
func (p *phaseRun) endIntent(ctx context.Context, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	answer, responds := errors.AsType[*answered](err)
	_, retry := errors.AsType[*safe](err)
	var resp Response
	if txErr == nil && !retry {
		txErr = p.run.gate.mayCommit()
	}
	if responds && txErr == nil {
		resp, txErr = p.run.ask.req.response(answer.v)
	}
	switch {
	case retry && txErr == nil:
		// The call had no effect: remove the intent, as if the call had never begun. The
		// call may be made again, under the same derived key.
		p.run.calls.recorded(got.calls)
		if rerr := p.run.replaceIntent(ctx, nil); rerr != nil {
			return nil, commitFailed(p.run.gate.pk, p.spec.name, rerr)
		}
		return nil, err
	case err != nil && !responds || txErr != nil:
		return nil, p.run.markStuck(ctx, fmt.Sprintf("the outcome of phase %q is unknown: %s", p.spec.name, redact.Error(errors.Join(err, txErr))))
	case responds:
		p.run.progress.advance() // the phase's outcome is the answer
		return nil, p.respond(ctx, resp, nil, nil, err)
	}
	if err := p.run.replaceIntent(ctx, append(got.calls, state.Marks(p.spec.name)...), store.Phase{Name: p.spec.name, Result: raw}); err != nil {
		return nil, commitFailed(p.run.gate.pk, p.spec.name, err)
	}
	return p.run.progress.lastResult(), nil
}

// markCallStuck marks the operation as stuck in the phase, because the outcome of the
// phase's call is unknown.
func (p *phaseRun) markCallStuck(ctx context.Context, why string) error {
	return p.run.markStuck(ctx, why, p.spec.begins())
}
