package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// Found is the finding of a look-up ([LookUp]). The zero Found means that the look-up gave
// no answer.
type Found int

// The findings of a look-up.
const (
	Made    Found = 1 + iota // the provider knows the call and its result
	NotMade                  // the provider knows no such call
)

// Call tells a look-up ([LookUp]) about a call that may have been made.
type Call struct {
	// Service and Step name the call, as in the phase's [Sends].
	Service string
	Step    []string
	// Key is the call's derived key: the idempotency key, or the reference that was sent to
	// a system without keys.
	Key string
	// Sends is the data that the phase declares with [Sends].
	Sends any
	// First and Last are the earliest and the latest time at which a copy of the call may
	// have been sent.
	First, Last time.Time
}

// LookUp lets a phase ask its provider for the outcome of a call that may have been
// made. If an attempt must not repeat the call, the function ask runs instead of the
// phase's function. That is so after a [NotIdempotent] call, or once the provider may
// have forgotten the key ([Remembers]). Without LookUp the operation would then be
// stuck. The function ask returns one of these:
//
//   - Made and the phase's result. The result is committed, and the handler goes on.
//   - NotMade, if the provider doesn't know the call. If ask began late, the engine
//     then makes the call once. With Remembers(0), the operation is stuck instead. Late
//     means: the lease of the attempt that may have sent the call had been
//     over for longer than the duration within. If ask began earlier, the outcome isn't
//     known yet.
//   - An error, if the outcome isn't known yet.
//   - An error that matches [ErrContradiction], if the provider recorded something
//     other than what was sent, or recorded the call twice. The operation is then
//     stuck.
//
// Until the outcome is known, the client gets 503 with a growing Retry-After (or 202
// under [InFlightAccept], if the request is stored), and a completer asks again with
// its back-off. A run of ask counts as a try ([Options.MaxTries]) only if it began
// late. If the request is stored, only the completer's runs count. If the request isn't
// stored, ask runs only in the client's retries. At most one of these runs counts in
// each pause of the back-off, however often the client retries.
//
// The duration within is the sum of three times: how long a copy of the call may be on
// its way, including pauses of the process that sends it; how far the look-up may lag
// behind; and how far the hosts' clocks may differ. Zero means 15 minutes. If within is
// too short, the call may be made twice.
//
// A phase with a look-up makes only one call, and declares it by one [Sends]. If the
// phase asks [Tx.Key] for another call's key, the phase fails ([ErrKeyReused]). T must
// be the phase's result type, or the phase fails ([ErrLookUp]). The function ask must
// have no effect, since it may run many times.
func LookUp[T any](ask func(ctx context.Context, c Call) (T, Found, error), within time.Duration) PhaseOption {
	l := &lookUp{result: reflect.TypeFor[T](), within: cmp.Or(max(within, 0), defaults.Within)}
	if ask != nil {
		l.ask = func(ctx context.Context, c Call) ([]byte, Found, error) {
			v, found, err := ask(ctx, c)
			if err != nil || found != Made {
				return nil, found, err
			}
			raw, err := encodeResult(v)
			return raw, found, err
		}
	}
	return func(s *phaseSpec) { s.lookUp = l }
}

// lookUp is the look-up that a phase declares with [LookUp].
type lookUp struct {
	ask    func(context.Context, Call) ([]byte, Found, error)
	within time.Duration
	result reflect.Type
}

// phaseRun.fits returns an error if the look-up is declared wrongly.
func (p *phaseRun) fits() error {
	l := p.spec.lookUp
	switch {
	case l.ask == nil:
		return fmt.Errorf("%w: the function of %q is nil", ErrLookUp, p.spec.name)
	case l.result != p.spec.result:
		return fmt.Errorf("%w: it finds a %v, and %q has a %v", ErrLookUp, l.result, p.spec.name, p.spec.result)
	case len(p.spec.sends) != 1:
		return fmt.Errorf("%w: %q has %d Sends, and needs one: it says which call is looked up", ErrLookUp, p.spec.name, len(p.spec.sends))
	}
	return nil
}

// lookUp asks for the outcome of the phase's call if the call is in doubt and can't
// simply be repeated. If another call is in doubt, lookUp makes the operation stuck: the
// other call may be this phase's call under an earlier name. done reports that the phase
// has its result, or that the run has ended. If done is false and err is nil, the call
// may be made.
func (p *phaseRun) lookUp(ctx context.Context, sent map[string]string) (raw []byte, done bool, err error) {
	if err := p.fits(); err != nil {
		return nil, false, p.run.gate.fail(err)
	}
	tx := p.run.progress.tx()
	d := p.spec.doubtful(p.spec.only(tx.made))
	rec, now := p.run.record(), p.run.ask.core.opt.Now()
	switch call := d.Stranger(rec); {
	case call != "":
		return nil, true, p.markLookUpStuck(ctx, d, nil, fmt.Sprintf("the outcome of the call %s is unknown, and the look-up of phase %q asks for another call", call, d.Phase))
	case !d.Asks(rec, now):
		return nil, false, nil
	}
	if call := p.differs(sent); call != "" {
		return nil, true, p.markLookUpStuck(ctx, d, nil, fmt.Sprintf("the outcome of phase %q is unknown: the call %s may have been made with other parameters than it would send now", d.Phase, call))
	}
	if err := p.alive(ctx); err != nil {
		return nil, true, err
	}
	one := p.spec.sends[0]
	last := d.Sent(rec)
	if state.WrongClock(last, now) {
		return nil, true, p.markLookUpStuck(ctx, d, nil, fmt.Sprintf("the outcome of phase %q is unknown: by its host's clock, the call may be sent until %s", d.Phase, last.UTC().Format(time.RFC3339)))
	}
	a := state.Asking{Sent: last, Within: p.spec.lookUp.within, Began: now, Never: d.Never()}
	raw, why := p.asks(ctx, &a, Call{Service: one.service, Step: one.step, Key: state.DerivedKey(tx.id, d.Call), Sends: one.v, First: firstOf(rec), Last: last})
	if errors.Is(why, ErrResult) {
		return nil, true, p.run.gate.fail(why)
	}
	course, counts := a.Decide()
	counts = counts && p.paced(rec, now)
	note := d.Asked(rec, a)
	p.run.ask.core.log.InfoContext(ctx, "a call in doubt was looked up", "record", redact.Record(rec.PK), "operation", rec.ID, "phase", d.Phase, "found", note.Said, "times", note.Times)
	switch course {
	case state.UseResult:
		raw, err = p.found(ctx, d, note, raw)
		return raw, true, err
	case state.CallOnce:
		// If another attempt has taken over since the look-up, or a person has decided,
		// the call may have been made meanwhile. The store then refuses this write, and
		// this attempt doesn't make the call.
		_, err := p.run.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
			return d.CallingOnce(state.Noted(base, note), sent)
		}, nil)
		if err != nil {
			return nil, true, commitFailed(p.run.gate.pk, p.spec.name, err)
		}
		return nil, false, nil
	case state.ToPeople:
		text := fmt.Sprintf("the look-up of phase %q knows no such call, which may not be made again", d.Phase)
		if why != nil {
			text = fmt.Sprintf("the look-up of phase %q contradicts what was sent: %s", d.Phase, redact.Error(why))
		}
		return nil, true, p.markLookUpStuck(ctx, d, note, text)
	case state.AskAgain:
	}
	text := fmt.Sprintf("the outcome of phase %q is unknown: its look-up says %s", d.Phase, note.Said)
	if why != nil {
		text += ": " + redact.Error(why)
	}
	return nil, true, p.asksLater(ctx, d, &state.LookedUp{Asked: note, Counts: counts}, text)
}

// phaseRun.paced reports whether a look-up may count as a try. A completer's look-up
// always counts. A client's look-up counts only if the request isn't stored, and if the
// back-off's pause has passed since the previous look-up. So a client that polls can't
// use up the tries.
func (p *phaseRun) paced(rec *store.Record, now time.Time) bool {
	if p.run.ask.unattended || rec.Input != nil {
		return p.run.ask.unattended
	}
	return rec.Asked == nil || now.Sub(rec.Asked.At) >= state.BackOff(state.DefaultGrace, rec.Tries)
}

// firstOf returns the earliest time at which a call in doubt may have been sent.
func firstOf(rec *store.Record) time.Time {
	if !rec.DoubtSince.IsZero() {
		return rec.DoubtSince
	}
	return rec.Created
}

// [phaseRun.asks] runs the look-up, stores the finding in a.Found, and returns the result
// and the error of the look-up.
func (p *phaseRun) asks(ctx context.Context, a *state.Asking, c Call) (raw []byte, why error) {
	ctx, sp := p.run.watch.step(ctx, trace.Call, p.spec.name)
	end := errPanic
	defer func() { sp.done(end) }()
	raw, found, err := p.spec.lookUp.ask(ctx, c)
	end = err
	switch {
	case errors.Is(err, ErrContradiction):
		a.Found = state.FoundContradiction
	case err != nil:
	case found == Made:
		a.Found = state.FoundMade
	case found == NotMade:
		a.Found = state.FoundNotMade
	default:
		err = fmt.Errorf("neither Made nor NotMade (%d)", found)
	}
	return raw, err
}

// [phaseRun.found] commits the result of a look-up.
func (p *phaseRun) found(ctx context.Context, d state.Doubtful, note *store.Asked, raw []byte) ([]byte, error) {
	calls, phases := d.Calls(), []store.Phase{{Name: d.Phase, Result: raw}}
	_, err := p.run.write(ctx, trace.Commit, func(base *store.Record) *store.Record {
		base, now := state.Noted(base, note), p.run.ask.core.opt.Now()
		if d.Begun(base) {
			return state.IntentReplaced(base, now, phases, calls)
		}
		return state.Advanced(base, now, phases, nil, calls)
	}, nil)
	if err != nil {
		return nil, commitFailed(p.run.gate.pk, p.spec.name, err)
	}
	p.run.committed(ctx, d.Phase, 0, calls)
	return p.run.progress.lastResult(), nil
}

// markLookUpStuck marks the operation as stuck in this phase. note describes the
// look-up; it is nil if no look-up was made.
func (p *phaseRun) markLookUpStuck(ctx context.Context, d state.Doubtful, note *store.Asked, why string) error {
	return p.run.stick(ctx, why, func(base *store.Record) *store.Record { return p.leaves(base, d, note) })
}

// [phaseRun.leaves] returns base with the data that people need to settle the
// operation: the note of the look-up, unless note is nil, and an intent. The intent
// shows that the phase's call has begun.
func (p *phaseRun) leaves(base *store.Record, d state.Doubtful, note *store.Asked) *store.Record {
	if note != nil {
		base = state.Noted(base, note)
	}
	if d.Begun(base) {
		return base
	}
	return state.Advanced(base, p.run.ask.core.opt.Now(), []store.Phase{p.spec.begins()}, nil, nil)
}

// asksLater ends the run without a decision, so that the next attempt asks again. But if
// this look-up has used up the tries, asksLater marks the operation as stuck.
func (p *phaseRun) asksLater(ctx context.Context, d state.Doubtful, l *state.LookedUp, why string) error {
	r, opt := p.run, &p.run.ask.core.opt
	b := state.Release{Look: l, Why: why, Counted: r.ask.unattended}
	if next := state.Released(r.record(), opt.Now(), b); l.Counts && next.Tries >= opt.MaxTries {
		return r.stick(ctx, fmt.Sprintf("not settled in %d tries: %s", opt.MaxTries, why), func(base *store.Record) *store.Record {
			return p.leaves(state.Released(base, opt.Now(), b), d, l.Asked)
		})
	}
	r.lease.unkeep()
	rec := r.record()
	cause := errors.New(why)
	held, landed, err := r.release(ctx, b, cause)
	end := &attemptOver{toPhase: ErrAnswered}
	switch {
	case landed == state.Overtaken:
		end.res, end.err = r.answers().overtaken(ctx, rec.PK, held)
	case err != nil: // not released: the lease ends by itself
		end.err = errors.Join(unavailable("look-up", rec.PK, cause), err)
	default:
		end.res, end.err = r.answers().unfinished(held, cause)
	}
	return end
}
