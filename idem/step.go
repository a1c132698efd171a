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
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The course of a phase, in call order: do and begin, then atomic or foreign,
// then outcome.

// step is a phase as the handler requested it.
type step struct {
	kind     stepKind
	name     string
	intent   bool // NotIdempotent
	deferred bool
	calls    bool          // an option concerns calls
	joins    bool          // the claim was made just for this phase, whose result joins the next commit if possible
	memory   time.Duration // how long a call may be repeated
	sends    []send
}

type stepKind int

const (
	atomically stepKind = iota
	foreign
	last
)

// maxPhaseName is the longest name of a phase, in bytes.
const maxPhaseName = 100

// send is the data that one call of a phase sends.
type send struct {
	service string
	step    []string
	v       any
}

func (s step) check() error {
	switch {
	case s.kind == last:
	case s.name == "" || len(s.name) > maxPhaseName:
		return fmt.Errorf("%w: the name %q: 1 to %d bytes", ErrPhaseOrder, s.name, maxPhaseName)
	case s.kind == atomically && s.calls:
		return fmt.Errorf("%w: %s: an Atomic calls nobody: of the options it takes Deferred only", ErrPhaseOrder, s.name)
	case s.intent && s.deferred:
		return fmt.Errorf("%w: %s: NotIdempotent can't be Deferred: its outcome must be stored at once", ErrPhaseOrder, s.name)
	}
	return nil
}

// do runs a phase from its name to its commit. raw is its result.
func (f *flow) do(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	if raw, recorded, err := f.begin(s); recorded || err != nil {
		return raw, err
	}
	ctx, sp := f.a.step(ctx, trace.Phase, cmp.Or(s.name, "finish"))
	back := false
	defer func() { // runs also after a panic of fn
		if !back {
			err = errPanic
		}
		sp.done(err)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy = false
		if _, ended := errors.AsType[*answered](err); err != nil && !ended && f.err == nil {
			f.err = err
		}
	}()
	if s.kind == foreign {
		raw, err = f.foreign(ctx, s, fn)
	} else {
		raw, err = f.atomic(ctx, s, fn)
	}
	back = true
	return raw, err
}

// begin allows a phase to run, or returns its recorded result.
func (f *flow) begin(s step) (raw []byte, recorded bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over:
		return nil, false, f.failed(fmt.Errorf("%w: %q begins after the handler has returned", ErrPhaseOrder, s.name))
	case f.busy:
		return nil, false, f.failed(fmt.Errorf("%w: %q begins while another phase runs", ErrPhaseOrder, s.name))
	case f.end != nil:
		return nil, false, ErrAnswered
	case f.err != nil:
		return nil, false, fmt.Errorf("%w: %w", ErrPhaseFailed, f.err)
	case s.kind != last && f.names[s.name]:
		return nil, false, f.failed(fmt.Errorf("%w: a second phase named %q", ErrPhaseOrder, s.name))
	}
	if err := s.check(); err != nil {
		return nil, false, f.failed(err)
	}
	if f.names == nil {
		f.names = make(map[string]bool)
	}
	f.names[s.name] = true
	raw, recorded, err = f.recall(s)
	f.busy = !recorded && err == nil
	if f.a.timed {
		f.started = time.Now()
	}
	return raw, recorded, err
}

// recall finds the phase in the record. The recorded phase at this position must
// be s: otherwise the handler's phases have changed.
func (f *flow) recall(s step) (raw []byte, recorded bool, err error) {
	if f.rec == nil || f.passed >= len(f.rec.Phases) {
		return nil, false, nil
	}
	p := f.rec.Phases[f.passed]
	if s.kind == last || p.Name != s.name {
		return nil, false, f.failed(fmt.Errorf("%w: %q is next, but %q is recorded there", ErrPhaseOrder, s.name, p.Name))
	}
	if p.Intent && s.kind != foreign {
		return nil, false, f.failed(fmt.Errorf("%w: %q is recorded as a call whose outcome is unknown", ErrPhaseOrder, s.name))
	}
	if p.Intent {
		return nil, false, nil // an earlier attempt began the call and recorded no outcome: foreign decides
	}
	f.passed++
	f.loose = nil // committed with the phase
	return slices.Clone(p.Result), true, nil
}

// rerunFor is how long an Atomic runs again after conflicts.
const rerunFor = 5 * time.Second

// atomic runs fn until its commit meets no conflict.
func (f *flow) atomic(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	giveUp := time.Now().Add(rerunFor)
	for round := 0; ; round++ {
		tx := f.tx(s)
		raw, err := fn(ctx, tx)
		raw, err = f.outcome(ctx, s, tx, raw, err)
		if !errors.Is(err, ErrConflict) || !f.a.rerun(ctx, round, giveUp) {
			return raw, err
		}
	}
}

// rerun waits before the next run of an Atomic; false if its time is over.
func (a *attempt) rerun(ctx context.Context, round int, giveUp time.Time) bool {
	return pause(ctx, round) && time.Now().Before(giveUp) && time.Until(a.deadline) > a.opt.Reserve
}

// foreign claims and commits pending results, calls fn once, and commits.
func (f *flow) foreign(ctx context.Context, s step, fn func(context.Context, *Tx) ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	leading := f.rec == nil && len(f.pending) == 0
	outstanding := f.rec == nil || len(f.pending) > 0 || f.rec.Keep == store.KeepNothing
	begun := f.rec != nil && f.passed < len(f.rec.Phases)
	f.mu.Unlock()
	if begun {
		return nil, f.giveUp(ctx, fmt.Sprintf("the outcome of phase %q is unknown: an attempt began the call and never came back", s.name))
	}
	if err := f.reaches(fmt.Sprintf("phase %q calls another system", s.name)); err != nil {
		return nil, f.fail(err)
	}
	sent, err := f.sends(s)
	if err != nil {
		return nil, f.fail(err)
	}
	if since := f.forgotten(s); !since.IsZero() {
		return nil, f.giveUpCall(ctx, s, fmt.Sprintf("the outcome of phase %q is unknown: an attempt may have made the call since %s, and its provider may have forgotten that",
			s.name, since.UTC().Format(time.RFC3339)))
	}
	if s.intent {
		if err := f.intend(ctx, s); err != nil {
			return nil, err
		}
	} else if outstanding {
		if err := f.commit(ctx, nil, collected{sent: sent}, false); err != nil {
			return nil, f.commitFailed(s, err)
		}
		s.joins = leading
	}
	if call := f.differs(sent); call != "" && !s.intent {
		return nil, f.giveUpCall(ctx, s, fmt.Sprintf("the outcome of phase %q is unknown: the call %s may have been made with other parameters than it would send now", s.name, call))
	}
	if err := f.alive(ctx, s); err != nil {
		if !s.intent {
			return nil, err
		}
		if rerr := f.replaceIntent(ctx, nil); rerr != nil {
			return nil, f.commitFailed(s, rerr)
		}
		return nil, err
	}
	f.mu.Lock()
	f.entered = true
	f.mu.Unlock()
	tx := f.tx(s)
	raw, err := f.call(ctx, s, tx, fn)
	if s.intent {
		return f.endIntent(ctx, s, tx, raw, err)
	}
	return f.outcome(ctx, s, tx, raw, err)
}

// call runs the function of a Foreign.
func (f *flow) call(ctx context.Context, s step, tx *Tx, fn func(context.Context, *Tx) ([]byte, error)) (raw []byte, err error) {
	ctx, sp := f.a.step(ctx, trace.Call, s.name)
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

// sends hashes the data that the calls of s send, by the calls' names.
func (f *flow) sends(s step) (map[string]string, error) {
	if len(s.sends) == 0 {
		return nil, nil
	}
	tx := f.tx(s)
	sent := make(map[string]string, len(s.sends))
	for _, one := range s.sends {
		raw, err := json.Marshal(one.v)
		if err != nil {
			return nil, fmt.Errorf("%w: what %q sends: %w", ErrResult, s.name, err)
		}
		sum := sha256.Sum256(slices.Concat([]byte(tx.id), raw))
		sent[callName(tx.made, one.service, one.step)] = hex.EncodeToString(sum[:16])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = state.Sending(sent, f.sent)
	return sent, nil
}

// forgotten returns the time since when a call of s may have been made, if the
// provider may have forgotten the key since; else the zero time.
func (f *flow) forgotten(s step) (since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec == nil || f.a.opt.Now().Sub(f.rec.DoubtSince) < s.memory {
		return time.Time{}
	}
	return f.rec.DoubtSince // zero if no call is in doubt
}

// intend commits the begin of a call that can't be repeated, with the merged
// claim and pending results.
func (f *flow) intend(ctx context.Context, s step) error {
	f.mu.Lock()
	var err error
	if len(f.loose) > 0 {
		// Settling the phase could not stage its jobs.
		err = fmt.Errorf("%w: jobs are staged for %q, which is NotIdempotent: stage them with another phase", ErrWrite, s.name)
	} else if f.rec != nil {
		err = f.unrepeated(fmt.Sprintf("%q, which is NotIdempotent, begins", s.name))
	}
	f.mu.Unlock()
	if err != nil {
		return f.fail(err)
	}
	if err := f.alive(ctx, s); err != nil {
		return err
	}
	if err := f.commit(ctx, []store.Phase{{Name: s.name, Intent: true}}, collected{}, false); err != nil {
		return f.commitFailed(s, err)
	}
	return nil
}

// differs returns a call that may have been made with different data, or "".
func (f *flow) differs(sent map[string]string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call, hash := range sent {
		if first := f.rec.Sent[call]; first != "" && first != hash {
			return call
		}
	}
	return ""
}

// alive refuses a call whose context is over. The call would fail before anything
// is sent, but its error could not show that.
func (f *flow) alive(ctx context.Context, s step) error {
	if ctx.Err() == nil {
		return nil
	}
	return f.fail(fmt.Errorf("%w: phase %q is not begun: %w", ErrNoTime, s.name, context.Cause(ctx)))
}

// tx returns an empty Tx for a run of s.
func (f *flow) tx(s step) *Tx {
	f.mu.Lock()
	defer f.mu.Unlock()
	tx := &Tx{id: f.a.id}
	if f.rec != nil {
		tx.id, tx.made, tx.repeats = f.rec.ID, f.rec.Calls, len(f.rec.Doubts) > 0
	}
	tx.made = state.Tally(tx.made, f.calls)
	if s.kind == foreign {
		tx.called = f.called
	}
	return tx
}

// outcome commits the result of a run of a phase.
func (f *flow) outcome(ctx context.Context, s step, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	f.a.traced(ctx, got.jobs)
	answer, responds := errors.AsType[*answered](err)
	switch {
	case errors.Is(err, ErrResult):
		return nil, f.fail(err)
	case err != nil && !responds:
		if _, retry := errors.AsType[*safe](err); retry {
			f.recorded(got.calls) // had no effect: nothing is in doubt
		}
		return nil, err
	case txErr != nil:
		return nil, f.fail(txErr)
	case s.deferred && s.kind == atomically && !responds && len(got.writes)+len(got.jobs) > 0:
		return nil, f.fail(fmt.Errorf("%w: %q is Deferred: write and stage in the phase that follows", ErrWrite, s.name))
	case s.deferred && !responds && len(got.writes) > 0:
		return nil, f.fail(fmt.Errorf("%w: %q is Deferred: write in the phase that follows", ErrWrite, s.name))
	}
	rerun := s.kind != foreign
	switch {
	case responds:
		resp, rerr := f.a.response(answer.v)
		if rerr != nil {
			return nil, f.fail(rerr)
		}
		if ferr := f.finish(ctx, resp, got.writes, got.jobs, rerun); ferr != nil {
			return nil, f.commitFailed(s, ferr)
		}
		return nil, err
	case s.deferred || s.joins && len(got.writes) == 0:
		return raw, f.postpone(ctx, store.Phase{Name: s.name, Result: raw}, got)
	}
	if err := f.commit(ctx, []store.Phase{{Name: s.name, Result: raw}}, got, rerun); err != nil {
		return nil, f.commitFailed(s, err)
	}
	return slices.Clone(f.lastResult()), nil
}

// postpone keeps a result for the next commit.
func (f *flow) postpone(ctx context.Context, p store.Phase, got collected) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting, err := f.stagedJobs(ctx, got.jobs)
	if err != nil {
		return f.failed(err)
	}
	f.waiting, f.loose = waiting, nil
	f.pending, f.calls = append(f.pending, p), state.With(f.calls, got.calls...)
	f.passed++
	if f.a.timed {
		if f.took == nil {
			f.took = make(map[string]time.Duration)
		}
		f.took[p.Name] = time.Since(f.started)
	}
	return nil
}

// endIntent writes the outcome of a call that can't be repeated.
func (f *flow) endIntent(ctx context.Context, s step, tx *Tx, raw []byte, err error) ([]byte, error) {
	got, txErr := tx.close()
	answer, responds := errors.AsType[*answered](err)
	_, retry := errors.AsType[*safe](err)
	if txErr == nil && len(got.writes)+len(got.jobs) > 0 {
		txErr = fmt.Errorf("%w: a NotIdempotent phase takes neither writes nor jobs", ErrWrite)
	}
	var resp Response
	if responds && txErr == nil {
		resp, txErr = f.a.response(answer.v)
	}
	switch {
	case retry && txErr == nil:
		// As if the call had never begun: the key stays, and the call may be made
		// again.
		f.recorded(got.calls)
		if rerr := f.replaceIntent(ctx, nil); rerr != nil {
			return nil, f.commitFailed(s, rerr)
		}
		return nil, err
	case err != nil && !responds || txErr != nil:
		return nil, f.giveUp(ctx, fmt.Sprintf("the outcome of phase %q is unknown: %s", s.name, redact.Error(errors.Join(err, txErr))))
	case responds:
		f.mu.Lock()
		f.passed++ // the phase's outcome is the answer
		f.mu.Unlock()
		if ferr := f.finish(ctx, resp, nil, nil, false); ferr != nil {
			return nil, f.commitFailed(s, ferr)
		}
		return nil, err
	}
	if err := f.replaceIntent(ctx, got.calls, store.Phase{Name: s.name, Result: raw}); err != nil {
		return nil, f.commitFailed(s, err)
	}
	return slices.Clone(f.lastResult()), nil
}
