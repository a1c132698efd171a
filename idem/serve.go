package idem

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
)

// Serve is [Engine.Do] with the HTTP contract: Serve finds the key in the header,
// passes other methods, and turns every refusal into an answer. Adapters and
// [Engine.Middleware] use Serve.
//
// The error is nil unless the request passed; then it is fn's own error. Serve answers a panic of fn like an error and returns the
// panic in Result.Panic. In the cases where an error would be returned, the panic
// continues; http.ErrAbortHandler always continues.
func (e *Engine) Serve(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	c, a := contract{e.core}, e.core.attempt()
	a.ask.request = r
	inner := e.core.resumes(ctx, a.ask.req) // the outer wrapper has the key, which isn't stored with a request
	echo, acts, err := c.key(ctx, &a.ask)
	var res Result
	var left *leaving
	switch {
	case inner || !acts && err == nil:
		return e.Pass(ctx, a.ask.request, fn)
	case e.core.opt.Mode == ModeObserve:
		ctx, left = leave(ctx)
		res, err = a.observe(ctx, err, fn)
	case err != nil:
		e.core.refuses(ctx, a.ask.req, err)
	default:
		var caught *panicked
		res, err = a.do(ctx, true, e.core.catching(r.Route, fn, &caught))
		if caught != nil {
			if res.Passed {
				panic(caught.value) //nolint:forbidigo // the handler's own, as without a wrapper
			}
			res.Panic = caught.value
		}
	}
	if h, ok := errors.AsType[*handlerError](err); ok && res.Passed {
		return res, h.err
	}
	if err == nil {
		err = legible(a.ask.req, &res)
	}
	if err != nil {
		res = Result{Response: c.problem(ctx, a.ask.req, err), Panic: res.Panic}
		if ours, ok := errors.AsType[*Error](err); ok {
			res.Expires = ours.Expires
		}
	}
	switch {
	case !res.Passed:
		if l, ok := ctx.Value(leavingKey{}).(*leaving); ok {
			l.hear()
		}
		res.mark(e.core.opt.KeyHeader, echo)
		if r := e.core.opt.rules; err == nil && (r.requestID || r.stripe) {
			c.dress(a.ask.req, &res)
		}
	case !nested(ctx): // otherwise the outer wrapper has the key
		c.ignores(&r, &res, left)
	}
	return res, nil
}

// catching returns fn with its panics turned into errors and stored in caught. As
// after an error, the attempt is released and the client is told to retry.
// http.ErrAbortHandler, which makes net/http cut the connection, continues, and
// so does runtime.Goexit.
func (e *core) catching(route string, fn func(context.Context) (Response, error), caught **panicked) func(context.Context) (Response, error) {
	return func(ctx context.Context) (resp Response, err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // a panic is that value, never one that wraps it
				panic(v) //nolint:forbidigo // as above
			}
			*caught = &panicked{v}
			e.log.ErrorContext(ctx, "handler panicked", "route", route, "error", *caught, "stack", string(debug.Stack()))
			resp, err = Response{}, *caught
		}()
		return fn(ctx)
	}
}

// Pass runs fn for a request on which the engine doesn't act, as Serve does for
// other methods. If the request has a key header, the answer says that the key was
// ignored (Idempotency-Status), unless another engine inside of fn acted. The error is
// fn's own. Pass is for adapters, for requests that they can't decode.
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

// passed returns the outcome of a pass, with fn's own error.
func passed(res Result, err error) (Result, error) {
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}

// Refuse answers a request that could not be decoded, or is too large to be read. If its
// key is known, the answer is that of [ErrIncomparable]; otherwise it is err's. Refuse wraps
// err with [ErrRequest] unless err is one of this package's errors. Refuse is for adapters.
func (e *Engine) Refuse(ctx context.Context, r Request, err error) Response {
	if problemOf(err).Code == failed.Code {
		err = errors.Join(ErrRequest, err)
	}
	r.Unread = err
	res, _ := e.Serve(ctx, r, func(ctx context.Context) (Response, error) { // the engine doesn't act, or it has the key already
		e.core.refuses(ctx, &r, err)
		return contract{e.core}.answers(&r, problemOf(err)), nil
	})
	return res.Response
}

// OneCaller reports whether callers whom nobody verifies are one caller ([OneScope]), or
// the engine takes no part in requests. OneCaller is for adapters whose clients choose keys.
func (e *Engine) OneCaller() bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Mode == ModeObserve || e.core.opt.oneScope
}

// Keeps reports whether an empty answer with this status is stored ([Options.Stored]).
// Keeps is for adapters whose answers have no status of their own.
func (e *Engine) Keeps(status int) bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Stored(Response{Status: status})
}

// StoresRequests returns [Options.Resumable], for adapters: other engines need no
// [Request.Snapshot].
func (e *Engine) StoresRequests() bool { return e.core.opt.Resumable }

// Observes reports whether the engine only observes ([ModeObserve]). If so,
// Observes reports r and err, the reason why r can't be read, to the hook; the
// caller still runs the handler. Observes is for adapters.
func (e *Engine) Observes(ctx context.Context, r Request, err error) bool {
	if e.core.opt.Mode != ModeObserve {
		return false
	}
	e.core.observed(ctx, &r, err)
	return true
}
