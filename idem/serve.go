package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Headers of keyed answers.
const (
	// ReplayedHeader marks a stored answer with "true" (R34).
	ReplayedHeader = "Idempotent-Replayed"
	// ExpiresHeader is the end of the key's lifetime, as an HTTP date: a later retry
	// is a new request.
	ExpiresHeader = "Idempotency-Expires"
	// StatusHeader is "ignored" if the request has a key header and the engine did
	// nothing with the key: because of another method, Disabled, KeyObserve, or
	// FailOpen with an unreachable store. It is "unstored" on a handler's answer that
	// could not be stored ([Result.Unstored]). In both cases a retry may have the same
	// effect again.
	StatusHeader = "Idempotency-Status"

	ignored = "ignored"
)

// Serve is [Engine.Do] with the HTTP contract: Serve finds the key in the header,
// passes other methods, and turns every refusal into an answer. Adapters and
// [Engine.Middleware] use Serve.
//
// The error is nil unless the request passed or [Options.PassErrors] is set; then
// it is fn's own error. Serve answers a panic of fn like an error and returns the
// panic in Result.Panic. In the cases where an error would be returned, the panic
// continues; http.ErrAbortHandler always continues.
func (e *Engine) Serve(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	a := &attempt{Engine: e, request: r}
	a.req = &a.request
	inner := e.resumes(ctx, a.req) // the outer wrapper has the key, which isn't stored with a request
	echo, acts, err := e.key(ctx, a.req)
	var res Result
	var left *leaving
	switch {
	case inner || !acts && err == nil:
		return e.Pass(ctx, a.request, fn)
	case e.opt.Key == KeyObserve && (acts || err != nil):
		ctx, left = leave(ctx)
		res, err = e.observe(ctx, a, err, fn)
	case err != nil:
		e.refuses(ctx, a.req, err)
	case e.opt.PassErrors:
		res, err = a.do(ctx, true, fn)
	default:
		var caught *panicked
		if res, err = a.do(ctx, true, e.catching(r.Route, fn, &caught)); caught != nil {
			if res.Passed {
				panic(caught.value) //nolint:forbidigo // the handler's own, as without a wrapper
			}
			res.Panic = caught.value
		}
	}
	if h, ok := errors.AsType[*handlerError](err); ok && (res.Passed || e.opt.PassErrors) {
		return res, h.err
	}
	if err != nil {
		res = Result{Response: e.problem(ctx, a.req, err), Panic: res.Panic}
		if ours, ok := errors.AsType[*Error](err); ok {
			res.Expires = ours.Expires
		}
	}
	switch {
	case !res.Passed:
		if l, ok := ctx.Value(leavingKey{}).(*leaving); ok {
			l.hear()
		}
		res.mark(e.opt.KeyHeader, echo)
		if err == nil {
			e.dress(&res)
		}
	case !nested(ctx): // otherwise the outer wrapper has the key
		e.ignores(&r, &res, left)
	}
	return res, nil
}

// Pass runs fn for a request on which the engine doesn't act, as Serve does for
// other methods. If the request has a key header, the answer says that the key was
// ignored ([StatusHeader]), unless another engine inside of fn acted. The error is
// fn's own. Pass is for adapters, for requests that they can't decode.
func (e *Engine) Pass(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	if !e.hasKey(r.Header) {
		return e.passes(ctx, &r, fn)
	}
	ctx, left := leave(ctx)
	res, err := e.passes(ctx, &r, fn)
	if err == nil {
		e.ignores(&r, &res, left)
	}
	return res, err
}

// passes is pass with fn's own error.
func (e *Engine) passes(ctx context.Context, r *Request, fn func(context.Context) (Response, error)) (Result, error) {
	res, err := e.pass(ctx, r, fn)
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	return res, err
}

// ignores marks the answer to a request whose key the engine left alone.
func (e *Engine) ignores(r *Request, res *Result, left *leaving) {
	if !e.hasKey(r.Header) || left != nil && left.acted.Load() {
		return
	}
	res.Passed = false // the answer is no longer the handler's own
	res.Header = res.Header.Clone()
	if res.Header == nil {
		res.Header = make(http.Header, 1)
	}
	res.Header[StatusHeader] = []string{ignored}
}

// leaving is an engine that leaves a request to its handler. Another engine inside of
// the handler may act on the request's key, which then is not ignored.
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

// hear tells l, and the engines around it, that an engine inside has acted.
func (l *leaving) hear() {
	for ; l != nil; l = l.outer {
		l.acted.Store(true)
	}
}

// Refuse answers a request that could not be decoded. Refuse wraps err with
// [ErrRequest] unless err is one of this package's errors. Refuse is for
// adapters.
func (e *Engine) Refuse(ctx context.Context, r Request, err error) Response {
	if problemOf(err).Code == failed.Code {
		err = errors.Join(ErrRequest, err)
	}
	e.refuses(ctx, &r, err)
	return e.answers(&r, problemOf(err))
}

// Keeps reports whether answers with this status are stored ([Options.Stored]).
// Keeps is for adapters whose answers have no status of their own.
func (e *Engine) Keeps(status int) bool { return e.opt.Disabled || e.opt.Stored(status) }

// Reserve returns [Options.Reserve], for adapters that divide an invocation's
// time among several requests.
func (e *Engine) Reserve() time.Duration { return e.opt.Reserve }

// key finds the key of r and its form for the echo. acts is false if the request
// passes without a key. What KeyFrom finds goes before the header: the page or the
// producer chose it for this work, while a browser may add a header of its own to
// each submission.
func (e *Engine) key(ctx context.Context, r *Request) (echo string, acts bool, err error) {
	if e.opt.Disabled || !e.methods[r.Method] {
		return "", false, nil
	}
	if r.Key != "" { // found outside of the header
		if err := checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, false); err != nil {
			return "", false, &Error{Op: "key", Err: err}
		}
		return r.Key, true, nil
	}
	if e.opt.KeyFrom != nil {
		if r.Key, err = e.opt.KeyFrom(r); err == nil {
			err = checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, false)
		}
		if err == nil || !errors.Is(err, ErrKeyMissing) {
			return "", err == nil, e.keyError(err)
		}
	}
	values := headerValues(r.Header, e.opt.KeyHeader)
	r.Key, err = parseKey(values, e.opt.MinKey, e.opt.MaxKey, e.opt.StrictKey)
	switch {
	case err == nil:
		return echoed(values[0], r.Key), true, nil
	case !errors.Is(err, ErrKeyMissing):
		return "", false, &Error{Op: "key", Err: err}
	}
	acts, err = e.keyless(ctx, r)
	return r.Key, acts, err
}

// echoed returns key in the form of value, without parameters.
func echoed(value, key string) string {
	if strings.HasPrefix(strings.TrimLeft(value, " \t"), `"`) {
		return quoted(key)
	}
	return key
}

// problem makes the engine's answer for err.
func (e *Engine) problem(ctx context.Context, r *Request, err error) Response {
	p := problemOf(err)
	least := e.opt.MinKey
	if e.claims.one || e.claims.all {
		least = e.opt.oneKey
	}
	if errors.Is(err, ErrKeyInvalid) && (e.opt.StrictKey || least > 1 || e.opt.MaxKey < DefaultMaxKey) {
		p.Detail = fmt.Sprintf("Send one key of %d to %d visible ASCII characters, for instance a UUID", least, e.opt.MaxKey)
		if e.opt.StrictKey {
			p.Detail += ", in double quotes (a string of RFC 9651)"
		}
		p.Detail += "."
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		p = problemIn(h.err)
		p.Err = h.err
		e.log.ErrorContext(ctx, "handler failed", "route", r.Route, "error", h.err)
	}
	return e.answers(r, p)
}

// answers makes the engine's answer to r for a problem.
func (e *Engine) answers(r *Request, p Problem) Response {
	if e.opt.KeyHeader != KeyHeader {
		p.Title, p.Detail = strings.ReplaceAll(p.Title, KeyHeader, e.opt.KeyHeader), strings.ReplaceAll(p.Detail, KeyHeader, e.opt.KeyHeader)
	}
	resp := e.opt.Problem(p)
	clean(&resp)
	e.opt.CORS.Allow(&resp, r.Header)
	return resp
}

// mark adds the headers of a keyed answer, among them the key's under its name. The
// headers are not stored: apart from them, the first answer and its replays have the
// same bytes.
func (r *Result) mark(keyHeader, echo string) {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header, 3)
	}
	if echo != "" {
		h[keyHeader] = []string{echo}
	}
	if !r.Expires.IsZero() {
		h[ExpiresHeader] = []string{r.Expires.UTC().Format(http.TimeFormat)}
	}
	if r.Replayed {
		h[ReplayedHeader] = []string{"true"}
	} else {
		delete(h, ReplayedHeader)
	}
	delete(h, StatusHeader) // only the engine sets this header
	if r.Unstored {
		h[StatusHeader] = []string{"unstored"}
	}
	r.Header = h
}

// dress adds the preset's headers to stored answers. Answers of the handler that
// were not stored stay unchanged.
func (e *Engine) dress(r *Result) {
	if e.opt.stripe && (r.Replayed || !r.Expires.IsZero()) {
		stripeHeaders(&r.Response)
	}
}
