package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// observing limits each step at the store: a table that hangs must not use up the
// handler's time.
const observing = time.Second

// Observes reports whether the engine only observes ([KeyObserve]). If so,
// Observes reports r and err, the reason why r can't be read, to the hook; the
// caller still runs the handler. Observes is for adapters.
func (e *Engine) Observes(ctx context.Context, r Request, err error) bool {
	if e.opt.Key != KeyObserve || e.opt.Disabled {
		return false
	}
	e.log.InfoContext(ctx, "observed", "route", r.Route, "would", err)
	(&attempt{Engine: e, req: &r}).tell(ctx, evObserved, Event{Route: r.Route, Err: err})
	return true
}

// observe always runs fn and reports to Hooks.Observed the outcome that a's
// request would have had. New operations leave a record, so that later requests
// can be judged. Errors of the record never reach the client.
func (e *Engine) observe(ctx context.Context, a *attempt, keyErr error, fn func(context.Context) (Response, error)) (Result, error) {
	r := a.req
	would := func(err error) { e.Observes(ctx, *r, err) }
	if keyErr != nil {
		would(keyErr)
		return e.pass(ctx, r, fn)
	}
	err := e.attempt(ctx, a, true)
	if err == nil && !a.inside(ctx) {
		err = a.start(ctx)
	}
	if err != nil {
		would(err)
		return e.pass(ctx, r, fn)
	}
	if a.inside(ctx) {
		return e.pass(ctx, r, fn)
	}
	a.limit = observing
	var held *store.Record
	v := state.Again
	if e.opt.Quota != nil && !nested(ctx) {
		held, v, err = a.admit(ctx)
		defer a.place.leave()
	}
	if err == nil && v == state.Again {
		held, v, err = a.claim(ctx, nil, nil, false)
	}
	if err != nil || v != state.Own && v != state.TakeOver {
		if err == nil {
			err = outcomes[v]
		}
		would(err)
		return e.pass(ctx, r, fn)
	}
	f := &flow{a: a, rec: held}
	resp, err := a.handle(ctx, f, v == state.TakeOver, fn)
	if answer, ok := errors.AsType[*answered](err); ok {
		resp, err = a.response(answer.v)
	}
	if f.ended() == nil && err == nil && checkStatus(&resp) == nil && a.opt.Stored(resp.Status) {
		stored := resp
		clean(&stored)
		_ = f.finish(ctx, stored, nil, nil, false)
	}
	if f.ended() == nil {
		_, _, _ = a.release(ctx, f.record(), f.giveBack(), err)
	}
	if a.place != nil {
		a.place.holds(f)
	}
	if err != nil {
		return Result{Passed: true}, &handlerError{err}
	}
	return Result{Response: resp, Passed: true}, nil
}

// ErrReplay is passed to Hooks.Observed for a request that would have been
// answered from its record.
var ErrReplay = errors.New("would have been replayed")

// outcomes maps each verdict to the error that the request would have got.
var outcomes = map[state.Verdict]error{
	state.Mismatch: ErrMismatch, state.Replay: ErrReplay, state.Expired: ErrExpired, state.Stuck: ErrStuck, state.InFlight: ErrInFlight, state.TooSoon: ErrUnfinished,
	state.Again: ErrInFlight,
}
