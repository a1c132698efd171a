package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/client"
)

const keyHeader = "Idempotency-Key"

var errReset = errors.New("connection reset by peer")

// A step answers one attempt.
type step func(*http.Request) (*http.Response, error)

// attempt is the server's view of an attempt.
type attempt struct {
	Method, URL, Key, Body string
	Header                 http.Header
	At                     time.Time
}

// script is a transport that answers attempts by its steps, in order; the last
// step answers all later attempts.
type script struct {
	steps []step

	mu     sync.Mutex
	seen   []attempt
	bodies []*trackedBody // of the answers
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	a := attempt{Method: req.Method, URL: req.URL.String(), Key: req.Header.Get(keyHeader), Header: req.Header.Clone(), At: time.Now()}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		a.Body = string(b)
	}
	s.mu.Lock()
	s.seen = append(s.seen, a)
	do := s.steps[min(len(s.seen), len(s.steps))-1]
	s.mu.Unlock()
	resp, err := do(req)
	if resp != nil && resp.Body != nil {
		b := &trackedBody{ReadCloser: resp.Body}
		resp.Body = b
		s.mu.Lock()
		s.bodies = append(s.bodies, b)
		s.mu.Unlock()
	}
	return resp, err
}

func (s *script) attempts() []attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// allClosed fails the test if an answer's body was left open.
func (s *script) allClosed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.bodies {
		if !b.isClosed() {
			t.Errorf("body of answer %d was not closed", i+1)
		}
	}
}

type trackedBody struct {
	io.ReadCloser
	mu     sync.Mutex
	closed bool
}

func (b *trackedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.ReadCloser.Close()
}

func (b *trackedBody) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// answer is a step; headers are names and values in turn.
func answer(status int, headers ...string) step { return answerBody(status, "answer", headers...) }

func answerBody(status int, body string, headers ...string) step {
	return func(req *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			Status: http.StatusText(status), StatusCode: status, Header: h, Request: req,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// failing is a step without an answer.
func failing(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// torn is a step whose answer ends early.
func torn(status int, headers ...string) step {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := answer(status, headers...)(req)
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, 3), errReader{io.ErrUnexpectedEOF}))
		return resp, err
	}
}

// hangingBody is a step whose answer stops until the request's context ends.
func hangingBody(status int, headers ...string) step {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := answer(status, headers...)(req)
		resp.Body = io.NopCloser(readerFunc(func([]byte) (int, error) {
			<-req.Context().Done()
			return 0, context.Cause(req.Context())
		}))
		return resp, err
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// hanging is a step that ends with the request's context.
func hanging(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// onlyReader hides everything but Read, so that http.NewRequest sets no GetBody.
type onlyReader struct{ io.Reader }

func request(t *testing.T, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://api.test/orders?a=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// roundTrip sends req and reads the answer.
func roundTrip(t *testing.T, rt http.RoundTripper, req *http.Request) (*http.Response, string, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		if resp != nil {
			t.Error("a response and an error")
		}
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return resp, string(body), nil
}

// status sends req and returns the status of the answer.
func status(t *testing.T, rt http.RoundTripper, req *http.Request) int {
	t.Helper()
	resp, _, err := roundTrip(t, rt, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// failure sends req, which must fail, and returns the error.
func failure(t *testing.T, rt http.RoundTripper, req *http.Request) *client.Error {
	t.Helper()
	resp, _, err := roundTrip(t, rt, req)
	if err == nil {
		t.Fatalf("answered with %d, want an error", resp.StatusCode)
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		t.Fatalf("%T (%v), want an *Error", err, err)
	}
	return e
}

// counts has the number of calls of each hook.
type counts struct {
	mu     sync.Mutex
	n      map[string]int
	events []client.Event
}

func (c *counts) hooks() client.Hooks {
	count := func(name string) func(context.Context, client.Event) {
		return func(_ context.Context, ev client.Event) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.n == nil {
				c.n = map[string]int{}
			}
			c.n[name]++
			if ev.Reason != "" {
				c.n[name+" "+ev.Reason]++
			}
			c.events = append(c.events, ev)
		}
	}
	return client.Hooks{
		KeyMade: count("key"), Resumed: count("resumed"), Attempt: count("attempt"), Retry: count("retry"), GaveUp: count("gave up"),
		Replayed: count("replayed"), DeletedBefore: count("deleted"), JournalFailed: count("journal failed"),
	}
}

func (c *counts) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// filled returns n bytes that are not all equal.
func filled(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
