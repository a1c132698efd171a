// Package tap is a proxy between the app and the systems that the app calls: DynamoDB and external
// systems. The proxy counts the calls, and can hold a call or an answer. While a call is held,
// tests and the demo kill the app.
package tap

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Side says whether a call is held before or after it reaches the service.
type Side string

// The sides of a call.
const (
	Before Side = "before" // the call has not been passed on
	After  Side = "after"  // the call is done, and the answer has not been passed on
)

// Tap counts and holds calls to any number of services, in the order of arrival. The zero value is
// ready to use. It is safe for concurrent use.
type Tap struct {
	mu    sync.Mutex
	calls []Call
	held  *Held
	down  bool
}

// Call is a call that came in.
type Call struct {
	Name string // the operation or path of the call
	Body string
}

// Held is a call that is held or will be held.
type Held struct {
	side    Side
	left    int
	match   func(Call) bool
	reached chan struct{}
	goOn    chan bool
	once    sync.Once
}

// Hold holds the nth of the next calls that match, counted from 1. A nil match matches all calls.
// Only one call is held at a time: a second Hold replaces a first Hold whose call has not come in
// yet.
func (t *Tap) Hold(n int, match func(Call) bool, side Side) *Held {
	h := &Held{side: side, left: n, match: match, reached: make(chan struct{}), goOn: make(chan bool, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = h
	return h
}

// Reached is closed when the call is held.
func (h *Held) Reached() <-chan struct{} { return h.reached }

// GoOn lets the call continue. The call continues even if the caller has gone, like a
// packet on its way.
func (h *Held) GoOn() { h.end(true) }

// Drop cuts the caller's connection. A call that is held [Before] never reaches the
// service.
func (h *Held) Drop() { h.end(false) }

// at holds the call if h holds calls at side, and reports whether the call continues. h may
// be nil.
func (h *Held) at(side Side) bool {
	if h == nil || h.side != side {
		return true
	}
	close(h.reached)
	return <-h.goOn
}

func (h *Held) end(goOn bool) { h.once.Do(func() { h.goOn <- goOn }) }

// Down makes all services unreachable, or reachable again. While services are down, the tap cuts
// connections without passing on or counting calls.
func (t *Tap) Down(down bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down = down
}

// Calls returns the calls since the last Reset.
func (t *Tap) Calls() []Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Call{}, t.calls...)
}

// Reset forgets the calls that came in.
func (t *Tap) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = nil
}

// note counts a call. ok is false if services are down; h is not nil if the call is
// to be held.
func (t *Tap) note(c Call) (h *Held, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.down {
		return nil, false
	}
	t.calls = append(t.calls, c)
	if h = t.held; h == nil || h.match != nil && !h.match(c) {
		return nil, true
	}
	if h.left--; h.left > 0 {
		return nil, true
	}
	t.held = nil
	return h, true
}

// DynamoDB names a call to DynamoDB by its operation.
func DynamoDB(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// Path names a call by its path.
func Path(r *http.Request) string { return r.URL.Path }

// Handler returns a handler that passes calls on to the service at target. name returns a call's
// name.
func (t *Tap) Handler(target *url.URL, name func(*http.Request) string) http.Handler {
	// Answers are passed on as they are, and no call is repeated.
	base := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) //nolint:forbidigo // the caller has gone
		}
		h, ok := t.note(Call{name(r), string(body)})
		if !ok || !h.at(Before) {
			panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to cut a connection
		}
		resp, err := pass(base, r, target, body)
		if !h.at(After) || err != nil {
			panic(http.ErrAbortHandler) //nolint:forbidigo // as above
		}
		resp.header.Del("Connection") // each connection has its own Connection header
		maps.Copy(w.Header(), resp.header)
		w.WriteHeader(resp.status)
		_, _ = w.Write(resp.body) // the caller may have gone
	})
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// pass passes a call on, and returns the whole answer. pass continues after the caller has
// gone.
func pass(base http.RoundTripper, r *http.Request, target *url.URL, body []byte) (*answer, error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host = target.Scheme, target.Host // keep the header Host, which is signed
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &answer{resp.StatusCode, resp.Header, all}, nil
}
