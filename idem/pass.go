package idem

import (
	"context"
	"errors"
	"sync/atomic"
)

// Pass runs fn for a request on which the engine doesn't act, such as a request whose
// method isn't in [Options.Methods]. If the request has a key header, the answer says
// that the key was ignored (Idempotency-Status), unless another engine inside of fn
// acted on the request. If fn fails, Pass returns fn's error unchanged. Serve also
// passes such requests; adapters call Pass for requests that they can't decode.
func (e *Engine) Pass(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	c, keyed := contract{e.core}, e.core.opt.hasKey(r.Header)
	var left *leaving
	if keyed {
		ctx, left = leave(ctx)
	}
	run := e.core.pass
	switch e.core.opt.Mode {
	case ModeOff:
		run = e.core.off
	case ModeObserve:
		run = e.core.unprotected
	case ModeEnforce, ModeOpen:
	}
	res, err := passed(run(ctx, &r, fn))
	if ours, ok := errors.AsType[*Error](err); ok && !res.Passed {
		res, err = Result{Response: c.problem(ctx, &r, ours)}, nil
	}
	if keyed && err == nil {
		c.ignores(&r, &res, left)
	}
	return res, err
}

// The function named passed returns the handler's own error in place of a handlerError.
func passed(res Result, err error) (Result, error) {
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}

func (e *core) pass(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	inner := ctx
	if r.hasSender() {
		inner = WithSender(ctx, r)
	}
	resp, err := fn(inner)
	if answer, ok := errors.AsType[*answered](err); ok && !nested(ctx) {
		resp, err = r.response(answer.v)
	}
	if err != nil {
		return Result{Passed: true}, &handlerError{err}
	}
	return Result{Response: resp, Passed: true}, nil
}

func (e *core) off(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	e.tellsOff(ctx, r)
	return e.unprotected(ctx, r, fn)
}

// tellsOff reports to the hooks that a request with a key runs without protection in
// ModeOff.
func (e *core) tellsOff(ctx context.Context, r *Request) {
	if r.Key != "" || e.methods[r.Method] && e.opt.hasKey(r.Header) {
		e.attemptAt(r).watch.tell(ctx, evUnprotected, nil, nil)
	}
}

// core.unprotected runs fn without a record. If fn begins a phase, the phase is
// refused. The request is then refused too, whatever fn answers.
func (e *core) unprotected(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	ctx, without := withoutRecord(ctx)
	res, err := e.pass(ctx, r, fn)
	if without.refused.Load() {
		return Result{}, e.phaseRefused(ctx, r)
	}
	return res, err
}

// recordless is a request that runs without a record because of the engine's mode. Its
// phases are refused, because the derived keys of their calls come from the operation's
// id, which would be new at each retry.
type recordless struct{ refused atomic.Bool }

type recordlessKey struct{}

func withoutRecord(ctx context.Context) (context.Context, *recordless) {
	without := new(recordless)
	return context.WithValue(ctx, recordlessKey{}, without), without
}

// refusesPhase refuses a phase in ctx if the request of ctx is recordless: it notes the
// refusal and returns the error. Otherwise it returns nil.
func refusesPhase(ctx context.Context) error {
	without, ok := ctx.Value(recordlessKey{}).(*recordless)
	if !ok {
		return nil
	}
	without.refused.Store(true)
	return &Error{Op: "phase", Err: ErrUnprotected, phase: true}
}

// phaseRefused logs that a phase of r was refused, and returns the error for r.
func (e *core) phaseRefused(ctx context.Context, r *Request) error {
	e.log.ErrorContext(ctx, "request refused: a phase began without a record; a handler with phases needs ModeEnforce", "route", r.Route, "mode", e.opt.Mode)
	return &Error{Op: "phase", Err: ErrUnprotected}
}

// A leaving value belongs to a request that an engine passes to the handler without
// protection. The value records whether another engine inside of the handler has acted
// on the request's key. If so, the answer doesn't say that the key was ignored.
type leaving struct {
	acted atomic.Bool
	outer *leaving
}

type leavingKey struct{}

func leave(ctx context.Context) (context.Context, *leaving) {
	outer, _ := ctx.Value(leavingKey{}).(*leaving)
	l := &leaving{outer: outer}
	return context.WithValue(ctx, leavingKey{}, l), l
}

// leaving.hear records in l, and in each leaving value around l, that an inner engine
// has acted on the key.
func (l *leaving) hear() {
	for ; l != nil; l = l.outer {
		l.acted.Store(true)
	}
}
