package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// ask sends a request through the middleware and returns what a client gets.
func ask(t *testing.T, h http.Handler, method, key, body string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/orders?a=1", strings.NewReader(body))
	if key != "" {
		r.Header.Set("idempotency-key", key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

//nolint:tparallel // one story with one counter
func TestMiddleware(t *testing.T) {
	t.Parallel()
	runs := 0
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.MaxRequest = 1000 })
	h := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
		w.Header().Set("Location", "/orders/1")
		w.Header().Add("Link", "a")
		w.Header().Add("Link", "b")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Late", "too late to be sent")
		fmt.Fprintf(w, "run %d of %s", runs, body)
	}))

	first := ask(t, h, "POST", "k1", "x")
	if got := bodyOf(t, first); first.StatusCode != 201 || got != "run 1 of x" {
		t.Fatalf("got %d %s", first.StatusCode, got)
	}
	if first.Header.Get("Set-Cookie") == "" || first.Header.Get(idem.ReplayedHeader) != "" || first.Header.Get("Late") != "" {
		t.Errorf("first answer's headers: %v", first.Header)
	}
	if first.Header.Get(idem.KeyHeader) != "k1" || first.Header.Get("Idempotency-Expires") == "" {
		t.Errorf("key and its lifetime aren't told: %v", first.Header)
	}

	again := ask(t, h, "POST", `"k1"`, "x")
	if got := bodyOf(t, again); again.StatusCode != 201 || got != "run 1 of x" || runs != 1 {
		t.Errorf("got %d %s after %d runs", again.StatusCode, got, runs)
	}
	want := http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "Location": {"/orders/1"}, "Link": {"a", "b"},
		idem.ReplayedHeader: {"true"}, idem.KeyHeader: {`"k1"`}, "Idempotency-Expires": first.Header["Idempotency-Expires"],
	}
	if diff := cmp.Diff(want, again.Header); diff != "" {
		t.Errorf("replay's headers (-want +got):\n%s", diff)
	}

	for name, tt := range map[string]struct {
		method, key, body string
		status            int
		runs              bool
	}{
		"missing key":        {"POST", "", "x", 400, false},
		"two keys":           {"POST", "a,b", "x", 400, false},
		"mismatch":           {"POST", "k1", "y", 422, false},
		"body too large":     {"POST", "k2", strings.Repeat("x", 1001), 413, false},
		"GET passes":         {"GET", "k1", "", 201, true},
		"PUT isn't opted in": {"PUT", "k1", "z", 201, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := runs
			r := ask(t, h, tt.method, tt.key, tt.body)
			if r.StatusCode != tt.status || (runs > before) != tt.runs {
				t.Errorf("got %d %s, ran %t", r.StatusCode, bodyOf(t, r), runs > before)
			}
			if r.Header.Get(idem.ReplayedHeader) != "" {
				t.Error("marked as a replay")
			}
		})
	}
}

// A request that passes reaches the handler with all features of the server.
func TestMiddlewarePassesUntouched(t *testing.T) {
	t.Parallel()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyOptional })
	var flushes error
	h := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		flushes = http.NewResponseController(w).Flush()
	}))
	for _, method := range []string{"GET", "POST"} {
		if ask(t, h, method, "", ""); flushes != nil {
			t.Errorf("%s without a key can't flush: %v", method, flushes)
		}
	}
	if ask(t, h, "POST", "k", ""); !errors.Is(flushes, http.ErrNotSupported) {
		t.Errorf("a keyed request's Flush says %v, want not supported", flushes)
	}
}

func TestMiddlewareOddHandlers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"writes nothing":           {func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"no content":               {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, ""},
		"writes a body after 204":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); _, _ = w.Write([]byte("x")) }, 204, ""},
		"early hints come first":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) }, 202, ""},
		"sends a status twice":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) }, 201, ""},
		"binary":                   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 0xff, 0}) }, 200, "\x00\xff\x00"},
		"BadInput22 splits a line": {func(w http.ResponseWriter, _ *http.Request) { w.Header()["X"] = []string{"a\r\nSet-Cookie: b"} }, 200, ""},
		"BadInput22 splits a line in its last phase": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = idem.Finish(r.Context(), func(context.Context, *idem.Tx) (idem.Response, error) {
				return idem.Response{Status: 201, Header: http.Header{"X": {"a\r\nSet-Cookie: b"}}}, nil
			})
		}, 201, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(tt.handler)
			for i, replayed := range []string{"", "true"} {
				r := ask(t, h, "POST", "k", "")
				if got := bodyOf(t, r); r.StatusCode != tt.status || got != tt.body || r.Header.Get(idem.ReplayedHeader) != replayed {
					t.Errorf("answer %d: %d %q %v", i+1, r.StatusCode, got, r.Header)
				}
				if r.Header.Get("X") != "" {
					t.Errorf("answer %d has a split header: %q", i+1, r.Header)
				}
			}
		})
	}
}

// http.ErrAbortHandler frees the key and reaches the server.
func TestMiddlewarePanic(t *testing.T) {
	t.Parallel()
	runs := 0
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if runs++; runs == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "second")
	}))
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("recovered %v", err)
			}
		}()
		ask(t, h, "POST", "k", "")
	}()
	if got := bodyOf(t, ask(t, h, "POST", "k", "")); got != "second" {
		t.Errorf("the retry got %q", got)
	}
}

// A status over which net/http would panic is refused before anything is stored.
func TestMiddlewareInvalidStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 99, 1000} {
		runs := 0
		h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if runs++; runs == 1 {
				w.WriteHeader(status)
			}
		}))
		if r := ask(t, h, "POST", "k", ""); r.StatusCode != 500 {
			t.Errorf("%d: got %d", status, r.StatusCode)
		}
		if r := ask(t, h, "POST", "k", ""); r.StatusCode != 200 || runs != 2 {
			t.Errorf("%d: the retry got %d after %d runs", status, r.StatusCode, runs)
		}
	}
}

// R122: a client that goes away leaves no incomplete work.
func TestMiddlewareClientGoesAway(t *testing.T) {
	t.Parallel()
	runs := 0
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		fmt.Fprint(w, "done")
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/orders?a=1", nil)
	r.Header.Set(idem.KeyHeader, "k")
	h.ServeHTTP(httptest.NewRecorder(), r)
	again := ask(t, h, "POST", "k", "")
	if got := bodyOf(t, again); got != "done" || again.Header.Get(idem.ReplayedHeader) != "true" || runs != 1 {
		t.Errorf("the retry got %q, replayed %q, after %d runs", got, again.Header.Get(idem.ReplayedHeader), runs)
	}
}

// The scope comes from an earlier middleware.
func TestMiddlewareScope(t *testing.T) {
	t.Parallel()
	type user struct{}
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.Scope = func(ctx context.Context, _ *idem.Request) (string, error) {
			name, ok := ctx.Value(user{}).(string)
			if !ok {
				return "", errors.New("not logged in")
			}
			return name, nil
		}
	})
	h := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Context().Value(user{}))
	}))
	as := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), user{}, name)))
		})
	}
	for _, name := range []string{"jane", "omar", "jane"} {
		if got := bodyOf(t, ask(t, as(name), "POST", "k", "")); got != name {
			t.Errorf("%s got %q", name, got)
		}
	}
	if r := ask(t, h, "POST", "k", ""); r.StatusCode != 500 {
		t.Errorf("nobody got %d, want 500", r.StatusCode)
	}
}
