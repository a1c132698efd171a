package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/internal/state"
)

// observing limits each step at the store: a table that hangs must not use up the
// handler's time.
const observing = time.Second

// observed reports the outcome that r would have had.
func (e *core) observed(ctx context.Context, r *Request, err error) {
	e.log.InfoContext(ctx, "observed", "route", r.Route, "would", err)
	e.attemptAt(r).tell(ctx, evObserved, nil, err)
}

// observe always runs fn and reports to Hooks.Observed the outcome that the
// request would have had. New operations leave a record, so that later requests
// can be judged. Errors of the record never reach the client.
func (e entry) observe(ctx context.Context, keyErr error, fn func(context.Context) (Response, error)) (Result, error) {
	would := func(err error) { e.observed(ctx, e.req, err) }
	if keyErr != nil {
		would(keyErr)
		return e.unprotected(ctx, e.req, fn)
	}
	err := e.find(ctx, true)
	if err == nil {
		if e.inside(ctx) {
			return e.pass(ctx, e.req, fn)
		}
		err = e.start(ctx)
	}
	if err != nil {
		would(err)
		return e.unprotected(ctx, e.req, fn)
	}
	e.limit = observing
	held, v, err := before(e).enters(ctx)
	defer e.place.leave()
	if err == nil && v == state.Again {
		held, v, err = e.claim(ctx)
	}
	if v != state.Own && v != state.TakeOver {
		if err == nil {
			err = outcomes[v]
		}
		would(err)
		return e.unprotected(ctx, e.req, fn)
	}
	f := e.flow(held)
	ctx, without := withoutRecord(ctx)
	resp, err := e.handle(ctx, f, v == state.TakeOver, fn)
	if answer, ok := errors.AsType[*answered](err); ok {
		resp, err = e.req.response(answer.v)
	}
	stored := resp
	clean(&stored)
	if without.refused.Load() {
		resp, err = Response{}, e.phaseRefused(ctx, e.req)
	}
	if f.ended() == nil && err == nil && checkStatus(&stored) == nil && e.opt.Stored(stored.Status) {
		_ = f.finish(ctx, stored, nil, nil, false)
	}
	if f.ended() == nil {
		_, _, _ = e.release(ctx, f.record(), f.releasing(), err)
	}
	if e.place != nil {
		e.place.holds(f.record())
	}
	if without.refused.Load() {
		return Result{}, err
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
var outcomes = [...]error{
	state.Mismatch: ErrMismatch, state.Replay: ErrReplay, state.Expired: ErrExpired, state.Stuck: ErrStuck, state.InFlight: ErrInFlight, state.TooSoon: ErrUnfinished,
	state.Again: ErrInFlight,
}
