// Package tap is a proxy between the app and the systems that the app calls: DynamoDB and external
// systems. The proxy counts the calls. It can hold a call or an answer, so that tests and the demo
// can kill the app at that moment.
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

// Tap records the calls to any number of services in the order of arrival, and can hold them. The
// zero Tap is ready to use. A Tap is safe for concurrent use.
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

// Hold makes the tap hold the nth call from now on for which the function match returns true. n is
// 1 for the first of these calls. If match is nil, all calls count. If an earlier Hold still waits
// for its call, the new Hold replaces it. A call that is already held stays held.
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

// h.at(side) holds the call until GoOn or Drop if h is for this side. It returns false after Drop,
// otherwise true. h may be nil.
func (h *Held) at(side Side) bool {
	if h == nil || h.side != side {
		return true
	}
	close(h.reached)
	return <-h.goOn
}

func (h *Held) end(goOn bool) { h.once.Do(func() { h.goOn <- goOn }) }

// Down makes all services unreachable if its argument is true, otherwise reachable again. While
// they are unreachable, the tap cuts each connection, and neither counts the call nor passes it on.
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

// note(c) counts the call c. If services are down, it counts nothing, and ok is false. If c is to
// be held, h is not nil.
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

// DynamoDB returns the operation of a request to DynamoDB, as the call's name for Handler.
func DynamoDB(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// Path returns the path of a request, as the call's name for Handler.
func Path(r *http.Request) string { return r.URL.Path }

// Handler returns a handler that passes calls on to the service at the URL target. The function
// name returns a call's name, such as [Path].
func (t *Tap) Handler(target *url.URL, name func(*http.Request) string) http.Handler {
	// With DisableCompression, answers are passed on as they are. With DisableKeepAlives, the
	// transport repeats no call.
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
		resp.header.Del("Connection") // the header is about the connection to the service only
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

// pass sends the request r, with the given body, to the URL target, and returns the whole answer.
// It continues even if the caller has gone.
func pass(base http.RoundTripper, r *http.Request, target *url.URL, body []byte) (*answer, error) {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host = target.Scheme, target.Host // out.Host stays as it is, since it is signed
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
