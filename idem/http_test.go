package idem_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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

func TestMiddlewareOddHandlers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"writes nothing":          {func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"no content":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, ""},
		"writes a body after 204": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); _, _ = w.Write([]byte("x")) }, 204, ""},
		"early hints come first":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) }, 202, ""},
		"sends a status twice":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) }, 201, ""},
		"binary":                  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 0xff, 0}) }, 200, "\x00\xff\x00"},
		"splits a line":           {func(w http.ResponseWriter, _ *http.Request) { w.Header()["X"] = []string{"a\r\nSet-Cookie: b"} }, 200, ""},
		"splits a line in its last phase": {func(_ http.ResponseWriter, r *http.Request) {
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

// A client that goes away leaves no incomplete work.
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

// Files that a handler's form has put on the disk are removed with the request,
// as under net/http alone.
func TestMiddlewareRemovesTheFormsFiles(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	form := "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + strings.Repeat("x", 1<<20) + "\r\n--x--\r\n"
	for name, opt := range map[string]func(*idem.Options){
		"a keyed request":                    func(*idem.Options) {},
		"a panic":                            func(*idem.Options) {},
		"observed":                           func(o *idem.Options) { o.Mode = idem.ModeObserve },
		"observed, and too large to be read": func(o *idem.Options) { o.Mode, o.MaxRequest = idem.ModeObserve, 1<<10 },
	} {
		files := 0
		h := idem.New(&idem.MemoryStore{}, callertest.Anybody, opt).Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1 << 10); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			files = entries(t, folder)
			if name == "a panic" {
				panic(http.ErrAbortHandler)
			}
		}))
		r := httptest.NewRequest("POST", "/", strings.NewReader(form))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Header.Set("Idempotency-Key", "k")
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if left := entries(t, folder); files != 1 || left != 0 {
			t.Errorf("%s: %d files in the handler, %d after it", name, files, left)
		}
	}
}

func entries(t *testing.T, folder string) int {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Under Stripe's contract a name that no middleware gives is the handler's own, at first and
// in a replay; and so is one by which the handler replaces a middleware's.
func TestMiddlewareLeavesTheHandlersRequestID(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]string{"none around it": "", "one around it": "req_outer"} {
		h := idem.New(&idem.MemoryStore{}, idem.StripeV1, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", "req_own")
		}))
		around := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if outer != "" {
				w.Header().Set("Request-Id", outer)
			}
			h.ServeHTTP(w, r)
		})
		first, again := ask(t, around, "POST", "k", ""), ask(t, around, "POST", "k", "")
		own := "req_own"
		if outer != "" {
			own = outer
		}
		if first.Header.Get("Request-Id") != "req_own" || again.Header.Get("Request-Id") != own || again.Header.Get("Original-Request") != "req_own" {
			t.Errorf("%s: at first %v, then %v", name, first.Header, again.Header)
		}
	}
}

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

// The middleware refuses a body that it can't compare as it was sent.
func TestMiddlewareNeedsTheBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, body string
		before     func(*http.Request)
		fine       bool
	}{
		"nothing before":     {"text/plain", "1", func(*http.Request) {}, true},
		"no body":            {"text/plain", "", func(*http.Request) {}, true},
		"a parse of no form": {"application/json", "1", func(r *http.Request) { _ = r.ParseForm() }, true},
		"a form, parsed":     {"application/x-www-form-urlencoded", "a=1", func(r *http.Request) { r.ContentLength = -1; _ = r.ParseForm() }, false},
		"parts, parsed":      {"multipart/form-data; boundary=x", "--x--\r\n", func(r *http.Request) { r.ContentLength = -1; _ = r.ParseMultipartForm(1 << 20); r.PostForm = nil }, false},
		"read, in part":      {"text/plain", "123", func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 1)) }, false},
		"it can't be read":   {"text/plain", "1", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(errors.New("reset"))) }, false},
		"it breaks off": {"text/plain", "1", func(r *http.Request) {
			r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader("12"), iotest.ErrReader(errors.New("reset"))))
		}, false},
		"as large as it may":   {"text/plain", "1234567890", func(*http.Request) {}, true},
		"larger than it may":   {"text/plain", "12345678901", func(*http.Request) {}, false},
		"larger, in one piece": {"text/plain", "12345678901", func(r *http.Request) { r.ContentLength = -1 }, false},
	} {
		for _, mode := range []idem.Mode{idem.ModeEnforce, idem.ModeObserve} {
			var told []error
			runs := 0
			e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
				o.MaxRequest, o.Mode = 10, mode
				o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
			})
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			r.Header.Set(idem.KeyHeader, "k")
			tc.before(r)
			w := httptest.NewRecorder()
			e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })).ServeHTTP(w, r)
			if observed := mode == idem.ModeObserve; (runs == 1) != (tc.fine || observed) || !observed && (w.Code == 200) != tc.fine || observed && (len(told) == 0) != tc.fine {
				t.Errorf("%s: %d, %d runs, told %v", name, w.Code, runs, told)
			}
		}
	}
}

// The adapters' questions.
func TestWhatAdaptersAsk(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	var told []error
	tells := func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Hooks.Refused, o.Hooks.Observed = tells, tells })
	for err, status := range map[error]int{down: 400, idem.ErrTooLarge: 413} {
		told = nil
		if resp := e.Refuse(t.Context(), request, err); resp.Status != status || len(told) != 1 || !errors.Is(told[0], err) || errors.Is(told[0], idem.ErrRequest) != (status == 400) {
			t.Errorf("%v: %d %s, told %v", err, resp.Status, resp.Body, told)
		}
	}
	if !e.Keeps(201) || e.Keeps(400) || e.StoresRequests() {
		t.Error("keeps other answers than Stored says, or requests")
	}
	told = nil
	observing := func(o *idem.Options) { o.Mode, o.Hooks.Observed = idem.ModeObserve, tells }
	off := idem.New(nil, observing, func(o *idem.Options) { o.Mode = idem.ModeOff })
	if e.Observes(t.Context(), request, down) || off.Observes(t.Context(), request, down) || told != nil {
		t.Errorf("observes, told %v", told)
	}
	if !idem.New(&idem.MemoryStore{}, observing).Observes(t.Context(), request, down) || len(told) != 1 {
		t.Errorf("observes nothing, told %v", told)
	}
	if !idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Resumable, o.Function = true, "f" }).StoresRequests() {
		t.Error("stores no requests")
	}
	for _, h := range []http.Header{nil, {idem.KeyHeader: {"k"}}} {
		if _, err := e.Serve(t.Context(), idem.Request{Method: "GET", Header: h}, func(context.Context) (idem.Response, error) { return idem.Response{}, down }); err != down { //nolint:errorlint // the handler's own
			t.Errorf("a handler's error of a request that passes: %#v", err)
		}
	}
	told = nil
	if res, err := e.Serve(t.Context(), idem.Request{Method: "POST"}, never(t)); err != nil || res.Status != 400 || len(told) != 1 || !errors.Is(told[0], idem.ErrKeyMissing) {
		t.Errorf("without a key: %+v, %v, told %v", res, err, told)
	}
}
