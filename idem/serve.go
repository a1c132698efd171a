package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/samekey/samekey/internal/base/defaults"
)

// Serve is [Engine.Do] with the HTTP contract: Serve finds the key in the header, passes
// requests with methods that aren't in [Options.Methods], and turns every refusal into an
// answer. Adapters and [Engine.Middleware] use Serve.
//
// Serve returns an error only if the request passed: the error that fn returned. Serve
// answers a panic of fn like an error, and returns the panic's value in Result.Panic. Two
// panics continue: http.ErrAbortHandler, and any panic if the request passed.
func (e *Engine) Serve(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	c, a := contract{e.core}, e.core.attempt()
	a.ask.request = r
	inner := e.core.completing(ctx, a.ask.req) // if so, the outer wrapper has used the key, which isn't stored with the request
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
	case !nested(ctx): // inside of an operation, the outer wrapper uses the key
		c.ignores(&r, &res, left)
	}
	return res, nil
}

// contract is the HTTP contract of an engine: where a request's key is, and which answer
// and headers the request gets.
type contract struct{ core *core }

// completing reports whether ctx belongs to an operation of this engine that a completer is
// finishing, and r has no key of its own. In an operation of another engine, this engine
// runs a separate operation, which must not run without protection.
func (e *core) completing(ctx context.Context, r *Request) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load() && op.run.ask.unattended && op.run.ask.core == e &&
		r.Key == "" && !e.opt.hasKey(r.Header)
}

// key finds the request's key and the form in which the answer echoes it. acts is false if
// the request passes without a key. A key from KeyFrom replaces the key in the header: the
// page or the producer chose KeyFrom's key for this work, while a browser may add another
// key header to each submission.
func (c contract) key(ctx context.Context, q *ask) (echo string, acts bool, err error) {
	e, r := c.core, q.req
	if e.opt.Mode == ModeOff || !e.methods[r.Method] {
		return "", false, nil
	}
	if r.Key != "" { // an adapter found the key outside of the header
		if err := checkKey(r.Key, false); err != nil {
			return "", false, &Error{Op: "key", Err: err}
		}
		return r.Key, true, nil
	}
	if e.opt.KeyFrom != nil {
		if r.Key, err = e.opt.KeyFrom(r); err == nil {
			err = checkKey(r.Key, false)
		}
		switch {
		case r.Unread != nil && err != nil: // the key may be in the part that was not read
			return "", false, keyError(&recordUnread{r.Unread})
		case errors.Is(err, ErrRequest):
			return "", false, keyError(&recordUnread{err})
		case !errors.Is(err, ErrKeyMissing):
			return "", err == nil, keyError(err)
		}
	}
	r.Key, echo, err = parseKey(headerValues(r.Header, e.opt.KeyHeader))
	switch {
	case err == nil:
		q.bare = echo == r.Key
		return echo, true, nil
	case !errors.Is(err, ErrKeyMissing):
		return "", false, &Error{Op: "key", Err: err}
	}
	acts, err = e.keyless(ctx, r)
	return r.Key, acts, err
}

func keyError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "key", Err: err}
}

// keyless handles a request without a key; acts is false if the request passes. If the
// source repeats its requests, keyless makes no key, since each repetition would get
// another key. Inside an operation, a request without a key is part of that operation.
func (e *core) keyless(ctx context.Context, r *Request) (acts bool, err error) {
	switch generates := e.opt.Key == KeyGenerate && e.opt.Mode != ModeObserve; {
	case e.opt.keyOptional(r.Method), generates && nested(ctx):
		return false, nil
	case r.Unread != nil:
		return false, &Error{Op: "key", Err: &recordUnread{r.Unread}}
	case !generates || r.Redelivered:
		return false, &Error{Op: "key", Err: ErrKeyMissing}
	}
	r.Key = rand.Text()
	e.log.WarnContext(ctx, "request without an idempotency key: one was made", "route", r.Route)
	return true, nil
}

// keyOptional reports whether a request with this method passes without a key. In
// ModeObserve it returns false, so that the request is reported.
func (o *Options) keyOptional(method string) bool {
	return o.Mode != ModeObserve && (o.Key == KeyOptional || slices.Contains(o.rules.optional, method))
}

// hasKey reports whether a request has a key header, valid or not.
func (o *Options) hasKey(h http.Header) bool { return len(headerValues(h, o.KeyHeader)) > 0 }

// catching returns fn with panics turned into errors, and stores a panic in caught. As
// after an error, the attempt is released and the client is told to retry. Two cases
// continue: http.ErrAbortHandler, which makes net/http cut the connection, and
// runtime.Goexit.
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

// legible returns an error for a replay in a content coding that r doesn't accept: the
// first request may have accepted another coding. Without Accept-Encoding, r accepts no
// coding. This is what servers do, although RFC 9110 would allow any coding.
func legible(r *Request, res *Result) error {
	if !res.Replayed {
		return nil
	}
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(res.Header["Content-Encoding"], ",")), ",") {
		coding = strings.TrimPrefix(strings.TrimSpace(coding), "x-") // x-gzip is gzip
		if coding != "" && coding != "identity" && !accepts(headerValues(r.Header, "Accept-Encoding"), coding) {
			return &Error{Op: "replay", Expires: res.Expires, Err: fmt.Errorf("%w: %.20q", ErrEncoding, coding)}
		}
	}
	return nil
}

// accepts reports whether the values of Accept-Encoding accept a coding.
func accepts(values []string, coding string) bool {
	all := false
	for item := range strings.SplitSeq(strings.ToLower(strings.Join(values, ",")), ",") {
		name, params, _ := strings.Cut(item, ";")
		name = strings.TrimPrefix(strings.TrimSpace(name), "x-")
		weight, weighed := strings.CutPrefix(strings.TrimSpace(params), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		some := !weighed || err == nil && q > 0
		if name == coding {
			return some
		}
		all = all || name == "*" && some
	}
	return all
}

// problem makes the engine's answer for err.
func (c contract) problem(ctx context.Context, r *Request, err error) Response {
	e := c.core
	p := problemOf(err)
	least := e.opt.MinKey
	if e.names.claims.one || e.names.claims.all {
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
		e.log.ErrorContext(ctx, "handler failed", "route", r.Route, "error", h.err)
	}
	return c.render(r, p)
}

// render makes the engine's answer to r for a problem.
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

// mark adds the headers of a keyed answer. The header keyHeader contains the key. The
// headers are not stored: without them, the first answer and its replays have the same
// bytes.
func (r *Result) mark(keyHeader, echo string) {
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

// dress adds the preset's headers to an answer that the engine didn't make. Stripe's
// headers are added only to a stored answer.
func (c contract) dress(q *Request, r *Result) {
	if c.core.opt.rules.requestID {
		echoRequestID(&r.Response, q)
	}
	if c.core.opt.rules.stripe && (r.Replayed || !r.Expires.IsZero()) {
		stripeHeaders(&r.Response)
	}
}

// echoRequestID adds the request's Request-Id to its answer.
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

// ignores marks the answer to a request whose key the engine ignored.
func (c contract) ignores(r *Request, res *Result, left *leaving) {
	if !c.core.opt.hasKey(r.Header) || left != nil && left.acted.Load() {
		return
	}
	res.Passed = false // the answer is no longer the handler's own
	res.Header = res.Header.Clone()
	if res.Header == nil {
		res.Header = make(http.Header, 1)
	}
	res.Header[statusHeader] = []string{ignored}
}
