package client

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Transport is an [http.RoundTripper] that makes keys for requests, and retries the
// requests. Make a Transport with [New]. A Transport is safe for concurrent use.
type Transport struct {
	base   http.RoundTripper
	opt    Options
	budget *budget          // nil = none
	now    func() time.Time // for tests
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a Transport that sends through base; nil means
// [http.DefaultTransport]. New panics if an option is invalid.
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
		t.budget = newBudget(budgetRatio, o.perSecond)
	}
	return t
}

// RoundTrip implements [http.RoundTripper]. RoundTrip does not change req.
//
// RoundTrip returns the response to the final attempt, even if this response is a
// failure and no retry is left. If the server's status doesn't tell whether the
// operation was carried out, RoundTrip adds the header [ResultHeader]. The header of
// Response.Request contains the key. Every error is an [*Error], with the key in
// Error.Key.
//
// A request that is neither keyed nor idempotent is the exception: RoundTrip sends this
// request unchanged and only once, and returns the response or the error of the base
// transport.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	o := &operation{t: t, req: req}
	err := o.begin()
	switch {
	case err != nil:
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close the body; the error of Close is of no use
		}
		return nil, o.failed(err)
	case o.passes:
		return t.base.RoundTrip(req)
	}
	return o.run()
}

// CloseIdleConnections is called by the method of http.Client with the same name. It
// calls CloseIdleConnections of the base transport, if the base transport has this
// method.
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

// isIdempotent reports whether method is idempotent by definition (RFC 9110, 9.2.2), so
// that a request may be repeated without a key.
func isIdempotent(method string) bool {
	return isSafe(method) || method == http.MethodPut || method == http.MethodDelete
}

// Transport.wall returns the time of day. Lifetimes are compared by wall time, since
// the monotonic clock stands still while a laptop sleeps or a sandbox is frozen.
func (t *Transport) wall() time.Time { return t.now().Round(0) }

// Transport.keyed reports whether requests with this HTTP method get a key.
func (t *Transport) keyed(method string) bool { return slices.Contains(t.opt.Methods, method) }
