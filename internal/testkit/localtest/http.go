package localtest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Answer is an HTTP response, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Send sends a request and returns the answer. The parameter header has a name, its
// value, the next name, its value, and so on. Send fails the test if there is no
// answer.
func Send(t *testing.T, method, url, body string, header ...string) Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(data)}
}

// Eventually waits until ok returns true. After ten minutes it fails the test. The
// failure's text contains what.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never came to pass: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
