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
)

// An answer that is kept can't be streamed, and a connection that is taken over
// has none: a handler that tries is told so, on a real server, and can say it.
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
		"io.ReaderFrom":  asserted[io.ReaderFrom], // it would go around the buffer
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			srv := httptest.NewServer(idem.New(&idem.MemoryStore{}).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				if err := try(w); !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("it says %v, want http.ErrNotSupported", err)
				}
				http.Error(w, "this answer can't be streamed", http.StatusNotImplemented)
			})))
			t.Cleanup(srv.Close)
			for range 2 { // an answer as any other; a 501 is not kept
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

// Trailers come after the body, when everything is kept already.
func TestMiddlewareSendsNoTrailers(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(idem.New(&idem.MemoryStore{}).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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

// A route without keys streams as ever, in the same server.
func TestMiddlewareLetsOthersStream(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	srv := httptest.NewServer(idem.New(&idem.MemoryStore{}).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	if !lines.Scan() || lines.Text() != "first" { // before the handler has gone on
		t.Errorf("got %q", lines.Text())
	}
	close(goOn)
	if !lines.Scan() || lines.Text() != "second" {
		t.Errorf("got %q", lines.Text())
	}
}

// An answer under the middleware has the headers it would have without.
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
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "\x1f\x8b\x08 packed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := httptest.NewServer(handler)
			t.Cleanup(bare.Close)
			srv := httptest.NewServer(idem.New(&idem.MemoryStore{}).Middleware(handler))
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
