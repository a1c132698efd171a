package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
)

// Serve is [Engine.Do] with the HTTP contract: Serve finds the key ([Request.Key]),
// passes requests with methods outside of [Options.Methods] to fn, and turns every
// refusal into an answer. Adapters and [Engine.Middleware] use Serve.
//
// Serve returns an error only if fn fails and the request has passed: the engine did
// nothing for the request ([Result.Passed]). The error is then fn's own. If fn panics,
// Serve answers as after an error, and returns the panic's value in Result.Panic. But
// if the panic is http.ErrAbortHandler, or the request has passed, the panic continues.
func (e *Engine) Serve(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	c, a := contract{e.core}, e.core.attempt()
	a.ask.reqValue, a.ask.served = r, true     // a.ask.req points to reqValue
	inner := e.core.completing(ctx, a.ask.req) // true if a completer runs the handler: then the outer wrapper protects this run
	echo, acts, err := c.key(ctx, &a.ask)
	var res Result
	var left *leaving
	switch {
	case inner || !acts && err == nil:
		return e.Pass(ctx, a.ask.reqValue, fn)
	case e.core.opt.Mode == ModeObserve:
		ctx, left = leave(ctx)
		res, err = a.observe(ctx, err, fn)
	case err != nil:
		a.refused(ctx, err)
	default:
		var caught *panicked
		res, err = a.do(ctx, e.core.catching(r.Route, fn, &caught))
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
		res.addHeaders(e.core.opt.KeyHeader, echo)
		if r := e.core.opt.rules; err == nil && (r.requestID || r.stripe) {
			c.dress(a.ask.req, &res)
		}
	case !nested(ctx): // inside of an operation, the key isn't ignored, because the outer wrapper uses the key
		c.ignores(&r, &res, left)
	}
	return res, nil
}

// contract is the HTTP contract of an engine: where a request's key is, and which answer
// and headers the request gets.
type contract struct{ core *core }

// core.completing reports whether r has no key, and ctx belongs to an operation of this
// engine that a completer is finishing. (The completer's r has no key, because a stored
// request doesn't contain the key.) If ctx belongs to an operation of another engine,
// completing returns false: this engine then runs a separate operation, which needs its
// own protection.
func (e *core) completing(ctx context.Context, r *Request) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load() && op.run.ask.unattended && op.run.ask.core == e &&
		r.Key == "" && !e.opt.hasKey(r.Header)
}

// core.catching returns a function that calls fn. If fn panics, the function stores the
// panic in caught and returns it as an error. As after any error, the record is then
// released, and the client is told to retry. http.ErrAbortHandler, which makes net/http
// cut the connection, and runtime.Goexit are not caught.
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

// contract.problem makes the engine's answer for err.
func (c contract) problem(ctx context.Context, r *Request, err error) Response {
	e := c.core
	p := problemOf(err)
	least := e.opt.MinKey
	if e.names.claimsBy.one || e.names.claimsBy.all {
		least = e.opt.oneKey
	}
	if errors.Is(err, ErrKeyInvalid) && (e.opt.rules.quoted || least > 1) {
		p.Detail = fmt.Sprintf("Send one key of %d to %d visible ASCII characters, for instance a UUID", least, defaults.MaxKey)
		if e.opt.rules.quoted {
			p.Detail += ", in double quotes (a string of RFC 9651)"
		}
		p.Detail += "."
	}
	if _, ok := errors.AsType[*recordUnread](err); ok {
		p.Detail = unreadDetail
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		p = problemIn(h.err)
		p.Err = h.err
		e.log.ErrorContext(ctx, "handler failed", "route", r.Route, "error", redact.Error(h.err))
	}
	return c.render(r, p)
}

// contract.render makes the engine's answer to r for a problem.
func (c contract) render(r *Request, p Problem) Response {
	e := c.core
	p.Title, p.Detail = strings.ReplaceAll(p.Title, KeyHeader, e.opt.KeyHeader), strings.ReplaceAll(p.Detail, KeyHeader, e.opt.KeyHeader)
	resp := e.opt.Problem(p)
	clean(&resp)
	e.opt.CORS.Allow(&resp, r.Header)
	if e.opt.rules.requestID {
		echoRequestID(&resp, r)
	}
	return resp
}

// addHeaders adds the headers of a keyed answer. The parameter echo is the value for
// the header keyHeader: the key in the form in which it was sent. The record doesn't
// contain the added headers. Without them, the first answer and its replays have the
// same bytes.
func (r *Result) addHeaders(keyHeader, echo string) {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header, 3)
	}
	if echo != "" {
		h[keyHeader] = []string{echo}
	}
	if !r.Expires.IsZero() {
		h[expiresHeader] = []string{r.Expires.UTC().Format(http.TimeFormat)}
	}
	if r.Replayed {
		h[ReplayedHeader] = []string{"true"}
	} else {
		delete(h, ReplayedHeader)
	}
	delete(h, statusHeader) // only the engine sets this header
	if r.Unstored {
		h[statusHeader] = []string{"unstored"}
	}
	r.Header = h
}

// contract.dress adds the preset's headers to r. Stripe's headers belong to stored
// answers only.
func (c contract) dress(q *Request, r *Result) {
	if c.core.opt.rules.requestID {
		echoRequestID(&r.Response, q)
	}
	if c.core.opt.rules.stripe && (r.Replayed || !r.Expires.IsZero()) {
		stripeHeaders(&r.Response)
	}
}

func echoRequestID(resp *Response, r *Request) {
	ids := headerValues(r.Header, requestID)
	if len(ids) != 1 || splits(ids[0]) {
		return
	}
	if resp.Header == nil {
		resp.Header = make(http.Header, 1)
	}
	resp.Header[requestID] = ids
}

// If the engine has ignored r's key, the answer gets the status header "ignored".
func (c contract) ignores(r *Request, res *Result, left *leaving) {
	if !c.core.opt.hasKey(r.Header) || left != nil && left.acted.Load() {
		return
	}
	res.Passed = false // this answer gets a header, so the engine has changed it
	res.Header = res.Header.Clone()
	if res.Header == nil {
		res.Header = make(http.Header, 1)
	}
	res.Header[statusHeader] = []string{ignored}
}
