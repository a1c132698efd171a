package idem

import (
	"context"
	"errors"
	"net/http"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/state"
)

// The course of a request with a key, in call order: do and proceed, then run, once and
// handle.

// entry is the way into an operation: an attempt that may run its handler, fn. (As a field
// of entry each fn would be on the heap.)
type entry struct{ *attempt }

// do runs the request with its key. accepts allows a 202 in place of an answer
// ([InFlightAccept]); only Serve sets accepts.
func (e entry) do(ctx context.Context, accepts bool, fn func(context.Context) (Response, error)) (Result, error) {
	if err := e.find(ctx, accepts); err != nil {
		e.refuses(ctx, e.req, err)
		return Result{}, err
	}
	e.accepts = accepts
	if inside, err := e.inside(ctx); inside {
		if err != nil {
			e.refuses(ctx, e.req, err)
			return Result{}, err
		}
		return e.pass(ctx, e.req, fn)
	}
	if e.opt.Hooks.Ended == nil && e.opt.Tracer == nil {
		return e.proceed(ctx, fn)
	}
	return e.watched(ctx, func(ctx context.Context) (Result, error) {
		if e.opt.Tracer == nil {
			return e.proceed(ctx, fn)
		}
		return e.operate(ctx, func(ctx context.Context) (Result, error) { return e.proceed(ctx, fn) })
	})
}

// proceed claims the record of the request, and runs fn or answers from the record.
func (e entry) proceed(ctx context.Context, fn func(context.Context) (Response, error)) (Result, error) {
	replies := reply(e)
	e.arrives(ctx)
	if e.opt.Resumable && !e.req.Redelivered {
		e.input = inputOf(e.req, e.opt.InputHeaders)
		e.bar("request", storable(e.input, e.opt.MaxInput))
	}
	e.bar("start", e.short())
	held, v, err := before(e).enters(ctx)
	if e.opt.Quota != nil {
		defer func() { e.place.leave() }()
	}
	if err == nil && v == state.Again {
		held, v, err = e.claim(ctx)
	}
	if v == state.InFlight {
		held, v, err = e.patiently(ctx, held, v)
	}
	switch {
	case e.opt.Mode == ModeOpen && !e.seen && unreachable(err):
		e.log.ErrorContext(ctx, "store unavailable: handler runs unprotected", "record", redact.Record(e.pk), "route", e.req.Route, "error", err)
		e.tell(ctx, evUnprotected, nil, err)
		return e.unprotected(ctx, e.req, fn)
	case errors.Is(err, ErrQuota):
		e.tell(ctx, evLimited, nil, err)
		return Result{}, err
	case e.barred != nil && errors.Is(err, e.barred):
		e.tell(ctx, evRefused, nil, err)
		return Result{}, err
	case err != nil:
		e.log.ErrorContext(ctx, "claim failed", "record", redact.Record(e.pk), "error", err)
		e.tell(ctx, evFailed, nil, err)
		return Result{}, err
	case v == state.Own || v == state.TakeOver:
		if err := e.enough(e.pk); err != nil { // the claim used up the time, or the sandbox was frozen
			_, _, _ = e.release(ctx, held, state.Release{}, err)
			if v == state.TakeOver {
				return replies.answer(ctx, held, state.TooSoon)
			}
			e.tell(ctx, evRefused, nil, err)
			return Result{}, err
		}
		return e.run(ctx, held, v == state.TakeOver, fn)
	default:
		return replies.answer(ctx, held, v)
	}
}

// before is what comes before the claim: the look at the record of a repetition, which costs
// less than a refused claim, and the quota.
type before struct{ *attempt }

// enters looks for the record of a repetition, and asks the quota about a new operation.
// That the request is a repetition may be a wrong guess, which decides about the price
// only. The verdict Again allows the claim, never of a request that may begin no operation.
// The caller leaves a.place.
func (a before) enters(ctx context.Context) (held *store.Record, v state.Verdict, err error) {
	if a.barred == nil && (a.req.ReadFirst || retrysign.In(a.req.Header)) {
		held, v, err = a.look(ctx)
	}
	if err == nil && v == state.Again {
		held, v, err = a.admit(ctx)
	}
	return held, v, err
}

// unreachable reports whether a claim failed because the store could not be
// reached. After the store has returned a record (subject.seen), ModeOpen must
// not run the request; nor after a certain refusal; nor if the key of its encryption
// can't be had, behind which there may be an answer.
func unreachable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Op == "claim" && errors.Is(err, ErrUnavailable) && !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrSealed)
}

// run calls fn and ends the operation according to its outcome. This attempt holds its
// record rec.
func (e entry) run(ctx context.Context, rec *store.Record, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	if resumed {
		e.tell(ctx, evTakenOver, rec, nil)
	} else {
		e.tell(ctx, evClaimed, rec, nil)
	}
	f := e.flow(rec)
	res, err := e.once(ctx, f, resumed, fn)
	if e.place != nil {
		e.place.holds(f.record())
	}
	return res, err
}

// once runs the handler once, and ends the operation if it can.
func (e entry) once(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Result, error) {
	resp, err := e.handle(ctx, f, resumed, fn)
	if end := f.ended(); end != nil {
		return end.res, end.err
	}
	answer, definitive := errors.AsType[*answered](err)
	if definitive {
		resp, err = e.req.response(answer.v)
	}
	if err == nil {
		err = checkStatus(&resp)
		e.cleaned(ctx, &resp)
	}
	left, failed := f.failure()
	if err == nil && left {
		err = failed // a call in progress may contradict any answer
	}
	keeps := definitive || failed == nil && e.opt.Stored(resp)
	if err == nil && (keeps || failed == nil && final(resp.Status)) {
		if err = f.leftover(&f.log); err != nil { // no answer leaves over recorded work that the handler passed by
			err = f.fail(err)
		}
	}
	if err == nil && keeps {
		return f.conclude(ctx, resp)
	}
	if err == nil && failed != nil {
		e.log.ErrorContext(ctx, "answer not stored: a phase had failed", "record", redact.Record(e.pk), "error", failed)
		if resp.Status < http.StatusBadRequest {
			err = failed // a client that gets a success doesn't retry
		}
	}
	return f.release(ctx, resp, err, failed)
}

// handle calls fn, and releases the lease if fn doesn't return. handle doesn't
// recover a panic (or runtime.Goexit), so that the caller sees it.
func (e entry) handle(ctx context.Context, f *flow, resumed bool, fn func(context.Context) (Response, error)) (Response, error) {
	outer, _ := FromContext(ctx)
	f.within = opContext{ctx, Op{store: e.store, pk: e.pk, flow: f, resumed: resumed, outer: outer}}
	defer f.within.op.over.Store(true)
	ctx = &f.within //nolint:contextcheck // it inherits from ctx
	hctx := ctx
	if e.limit == 0 { // with a limit, the handler's context stays unchanged
		lctx, lost := context.WithCancelCause(ctx)
		defer lost(nil)
		var cancel context.CancelFunc
		hctx, cancel = context.WithDeadline(lctx, e.unbegun)
		defer cancel()
		f.keep(ctx, lost)
	}
	back := false
	defer func() {
		f.unkeep()
		f.close()
		if !back && f.ended() == nil {
			_, _, _ = e.release(ctx, f.record(), f.releasing(), errPanic) // release logs its own failure
		}
	}()
	resp, err := fn(hctx)
	back = true
	return resp, err
}
