package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The end of a run: decide chooses what to do after an outcome, and run.end does it.

// outcome says how a handler has ended.
type outcome struct {
	end        *attemptOver // how a phase has ended the attempt; nil if none has
	resp       Response     // the handler's answer, if err is nil
	err        error        // the handler's own error
	definitive bool         // resp was made by Respond
	stored     bool         // Options.Stored accepts resp
	failed     error        // error of the first failed phase; nil if none failed
	outlived   bool         // a phase is still running, and may make a call that contradicts the answer
}

// unresolved describes what earlier attempts left open and this run hasn't cleared up.
type unresolved struct {
	leftOut error // error that names the recorded phase, or the earlier attempt's call in doubt, that the handler left out; nil if there is none
	missed  bool  // an earlier attempt may have died in a call: the record has the call's mark, and this run has not repeated the call
}

// ending says what an attempt does after its handler has run.
type ending struct {
	store    bool   // the answer is stored, which ends the operation
	withheld bool   // if the record is kept, the client doesn't get the handler's answer, since the operation goes on
	refused  bool   // the handler refused the request with a 4xx, so the key may become free
	why      string // why the answer isn't stored; "" if cause says it
	err      error  // returned in place of the answer
	breaks   bool   // err is a mistake in the program, and is treated like a failed phase
	cause    error  // the error because of which the record is released; nil if there is none
}

// decide returns what an attempt does after the outcome o. Two rules apply in every case.
// After a failed phase, only a definitive answer is stored. An answer that would hide
// recorded work, or a call that may have been made, is neither stored nor sent.
func decide(o outcome, d unresolved) ending {
	stores := o.definitive || o.failed == nil && o.stored
	switch {
	case o.err != nil:
		return ending{err: o.err, cause: o.err}
	case o.outlived:
		return ending{err: o.failed, cause: o.failed}
	case d.leftOut != nil && (stores || o.failed == nil && final(o.resp.Status)):
		return ending{err: d.leftOut, breaks: true, cause: d.leftOut}
	case stores && !d.missed:
		return ending{store: true}
	case stores || d.missed && (o.failed == nil || o.resp.Status >= http.StatusBadRequest):
		e := ending{withheld: true, why: notCalled(o.resp.Status)}
		if !stores {
			e.cause = o.failed
		}
		return e
	case o.failed != nil && o.resp.Status < http.StatusBadRequest: // return the error, since a client that gets a success doesn't retry
		return ending{err: o.failed, cause: o.failed}
	case o.failed != nil:
		return ending{withheld: final(o.resp.Status), cause: o.failed}
	default:
		return ending{withheld: final(o.resp.Status), refused: o.resp.Status/100 == 4, why: notStored(o.resp.Status)}
	}
}

// run.end completes a run whose handler has returned.
func (r *run) end(ctx context.Context, o outcome) (Result, error) {
	if o.end != nil {
		return o.end.res, o.end.err
	}
	if answer, ok := errors.AsType[*answered](o.err); ok {
		o.definitive = true
		o.resp, o.err = r.ask.req.response(answer.v)
	}
	if o.err == nil {
		o.err = checkStatus(&o.resp)
		r.ask.core.cleaned(ctx, r.gate.pk, &o.resp)
	}
	o.stored = o.err == nil && !o.definitive && o.failed == nil && r.ask.core.opt.Stored(o.resp)
	e := decide(o, r.unresolved())
	switch {
	case e.store:
		return r.endStored(ctx, o.resp)
	case e.breaks:
		e.err = r.gate.fail(e.err)
		e.cause = e.err
	case o.err == nil && o.failed != nil && !o.outlived && !o.definitive:
		r.ask.core.log.ErrorContext(ctx, "answer not stored: a phase had failed", "record", redact.Record(r.gate.pk), "error", redact.Error(o.failed))
	}
	return r.endUnstored(ctx, o.resp, e)
}

// run.unresolved returns what earlier attempts left open and the run has not cleared
// up.
func (r *run) unresolved() unresolved {
	return unresolved{r.progress.leftover(&r.calls), r.calls.missed(r.record().Doubts)}
}

// endInPhase ends the attempt while the handler runs. It stores the definitive answer
// resp together with writes and jobs. If resp would hide a call, endInPhase ends the
// attempt without a stored answer. If the attempt doesn't end, the error says why.
func (r *run) endInPhase(ctx context.Context, resp Response, writes []Write, jobs []Job) (*attemptOver, error) {
	switch e := decide(outcome{resp: resp, definitive: true}, r.unresolved()); {
	case e.breaks:
		return nil, r.gate.fail(e.err)
	case !e.store:
		r.lease.unkeep()
		res, err := r.endUnstored(ctx, resp, e)
		return &attemptOver{res, err, ErrAnswered}, nil
	}
	res, err := r.finish(ctx, resp, false, writes, jobs)
	if err == nil {
		return &attemptOver{res: res}, nil
	}
	if end, ok := errors.AsType[*attemptOver](err); ok {
		return end, nil
	}
	return nil, err
}

// endStored stores the handler's answer and returns it. If the write fails, endStored
// still returns the answer, marked as unstored, since the handler has had its effect.
// But if another attempt may give another answer, endStored returns an error instead.
// There are four such cases: a job waits for the commit; a phase has committed or
// failed (the commit of a failed phase may have been applied); the request is stored;
// or Options.CallsOut is set.
func (r *run) endStored(ctx context.Context, resp Response) (Result, error) {
	var err error
	for try := range 3 {
		statusOnly := try == 2
		if statusOnly {
			if !mayDrop(err, r.record()) {
				break
			}
			// Ending the operation matters more than keeping its answer.
			r.ask.core.log.ErrorContext(ctx, "answer can't be stored: storing its status only", "record", redact.Record(r.gate.pk), "error", err)
		}
		var res Result
		if res, err = r.finish(ctx, resp, statusOnly, nil, nil); err == nil {
			return res, nil
		}
		if end, ok := errors.AsType[*attemptOver](err); ok {
			return end.res, end.err
		}
		if rec := r.record(); rec != nil && rec.State == store.Done { // an answer whose write was reported as failed is stored after all
			return r.answers().answer(ctx, rec, state.Replay)
		}
		if store.Passing(err) {
			break
		}
	}
	rec := r.record()
	if permanent(err) && rec.Keep == store.KeepOpen { // no retry can store the answer: people have to decide
		err = r.gate.fail(err)
		return r.endUnstored(ctx, Response{}, ending{err: err, cause: err})
	}
	// Keep the lease: a retry must not repeat the effect at once.
	err = recordError("finish", rec.PK, err)
	r.ask.core.log.ErrorContext(ctx, "answer not stored: a retry after the lease runs again", "record", redact.Record(rec.PK), "error", err)
	r.watch.tell(ctx, evFailed, rec, err)
	failed := r.gate.failure()
	if rec.Keep == store.KeepOpen || r.progress.hasLoose() || failed != nil {
		return Result{}, unavailable("finish", rec.PK, err)
	}
	r.watch.tell(ctx, evUnstored, rec, err)
	return Result{Response: resp, Unstored: true}, nil
}

// mayDrop reports whether to store only the answer's status in rec, after the error err
// prevented the whole answer. It returns true if the answer can never fit. It also
// returns true if rec isn't kept ([state.Kept]): no phase has committed, so only a
// finished record can show that the handler has had its effect. Otherwise rec stays
// open, since the next attempt may give an answer that can be stored.
func mayDrop(err error, rec *store.Record) bool {
	return errors.Is(err, store.ErrTooLarge) || !state.Kept(rec)
}

// endUnstored ends a run without a stored answer.
func (r *run) endUnstored(ctx context.Context, resp Response, e ending) (Result, error) {
	rec, opt := r.record(), &r.ask.core.opt
	b := r.releasing()
	b.Answers, b.Refused, b.Counted = e.withheld, e.refused, r.ask.unattended
	b.Why = cmp.Or(b.Why, e.why)
	if next := state.Released(rec, opt.Now(), b); b.Answers && !r.ask.unattended && state.Kept(next) && next.Tries >= opt.MaxTries {
		// On each try the handler gives an answer that isn't stored, so the operation
		// can't end by itself.
		err := r.stick(ctx, fmt.Sprintf("not completed in %d tries: %s", opt.MaxTries, b.Why), func(base *store.Record) *store.Record {
			return state.Released(base, opt.Now(), b)
		})
		if end, ok := errors.AsType[*attemptOver](err); ok {
			return end.res, end.err
		}
		return Result{}, err
	}
	held, l, rerr := r.release(ctx, b, e.cause)
	switch {
	case l == state.Overtaken:
		if e.err != nil {
			r.ask.core.log.ErrorContext(ctx, "handler failed in an overtaken attempt", "record", redact.Record(rec.PK), "error", e.err)
		}
		return r.answers().overtaken(ctx, rec.PK, held)
	case l == state.Landed && held.State == store.Done:
		return r.answers().answer(ctx, held, state.Replay) // the answer was stored after all
	case l == state.Landed && held.State == store.Stuck:
		end := r.stuck(ctx, held) // the stuck record was stored after all
		return end.res, end.err
	case e.err != nil:
		if rerr != nil {
			e.err = errors.Join(e.err, rerr)
		}
		return Result{}, &handlerError{e.err}
	case b.Answers && (rerr != nil || state.Kept(held)):
		return r.answers().withhold(ctx, rec, held, resp, cmp.Or(b.Why, notStored(resp.Status)))
	default:
		return Result{Response: resp}, nil
	}
}

// run.releasing describes the release after a run whose answer isn't stored. If a phase
// failed with a [permanent] error, the field Why contains this error, since the handler
// may have hidden it.
func (r *run) releasing() state.Release {
	err := r.gate.failure()
	b := state.Release{Calls: r.calls.out(r.gate.hasOutlived()), Sent: r.calls.sentOut()}
	if permanent(err) {
		b.Refusal, b.Why = err, redact.Error(err)
	}
	return b
}

// run.release gives the lease back, so that the next retry needn't wait for the lease's
// end. If the release itself fails, the failure is logged, and never hides the cause of
// the release.
func (r *run) release(ctx context.Context, b state.Release, cause error) (_ *store.Record, _ state.Landing, err error) {
	ctx, sp := r.watch.step(ctx, trace.Release, "")
	defer func() { sp.done(err) }()
	if b.Why == "" && cause != nil {
		b.Why = redact.Error(cause)
	}
	rec := r.record()
	prev := rec
	for range maxRounds { // each round begins with the record that the previous round found
		if prev.State != store.Open { // an earlier write, reported as failed, has ended the operation after all: don't free the key
			return prev, state.Landed, nil
		}
		next := state.Released(prev, r.ask.core.opt.Now(), b)
		held, l, err := r.writer.write(ctx, change{prev: prev, next: next}, r.times.writeDeadline(prev), maxRounds)
		switch {
		case err != nil:
			err = recordError("release", rec.PK, err)
			r.ask.core.log.ErrorContext(ctx, "lease not released: retries wait for its end", "record", redact.Record(rec.PK), "error", err)
			r.watch.tell(ctx, evFailed, rec, err)
			return nil, 0, err
		case l == state.Overtaken:
			return held, state.Overtaken, nil
		case held.State == store.Open && held.Lease.IsZero():
			r.watch.tell(ctx, evReleased, rec, cause)
			if held.Blocked {
				r.ask.core.log.ErrorContext(ctx, "the program refuses to go on with an operation: it waits for people", "record", redact.Record(rec.PK),
					"operation", held.ID, "route", held.Route, "error", held.LastErr)
				r.watch.tell(ctx, evBlocked, held, b.Refusal)
			}
			return held, state.Landed, nil
		}
		prev = held // an earlier write of ours was applied after all: decide again from that record
	}
	return nil, 0, recordError("release", rec.PK, ErrConflict)
}

// final(status) reports whether a client takes an answer with this status as the
// operation's outcome. After a 5xx the client doesn't know the outcome, and retries.
func final(status int) bool { return status < http.StatusInternalServerError }

// notCalled returns the reason why an answer isn't stored: the answer would hide a call
// that an earlier attempt may have made.
func notCalled(status int) string {
	return fmt.Sprintf("the handler answered %d without the call that an earlier attempt may have made", status)
}

// notStored describes an answer that isn't stored, since Options.Stored rejects it.
func notStored(status int) string {
	return fmt.Sprintf("the handler answered %d, which is not stored", status)
}

// permanent(err) reports whether err is a mistake that the same program will always
// repeat with this record. A retry doesn't help: people have to change the program or the
// record.
func permanent(err error) bool {
	for _, mistake := range []error{ErrPhaseOrder, ErrResult, ErrWrite, ErrKeyReused, ErrLookUp, ErrDeliveryKey, store.ErrTooLarge} {
		if errors.Is(err, mistake) {
			return true
		}
	}
	return false
}
