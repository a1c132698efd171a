// Package tap is a proxy between the app and the systems that the app calls: DynamoDB
// and external systems. The proxy records the calls. It can hold a call or an answer,
// so that tests and the demo can kill the app while the call or the answer is held.
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

// Tap records the calls to any number of services in the order of arrival, and can hold
// a call. The zero Tap is ready to use. A Tap is safe for concurrent use.
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

// Hold makes the tap hold one later call. The tap counts the calls for which match
// returns true, and holds the nth of them. The first of them has n = 1. If match is
// nil, the tap counts all calls. A new Hold replaces an earlier Hold that still waits
// for its call. A call that is already held stays held.
func (t *Tap) Hold(n int, match func(Call) bool, side Side) *Held {
	h := &Held{side: side, left: n, match: match, reached: make(chan struct{}), goOn: make(chan bool, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = h
	return h
}

// Reached returns a channel that is closed when the call is held.
func (h *Held) Reached() <-chan struct{} { return h.reached }

// GoOn lets the call continue. The call continues even if the caller has gone, like a
// packet on its way.
func (h *Held) GoOn() { h.end(true) }

// Drop cuts the caller's connection. If the call was held [Before], the call never reaches the
// service.
func (h *Held) Drop() { h.end(false) }

// If h is for the given side, the method at holds the call until GoOn or Drop. If h is
// nil or for the other side, at returns at once. It returns false after Drop, otherwise
// true.
func (h *Held) at(side Side) bool {
	if h == nil || h.side != side {
		return true
	}
	close(h.reached)
	return <-h.goOn
}

func (h *Held) end(goOn bool) { h.once.Do(func() { h.goOn <- goOn }) }

// Down makes all services unreachable if down is true: the tap cuts the connection of
// each new call, and neither records the call nor passes it on. If down is false, Down
// makes the services reachable again.
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

// Tap.note records the call c, unless the services are down. If they are down, ok is
// false. If c is to be held, h is not nil.
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

// DynamoDB returns the operation of a request to DynamoDB. Pass the function DynamoDB
// to [Tap.Handler], to name calls by their operations.
func DynamoDB(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// Path returns the path of a request. Pass the function Path to [Tap.Handler], to name
// calls by their paths.
func Path(r *http.Request) string { return r.URL.Path }

// Handler returns a handler that passes calls on to the service at the URL target. The
// function name returns a call's name. It can be [DynamoDB] or [Path].
func (t *Tap) Handler(target *url.URL, name func(*http.Request) string) http.Handler {
	// DisableCompression makes the transport pass on answers unchanged. With
	// DisableKeepAlives, each call has a connection of its own, so the transport never
	// repeats a call.
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
		resp.header.Del("Connection") // it concerns only the tap's connection to the service
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

// pass sends the request r, with the given body, to the URL target, and returns the
// whole answer. pass continues even if the caller has gone.
func pass(base http.RoundTripper, r *http.Request, target *url.URL, body []byte) (*answer, error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host = target.Scheme, target.Host // out.Host doesn't change, because the signature covers it
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
