package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/internal/state"
)

// observeLimit limits each call to the store in ModeObserve, so that a table that hangs
// doesn't use up the handler's time.
const observeLimit = time.Second

// core.observed reports err, the outcome that r would have had in ModeEnforce.
func (e *core) observed(ctx context.Context, r *Request, err error) {
	e.log.InfoContext(ctx, "observed", "route", r.Route, "would", err)
	e.attemptAt(r).watch.tell(ctx, evObserved, nil, err)
}

// attempt.observe runs fn in every case. If ModeEnforce would not have run fn, observe
// reports the outcome in ModeEnforce to Hooks.Observed. A new operation leaves a
// record, with which later requests are compared. Errors of reading or writing the
// record never reach the client.
func (a *attempt) observe(ctx context.Context, keyErr error, fn func(context.Context) (Response, error)) (Result, error) {
	e, q := a.core, &a.ask
	would := func(err error) (Result, error) {
		e.observed(ctx, q.req, err)
		return e.unprotected(ctx, q.req, fn)
	}
	if keyErr != nil {
		return would(keyErr)
	}
	switch inside, err := q.find(ctx); {
	case err != nil:
		return would(err)
	case inside:
		return e.pass(ctx, q.req, fn)
	}
	a.times.arrives(ctx)
	if err := a.times.enough(q.home.pk); err != nil {
		return would(err)
	}
	a.times.callLimit = observeLimit
	c := a.claiming()
	defer func() { c.seat.leave() }()
	held, v, err := c.enter(ctx)
	if v != state.Own && v != state.TakeOver {
		if err == nil {
			err = outcomes[v]
		}
		return would(err)
	}
	r := a.run(held, c.writer)
	defer func() { c.seat.holds(r.record()) }()
	ctx, without := withoutRecord(ctx)
	o := r.handle(ctx, v == state.TakeOver, fn)
	resp, err := o.resp, o.err
	answer, definitive := errors.AsType[*answered](err)
	if definitive {
		resp, err = q.req.response(answer.v)
	}
	stored := resp
	clean(&stored)
	if without.refused.Load() {
		resp, err = Response{}, e.phaseRefused(ctx, q.req)
	}
	if o.end == nil && err == nil && checkStatus(&stored) == nil && (definitive || e.opt.Stored(stored)) {
		o.end, _ = r.endInPhase(ctx, stored, nil, nil)
	}
	if o.end == nil {
		_, _, _ = r.release(ctx, r.releasing(), err)
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

// outcomes has the error to report for each verdict.
var outcomes = [...]error{
	state.Mismatch: ErrMismatch, state.Replay: ErrReplay, state.Stuck: ErrStuck, state.InFlight: ErrInFlight, state.TooSoon: ErrUnfinished,
	state.Claimable: ErrInFlight,
}
