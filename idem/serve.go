package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Headers of keyed answers.
const (
	// ReplayedHeader marks a stored answer with "true" (R34).
	ReplayedHeader = "Idempotent-Replayed"
	// ExpiresHeader tells when the key's lifetime ends, as an HTTP date: a
	// retry after that is a new request.
	ExpiresHeader = "Idempotency-Expires"
	// StatusHeader says "ignored" where nothing was done with a key
	// ([Options.MarkIgnored]), and "unstored" on the handler's answer that could
	// not be stored ([Result.Unstored]): a retry may do the same again.
	StatusHeader = "Idempotency-Status"
)

// Serve is [Engine.Do] with the HTTP contract around it: it finds the key in
// the header, lets other methods pass, and makes an answer of every refusal.
// Adapters and [Engine.Middleware] are built on it.
//
// The error is nil unless the request passed, or [Options.PassErrors] is set:
// then it is fn's own. A panic of fn is answered as an error is, and told as
// Result.Panic; it goes on where an error would be passed, and so does
// http.ErrAbortHandler.
func (e *Engine) Serve(ctx context.Context, r Request, fn func(context.Context) (Response, error)) (Result, error) {
	inner := e.resumes(ctx, &r)
	echo, acts, err := e.key(ctx, &r)
	var res Result
	switch {
	case inner:
		// The wrapper around this one has the key, which isn't stored with a request.
		acts, echo = false, ""
		res, err = e.pass(ctx, &r, fn)
	case e.opt.Key == KeyObserve && (acts || err != nil):
		res, err = e.observe(ctx, &r, err, fn)
	case err != nil:
		call(ctx, e.opt.Hooks.Refused, Event{Route: r.Route, Err: err})
	case !acts:
		res, err = e.pass(ctx, &r, fn)
	case e.opt.PassErrors:
		res, err = e.do(ctx, &r, true, fn)
	default:
		var caught *panicked
		if res, err = e.do(ctx, &r, true, e.catching(r.Route, fn, &caught)); caught != nil {
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
		res = Result{Response: e.problem(ctx, &r, err), Panic: res.Panic}
		if ours, ok := errors.AsType[*Error](err); ok {
			res.Expires = ours.Expires
		}
	}
	switch {
	case !res.Passed:
		res.mark(echo)
		if err == nil {
			e.dress(&res)
		}
	case e.opt.MarkIgnored && (!acts || !nested(ctx)) && len(headerValues(r.Header, KeyHeader)) > 0:
		res.Passed = false // no longer the handler's own
		res.Header = res.Header.Clone()
		if res.Header == nil {
			res.Header = make(http.Header, 1)
		}
		res.Header[StatusHeader] = []string{"ignored"}
	}
	return res, nil
}

// Refuse answers a request that could not even be decoded: err is wrapped by
// [ErrRequest] unless it is one of this package's errors. It is for adapters.
func (e *Engine) Refuse(ctx context.Context, r Request, err error) Response {
	if problemOf(err).Code == failed.Code {
		err = errors.Join(ErrRequest, err)
	}
	call(ctx, e.opt.Hooks.Refused, Event{Route: r.Route, Err: err})
	return e.answers(&r, problemOf(err))
}

// Keeps reports whether answers of this status are stored ([Options.Stored]). It
// is for adapters whose answers have no status of their own.
func (e *Engine) Keeps(status int) bool { return e.opt.Disabled || e.opt.Stored(status) }

// Reserve is [Options.Reserve]. It is for adapters that share an invocation's time
// out among several requests.
func (e *Engine) Reserve() time.Duration { return e.opt.Reserve }

// key finds the key of r and how to echo it. acts is false where the request
// passes without one.
func (e *Engine) key(ctx context.Context, r *Request) (echo string, acts bool, err error) {
	if e.opt.Disabled || !e.methods[r.Method] {
		return "", false, nil
	}
	if r.Key != "" { // found elsewhere than in the header
		if err := checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, false); err != nil {
			return "", false, &Error{Op: "key", Err: err}
		}
		return r.Key, true, nil
	}
	values := headerValues(r.Header, KeyHeader)
	if len(values) == 0 && e.opt.KeyFrom != nil {
		if r.Key, err = e.opt.KeyFrom(r); err == nil {
			err = checkKey(r.Key, e.opt.MinKey, e.opt.MaxKey, false)
		}
		if err == nil || !errors.Is(err, ErrKeyMissing) {
			return "", err == nil, e.keyError(err)
		}
	}
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

// echoed gives a key back in the form it came in, without parameters.
func echoed(value, key string) string {
	if strings.HasPrefix(strings.TrimLeft(value, " \t"), `"`) {
		return quoted(key)
	}
	return key
}

// problem answers err in the engine's contract.
func (e *Engine) problem(ctx context.Context, r *Request, err error) Response {
	p := problemOf(err)
	if errors.Is(err, ErrKeyInvalid) && (e.opt.StrictKey || e.opt.MinKey > 1 || e.opt.MaxKey < DefaultMaxKey) {
		p.Detail = fmt.Sprintf("Send one key of %d to %d visible ASCII characters, for instance a UUID", e.opt.MinKey, e.opt.MaxKey)
		if e.opt.StrictKey {
			p.Detail += ", in double quotes (a string of RFC 9651)"
		}
		p.Detail += "."
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		if ours, _ := errors.AsType[*Error](h.err); ours == nil || !ours.phase {
			p = failed
		}
		p.Err = h.err
		e.log.ErrorContext(ctx, "handler failed", "route", r.Route, "error", h.err)
	}
	return e.answers(r, p)
}

// answers makes the engine's own answer to r of a problem.
func (e *Engine) answers(r *Request, p Problem) Response {
	resp := e.opt.Problem(p)
	clean(&resp)
	e.opt.CORS.Allow(&resp, r.Header)
	return resp
}

// mark adds the headers of a keyed answer. They are not part of what is
// stored: the same bytes go out first and later, but for these.
func (r *Result) mark(echo string) {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header, 3)
	}
	if echo != "" {
		h[KeyHeader] = []string{echo}
	}
	if !r.Expires.IsZero() {
		h[ExpiresHeader] = []string{r.Expires.UTC().Format(http.TimeFormat)}
	}
	if r.Replayed {
		h[ReplayedHeader] = []string{"true"}
	} else {
		delete(h, ReplayedHeader)
	}
	delete(h, StatusHeader) // the engine's word only
	if r.Unstored {
		h[StatusHeader] = []string{"unstored"}
	}
	r.Header = h
}

// dress adds what a contract's kept answers have besides. What a handler has
// answered and nobody has stored is left as it is.
func (e *Engine) dress(r *Result) {
	if e.opt.stripe && (r.Replayed || !r.Expires.IsZero()) {
		stripeHeaders(&r.Response)
	}
}
