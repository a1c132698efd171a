package tabletest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// line is the way to DynamoDB Local. It keeps the faults that no test has injected: the
// SDK repeats such a request, and a test that counts requests can tell why.
type line struct {
	base http.RoundTripper

	mu     sync.Mutex
	faults []string
}

// RoundTrip implements [http.RoundTripper].
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	switch {
	case err != nil:
		l.note(req, err)
	case resp.StatusCode >= http.StatusInternalServerError:
		l.note(req, errors.New(resp.Status))
		fallthrough
	default:
		resp.Body = &answer{resp.Body, req, l}
	}
	return resp, err
}

// tell logs the faults if the test has failed.
func (l *line) tell(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Failed() && len(l.faults) > 0 {
		t.Logf("the connection to DynamoDB Local had faults that no test injected: %q", l.faults)
	}
}

func (l *line) note(req *http.Request, err error) {
	if req.Context().Err() != nil {
		return // the test's own
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf("%s: %v", req.Header.Get("X-Amz-Target"), err))
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser

	req  *http.Request
	line *line
}

// Read implements [io.Reader].
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.line.note(a.req, err)
	}
	return n, err
}
