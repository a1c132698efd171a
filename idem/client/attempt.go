package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/internal/base/retrysign"
)

var errBadTransport = errors.New("the transport returned neither a response nor an error")

// operation.attempt sends the request once. The returned function abort ends the
// attempt. If a response is returned, the attempt also ends when the response's body is
// read to the end or closed.
func (o *operation) attempt() (resp *http.Response, abort func(), err error) {
	ctx, cancel := context.WithCancelCause(o.req.Context())
	abort = func() { cancel(nil) }
	wrote := new(atomic.Bool)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	r := o.req.WithContext(ctx)
	r.Header = o.header()
	o.attempts++
	if err := o.body.attach(r, o.attempts); err != nil {
		o.attempts--
		abort()
		return nil, abort, err
	}
	start := time.Now()
	o.sent, o.heard, o.aboutKey = o.t.wall(), nil, false
	inTime := o.limit(cancel)
	resp, err = o.exchange(r)
	if !inTime() {
		resp, err = nil, timedOut(resp, err)
	}
	if until, told := expires(o.heard, o.sent); told && o.key != "" {
		o.until = until
	}
	if (isUnstored(o.heard) || o.ignored()) && o.key != "" {
		o.until = o.sent // end the key's lifetime, so that no retry is sent: the server has no record, and would carry out the request again
	}
	ev := Event{Took: time.Since(start), Err: err}
	if err != nil {
		abort()
		o.unknown = o.unknown || wrote.Load() || !isUnsent(err)
		o.tell(o.t.opt.Hooks.Attempt, ev)
		o.note(nil)
		return nil, abort, err
	}
	ev.Status = resp.StatusCode
	o.unknown = o.unknown || resp.StatusCode >= http.StatusInternalServerError || o.aboutKey
	o.maybe = o.maybe || o.key != "" && resp.StatusCode == http.StatusConflict
	releasing(resp, abort)
	o.tell(o.t.opt.Hooks.Attempt, ev)
	o.note(resp)
	return resp, abort, nil
}

// operation.header returns the caller's headers with the key. A retry of a keyed
// request also gets the number of earlier attempts. The server then looks for a stored
// answer before it claims the key.
func (o *operation) header() http.Header {
	h := o.req.Header.Clone()
	if h == nil {
		h = make(http.Header, 1)
	}
	if _, set, _ := callersKey(h, o.t.opt.KeyHeader); !set && o.key != "" {
		h[http.CanonicalHeaderKey(o.t.opt.KeyHeader)] = []string{o.key}
	}
	if n := o.attempts + o.before; n > 0 && o.key != "" {
		h[retrysign.Client] = []string{strconv.Itoa(n)}
	}
	return h
}

// operation.exchange sends r with the base transport. If the request has a key,
// exchange reads the start of the answer's body before it returns. If the body is torn,
// the request can then still be repeated.
func (o *operation) exchange(r *http.Request) (*http.Response, error) {
	resp, err := o.t.base.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, errBadTransport
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	if resp.Request == nil {
		resp.Request = r // http.Client and redirectedKey read Response.Request
	}
	resp.Request = resp.Request.WithContext(o.req.Context()) // the caller may use resp.Request after the attempt, whose context has ended by then
	if resp.Header == nil {
		resp.Header = make(http.Header, 1)
	}
	o.heard = resp.Header
	if o.key != "" {
		body, err := readAhead(resp, o.t.opt.maxAnswer)
		if err != nil {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		o.aboutKey = isAboutKey(resp, body)
	}
	return resp, nil
}

// operation.limit starts a timer that cancels the attempt after AttemptTimeout. The
// returned function inTime stops this timer and reports whether the attempt was in
// time.
func (o *operation) limit(cancel context.CancelCauseFunc) (inTime func() bool) {
	if o.t.opt.AttemptTimeout == 0 {
		return func() bool { return true }
	}
	timer := time.AfterFunc(o.t.opt.AttemptTimeout, func() { cancel(errAttemptTimeout) })
	return timer.Stop
}

// timedOut returns the error of an attempt that took too long. If the attempt got a
// response, timedOut closes its body.
func timedOut(resp *http.Response, err error) error {
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || errors.Is(err, errAttemptTimeout) {
		return errAttemptTimeout
	}
	return fmt.Errorf("%w: %w", errAttemptTimeout, err)
}
