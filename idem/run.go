package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The course of an attempt, in call order: begin, run, once and handle; then
// conclude stores the answer, or withdraw gives the lease back.

// begin runs an operation whose record this attempt holds.
func (a *attempt) begin(ctx context.Context, rec *store.Record, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	name := evClaimed
	if resumed {
		name = evTakenOver
	}
	a.tell(ctx, name, a.event(rec, nil))
	return a.run(ctx, rec, resumed, fn)
}

// run calls fn and ends the operation according to its outcome. rec is nil before
// a merged claim.
func (a *attempt) run(ctx context.Context, rec *store.Record, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	f := &flow{a: a, rec: rec}
	res, err := a.once(ctx, f, resumed, fn)
	if a.place != nil {
		a.place.holds(f)
	}
	if f.restart { // at most once: afterwards there is a record
		rec := f.record()
		if err := a.enough(); err != nil {
			_, _, _ = a.release(ctx, rec, state.GiveBack{}, err)
			return Result{}, err
		}
		return a.begin(ctx, rec, rec.Ver > 1, fn)
	}
	return res, err
}

func (a *attempt) once(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	resp, err := a.handle(ctx, f, resumed, fn)
	if end := f.ended(); end != nil {
		return end.res, end.err
	}
	answer, definitive := errors.AsType[*answered](err)
	if definitive {
		resp, err = a.response(answer.v)
	}
	if err == nil {
		err = checkStatus(&resp)
	}
	if err == nil {
		a.cleaned(ctx, &resp)
	}
	failed := f.failure()
	if err == nil && f.leftBehind() {
		err = failed // a call in progress may contradict any answer
	}
	keeps := definitive || failed == nil && a.opt.Stored(resp.Status)
	if err == nil && (keeps || failed == nil && final(resp.Status)) {
		err = f.complete() // no answer leaves over recorded work that the handler passed by
	}
	if err == nil && keeps {
		return a.conclude(ctx, f, resp)
	}
	if err == nil && failed != nil {
		a.log.ErrorContext(ctx, "answer not stored: a phase had failed", "record", redact.Record(a.pk), "error", failed)
		if resp.Status < http.StatusBadRequest {
			err = failed // a client that gets a success doesn't retry
		}
	}
	return a.withdraw(ctx, f, resp, err, failed)
}

// handle calls fn, and releases the lease if fn doesn't return. handle doesn't
// recover a panic (or runtime.Goexit), so that the caller sees it.
func (a *attempt) handle(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Response, error) {
	outer, _ := FromContext(ctx)
	f.within = opContext{ctx, Op{store: a.store, pk: a.pk, flow: f, resumed: resumed, outer: outer}}
	defer f.within.op.over.Store(true)
	ctx = &f.within //nolint:contextcheck // it inherits from ctx
	hctx := ctx
	if a.limit == 0 { // with a limit, the handler's context stays unchanged
		lctx, lost := context.WithCancelCause(ctx)
		defer lost(nil)
		var cancel context.CancelFunc
		hctx, cancel = context.WithDeadline(lctx, a.unbegun())
		defer cancel()
		f.keep(ctx, lost)
	}
	back := false
	defer func() {
		f.unkeep()
		f.close()
		if rec := f.record(); !back && rec != nil && (f.ended() == nil || f.restart) {
			_, _, _ = a.release(ctx, rec, f.giveBack(), errPanic) // release logs its own failure
		}
	}()
	resp, err := fn(hctx)
	back = true
	return resp, err
}

var errPanic = errors.New("handler panicked")

// conclude stores the handler's answer and returns it. The effect has happened,
// so a failed write need not be an error: at worst, the answer of a handler
// without phases is returned unstored. A failure is an error if the commit
// contains more than the answer: a merged claim, or pending results or jobs. A
// failure is also an error with phases or a stored request, since another attempt
// may come to another answer.
func (a *attempt) conclude(ctx context.Context, f *flow, resp Response) (Result, error) {
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
		if !refused(err) {
			break
		}
	}
	rec := f.record()
	if rec == nil {
		if _, ours := errors.AsType[*Error](err); !ours {
			err = a.unavailable("claim", err)
		}
		a.tell(ctx, evFailed, a.event(nil, err))
		return Result{}, err
	}
	// Keep the lease: a retry must not repeat the effect at once.
	err = a.fail("finish", err)
	a.log.ErrorContext(ctx, "answer not stored: a retry after the lease runs again", "record", redact.Record(a.pk), "error", err)
	a.tell(ctx, evFailed, a.event(rec, err))
	if rec.Keep == store.KeepOpen || f.outstanding() {
		return Result{}, a.unavailable("finish", err)
	}
	a.tell(ctx, evUnstored, a.event(rec, err))
	return Result{Response: resp, Unstored: true}, nil
}

// mayDrop reports whether an answer whose storing failed with err may be given up for
// its status: if it can never fit, or if nothing but the record shows that a handler
// without phases has had its effect. A record that is kept, or whose deferred results
// are not written yet, stays open instead: its next attempt comes to an answer that can
// be stored.
func (f *flow) mayDrop(err error) bool {
	rec := f.record()
	f.mu.Lock()
	deferred := len(f.pending) > 0
	f.mu.Unlock()
	return errors.Is(err, store.ErrTooLarge) || rec != nil && !state.Kept(rec) && !deferred
}

// withdraw ends an attempt without a stored answer. Its outcome is resp or err.
func (a *attempt) withdraw(ctx context.Context, f *flow, resp Response, err, failed error) (Result, error) {
	rec := f.record()
	if rec == nil {
		return a.consult(ctx, f, resp, err)
	}
	cause := err
	if cause == nil {
		cause = failed
	}
	b := f.giveBack()
	b.Answers, b.Counted = err == nil && final(resp.Status), a.resumed
	if cause == nil {
		b.Refused, b.Why = resp.Status/100 == 4, notStored(resp.Status)
	}
	if next := state.Released(rec, a.opt.Now(), b); b.Answers && !a.resumed && state.Kept(next) && next.Tries >= a.opt.MaxTries {
		return Result{}, f.tires(ctx, b)
	}
	held, l, rerr := a.release(ctx, rec, b, cause)
	switch {
	case l == state.Fenced && rerr == nil:
		if err != nil {
			a.log.ErrorContext(ctx, "handler failed in an overtaken attempt", "record", redact.Record(a.pk), "error", err)
		}
		return a.overtaken(ctx, held)
	case l == state.Landed && held.State == store.Done:
		return a.answer(ctx, held, state.Replay) // the answer was stored after all
	case err != nil:
		if rerr != nil {
			err = errors.Join(err, rerr)
		}
		return Result{}, &handlerError{err}
	case b.Answers && (rerr != nil || l == state.Landed && state.Kept(held)):
		return a.withhold(ctx, rec, held, resp)
	default:
		return Result{Response: resp}, nil
	}
}

// final reports whether a client takes an answer with this status for the outcome.
// After a 5xx it doesn't know the outcome, and retries.
func final(status int) bool { return status < http.StatusInternalServerError }

// withhold answers in place of an answer that isn't stored: the operation may still act
// without its client, and come to another answer. held is nil if the outcome of the
// release is unknown.
func (a *attempt) withhold(ctx context.Context, rec, held *store.Record, resp Response) (Result, error) {
	a.log.WarnContext(ctx, "answer withheld: it is not stored, and the operation is not finished; a handler ends an operation with idem.Respond",
		"record", redact.Record(a.pk), "operation", rec.ID, "route", rec.Route, "status", resp.Status)
	if held != nil {
		rec = held
	}
	return a.unfinished(rec, notStored(resp.Status))
}

// notStored describes an answer that the policy doesn't store.
func notStored(status int) string {
	return fmt.Sprintf("the handler answered %d, which is not stored", status)
}

// consult reads the record of an attempt that never claimed, before its unstored
// answer is returned: a finished operation has its own answer, and a different
// request must not pass as this request. consult takes over the committed work of
// an abandoned attempt, and the handler begins again with that record.
func (a *attempt) consult(ctx context.Context, f *flow, resp Response, err error) (Result, error) {
	until := a.until(nil)
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	held, lerr := a.store.Load(ctx, a.pk)
	if lerr != nil {
		err = a.unavailable("look", errors.Join(lerr, err))
		a.tell(ctx, evFailed, a.event(nil, err))
		return Result{}, err
	}
	v, jerr := a.judge(held)
	if jerr == nil && v == state.TakeOver {
		held, v, jerr = a.judgeOrTakeOver(ctx, held, until)
	}
	switch {
	case jerr != nil:
		return Result{}, jerr
	case v == state.TakeOver:
		f.set(held)
		f.restart = true
		return Result{}, nil
	case v != state.Again:
		return a.answer(ctx, held, v)
	case err != nil:
		return Result{}, &handlerError{err}
	}
	return Result{Response: resp}, nil
}

// pass runs fn without the engine.
func (e *Engine) pass(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	inner := ctx
	if r.hasSender() {
		inner = WithSender(ctx, r)
	}
	resp, err := fn(inner)
	if answer, ok := errors.AsType[*answered](err); ok && !nested(ctx) {
		resp, err = (&attempt{Engine: e, req: r}).response(answer.v)
	}
	if err != nil {
		return Result{Passed: true}, &handlerError{err}
	}
	return Result{Response: resp, Passed: true}, nil
}
