package client

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Transport is an [http.RoundTripper] that makes keys and retries. Make it with
// [New]. It is safe for concurrent use.
type Transport struct {
	base   http.RoundTripper
	opt    Options
	budget *budget          // nil = none
	now    func() time.Time // for tests
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a Transport that sends through base; nil means
// [http.DefaultTransport]. It panics if an option can't work.
func New(base http.RoundTripper, optFns ...func(*Options)) *Transport {
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		panic(fmt.Sprintf("client: New: %v", err)) //nolint:forbidigo // a mistake in the program, at start
	}
	if base == nil || isNilPointer(base) {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, opt: o, now: time.Now}
	if !o.NoBudget {
		t.budget = newBudget(o.BudgetRatio, o.BudgetPerSecond)
	}
	return t
}

// RoundTrip implements [http.RoundTripper]. It does not change req.
//
// The response is the last one received, also where retries ran out, with
// [ResultHeader] where it would mislead. Its Request has the key in its header.
// An error is an [*Error], which has the key too. Requests that are neither keyed
// nor idempotent go to the base transport untouched, once, and its error comes
// back as it is.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	o := &operation{t: t, req: req}
	err := o.begin()
	switch {
	case err != nil:
		if req.Body != nil {
			_ = req.Body.Close() // the contract of a RoundTripper; nobody wants its error
		}
		return nil, o.failed(err)
	case o.passes:
		return t.base.RoundTrip(req)
	}
	return o.run()
}

// CloseIdleConnections closes those of the base transport, where it has such a
// method. [http.Client] has a method of the same name that calls this one.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// isSafe reports whether method changes nothing by definition (RFC 9110, 9.2.1).
func isSafe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// isIdempotent reports whether method may be repeated by definition (9.2.2).
func isIdempotent(method string) bool {
	return isSafe(method) || method == http.MethodPut || method == http.MethodDelete
}

// wall is the time of day. Lifetimes are compared by it, not by the monotonic
// clock, which stands still while a laptop sleeps or a sandbox is frozen.
func (t *Transport) wall() time.Time { return t.now().Round(0) }

// keyed reports whether method gets a key.
func (t *Transport) keyed(method string) bool { return slices.Contains(t.opt.Methods, method) }
