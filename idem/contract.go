package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/samekey/samekey/internal/base/defaults"
)

// contract is the HTTP contract of an engine: where a request has its key, and which
// answer and headers it gets.
type contract struct{ core *core }

// key finds the request's key and its form for the echo. acts is false if the
// request passes without a key. What KeyFrom finds goes before the header: the page or the
// producer chose it for this work, while a browser may add a header of its own to
// each submission.
func (c contract) key(ctx context.Context, q *ask) (echo string, acts bool, err error) {
	e, r := c.core, q.req
	if e.opt.Mode == ModeOff || !e.methods[r.Method] {
		return "", false, nil
	}
	if r.Key != "" { // found outside of the header
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
		case r.Unread != nil && err != nil: // the key may be in the part that is not read
			return "", false, keyError(&unlooked{r.Unread})
		case errors.Is(err, ErrRequest):
			return "", false, keyError(&unlooked{err})
		case !errors.Is(err, ErrKeyMissing):
			return "", err == nil, keyError(err)
		}
	}
	values := headerValues(r.Header, e.opt.KeyHeader)
	r.Key, echo, err = parseKey(values)
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
	if _, ok := errors.AsType[*unlooked](err); ok {
		p.Detail = unlookedDetail
	}
	if h, ok := errors.AsType[*handlerError](err); ok {
		p = problemIn(h.err)
		p.Err = h.err
		e.log.ErrorContext(ctx, "handler failed", "route", r.Route, "error", h.err)
	}
	return c.answers(r, p)
}

// answers makes the engine's answer to r for a problem.
func (c contract) answers(r *Request, p Problem) Response {
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

// ignores marks the answer to a request whose key the engine left alone.
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

// dress adds the preset's headers to an answer that the engine didn't make: Stripe's only
// if it was stored.
func (c contract) dress(q *Request, r *Result) {
	if c.core.opt.rules.requestID {
		echoRequestID(&r.Response, q)
	}
	if c.core.opt.rules.stripe && (r.Replayed || !r.Expires.IsZero()) {
		stripeHeaders(&r.Response)
	}
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

// keyOptional reports whether a request with this method passes without a key. Whoever
// observes wants to know of it.
func (o *Options) keyOptional(method string) bool {
	return o.Mode != ModeObserve && (o.Key == KeyOptional || slices.Contains(o.rules.optional, method))
}

// hasKey reports whether a request has a key header, valid or not.
func (o *Options) hasKey(h http.Header) bool { return len(headerValues(h, o.KeyHeader)) > 0 }

// keyless handles a request without a key; acts is false if the request passes.
// No key is made for a source that repeats its requests, since each repetition
// would get another key. Inside an operation, a request without its own key is
// part of that operation.
func (e *core) keyless(ctx context.Context, r *Request) (acts bool, err error) {
	switch generates := e.opt.Key == KeyGenerate && e.opt.Mode != ModeObserve; {
	case e.opt.keyOptional(r.Method), generates && nested(ctx):
		return false, nil
	case r.Unread != nil:
		return false, &Error{Op: "key", Err: &unlooked{r.Unread}}
	case !generates || r.Redelivered:
		return false, &Error{Op: "key", Err: ErrKeyMissing}
	}
	r.Key = rand.Text()
	e.log.WarnContext(ctx, "request without an idempotency key: one was made", "route", r.Route)
	return true, nil
}

func keyError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "key", Err: err}
}

// resumes reports whether ctx belongs to an operation of this engine that a
// completer is finishing, and r has no key of its own. Another engine's wrapper
// had its own operation here, which must not run unprotected.
func (e *core) resumes(ctx context.Context, r *Request) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load() && op.run.ask.resumed && op.run.ask.core == e &&
		r.Key == "" && !e.opt.hasKey(r.Header)
}
