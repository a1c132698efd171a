package dbfault

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Transport is an http.RoundTripper for DynamoDB clients in tests. It counts requests
// by operation, and injects the faults that its field Fault chooses. The zero Transport
// only counts. Set the fields before the first request. After that, a Transport is safe
// for concurrent use. A Transport must not be copied.
//
//	client := db.Client(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr} })
//
// If the client retries a request, each retry counts as another request.
type Transport struct {
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper

	// Fault chooses the fault of each request. If the field Fault is nil or returns
	// nil, no fault is injected. The parameter op is the DynamoDB operation, such as
	// "PutItem", or "" if the request names no operation. The parameter n is 1 in the
	// first request of that operation, 2 in the second, and so on. Concurrent requests
	// call Fault concurrently.
	Fault func(op string, n int) Fault

	mu    sync.Mutex
	calls map[string]int
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	op := operation(req)
	n := t.count(op)
	if t.Fault != nil {
		if fault := t.Fault(op, n); fault != nil {
			return fault(t.base(), req)
		}
	}
	return t.base().RoundTrip(req)
}

// Calls returns how many requests of each operation were made, including those that a
// fault did not send. The caller may change the map.
func (t *Transport) Calls() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := make(map[string]int, len(t.calls))
	maps.Copy(calls, t.calls)
	return calls
}

// Total returns the sum of [Transport.Calls].
func (t *Transport) Total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := 0
	for _, n := range t.calls {
		total += n
	}
	return total
}

// Reset sets all counts to zero, so that the next request of each operation has n = 1.
func (t *Transport) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.calls)
}

// CloseIdleConnections closes Base's idle connections. [http.Client.CloseIdleConnections] calls
// this method.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) count(op string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]int{}
	}
	t.calls[op]++
	return t.calls[op]
}

// operation returns the request's operation, such as "PutItem" for the target
// "DynamoDB_20120810.PutItem".
func operation(req *http.Request) string {
	target := req.Header.Get("X-Amz-Target")
	return target[strings.LastIndexByte(target, '.')+1:]
}
