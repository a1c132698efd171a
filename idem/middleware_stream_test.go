package idem_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A stored answer can't be streamed, and a hijacked connection has no answer: a
// handler that tries gets an error, on a real server, and can report it.
func TestMiddlewareRefusesStreaming(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(http.ResponseWriter) error{
		"flush":          func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"hijack":         func(w http.ResponseWriter) error { _, _, err := http.NewResponseController(w).Hijack(); return err },
		"full duplex":    func(w http.ResponseWriter) error { return http.NewResponseController(w).EnableFullDuplex() },
		"read deadline":  func(w http.ResponseWriter) error { return http.NewResponseController(w).SetReadDeadline(time.Time{}) },
		"write deadline": func(w http.ResponseWriter) error { return http.NewResponseController(w).SetWriteDeadline(time.Time{}) },
		"http.Flusher":   asserted[http.Flusher],
		"http.Hijacker":  asserted[http.Hijacker],
		"http.Pusher":    asserted[http.Pusher],
		"io.ReaderFrom":  asserted[io.ReaderFrom], // ReadFrom would bypass the buffer
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			srv := httptest.NewServer(idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				if err := try(w); !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("it says %v, want http.ErrNotSupported", err)
				}
				http.Error(w, "this answer can't be streamed", http.StatusNotImplemented)
			})))
			t.Cleanup(srv.Close)
			for range 2 { // like any other answer; a 501 is not stored
				resp := postTo(t, srv.URL, "k")
				if resp.StatusCode != http.StatusNotImplemented || !strings.Contains(bodyOf(t, resp), "streamed") {
					t.Errorf("got %d", resp.StatusCode)
				}
			}
			if runs != 2 {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

func asserted[T any](w http.ResponseWriter) error {
	if _, ok := w.(T); ok {
		return nil
	}
	return http.ErrNotSupported
}

func postTo(t *testing.T, url, key string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// Trailers would come after the body, when the answer is already stored.
func TestMiddlewareSendsNoTrailers(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set(http.TrailerPrefix+"X-Early", "1")
		fmt.Fprint(w, "body")
		w.Header().Set("X-Sum", "2")
		w.Header().Set(http.TrailerPrefix+"X-Late", "3")
	})))
	t.Cleanup(srv.Close)
	for _, replayed := range []string{"", "true"} {
		resp := postTo(t, srv.URL, "k")
		if got := bodyOf(t, resp); got != "body" || resp.Header.Get(idem.ReplayedHeader) != replayed {
			t.Errorf("got %q %v", got, resp.Header)
		}
		for name := range resp.Trailer {
			if len(resp.Trailer[name]) > 0 {
				t.Errorf("replayed %q: trailer %s: %q", replayed, name, resp.Trailer[name])
			}
		}
	}
}

// A route without keys still streams, in the same server.
func TestMiddlewareLetsOthersStream(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	srv := httptest.NewServer(idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-goOn
		fmt.Fprintln(w, "second")
	})))
	t.Cleanup(srv.Close)
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "first" { // before the handler continues
		t.Errorf("got %q", lines.Text())
	}
	close(goOn)
	if !lines.Scan() || lines.Text() != "second" {
		t.Errorf("got %q", lines.Text())
	}
}

// An answer through the middleware has the same headers as without.
func TestMiddlewareSniffsAsNetHTTPDoes(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"text":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text") },
		"html":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no body": func(http.ResponseWriter, *http.Request) {},
		"suppressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, "<html>")
		},
		"with a coding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "identity")
			fmt.Fprint(w, "\x1f\x8b\x08 packed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := httptest.NewServer(handler)
			t.Cleanup(bare.Close)
			srv := httptest.NewServer(idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(handler))
			t.Cleanup(srv.Close)
			want := postTo(t, bare.URL, "k").Header["Content-Type"]
			for range 2 {
				if got := postTo(t, srv.URL, "k").Header["Content-Type"]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("Content-Type is %q, want %q", got, want)
				}
			}
		})
	}
}
