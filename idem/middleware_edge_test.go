package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestObserveExecutesLargeBodies(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode, o.MaxRequest = idem.ModeObserve, 10 })
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, len(b))
	}))
	for _, key := range []string{"", "k"} {
		r := ask(t, h, "POST", key, strings.Repeat("x", 11))
		if got := bodyOf(t, r); r.StatusCode != 200 || got != "11" {
			t.Errorf("key %q: %d %s", key, r.StatusCode, got)
		}
	}
}

func TestObserveStreams(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	var err error
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() }))
	if ask(t, h, "POST", "", "{}"); err != nil {
		t.Errorf("no key: %v", err)
	}
}

func TestIgnoredKeysPassUntouched(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.MaxRequest = 10 })
	var err error
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() }))
	if r := ask(t, h, "GET", "k", ""); err != nil || r.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("GET with a key: %v, %v", err, r.Header)
	}
	if r := ask(t, h, "PUT", "k", strings.Repeat("x", 11)); r.StatusCode != 200 {
		t.Errorf("PUT with a key: %d", r.StatusCode)
	}
}

func TestStrictKeySaysQuotes(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]func(*idem.Options){
		"quote": idem.IETF, "100": func(o *idem.Options) { o.MaxKey = 100 },
	} {
		h := idem.New(&idem.MemoryStore{}, callertest.Anybody, opt).Middleware(http.NotFoundHandler())
		if got := bodyOf(t, ask(t, h, "POST", strings.Repeat("k", 101), "")); !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A multipart form is submitted twice: each submission has its own boundary.
func TestMultipartDoubleSubmit(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.KeyFrom = idem.FormKey("token") })
	n := 0
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n++; w.WriteHeader(201) }))
	for range 2 {
		var b bytes.Buffer
		m := multipart.NewWriter(&b) // a fresh random boundary, as browsers make
		_ = m.WriteField("token", "abc")
		_ = m.WriteField("amount", "5")
		_ = m.Close()
		r := httptest.NewRequest("POST", "/pay", &b)
		r.Header.Set("Content-Type", m.FormDataContentType())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 201 {
			t.Errorf("the same form, submitted twice: %d %s", w.Code, w.Body)
		}
	}
}

// The error text of FormKey contains nothing of the body.
func TestFormErrorHoldsBody(t *testing.T) {
	t.Parallel()
	var seen error
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.KeyFrom = idem.FormKey("token")
		o.Hooks.Refused = func(_ context.Context, ev idem.Event) { seen = ev.Err }
	})
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	for ct, body := range map[string]string{
		"multipart/form-data; boundary=x":   "card=4242424242424242\r\ncvc=123\r\n--x--\r\n--x\r\nfoo\r\n",
		"multipart/form-data; boundary=y":   "--y\r\ncard 4242424242424242\r\n\r\n--y--",
		"multipart/form-data; boundary=z":   "--z\r\n\r\na\r\n--z card=4242424242424242\r\n\r\n--z--",
		"application/x-www-form-urlencoded": "card=%zz4242424242424242&a=b",
	} {
		seen = nil
		r := httptest.NewRequest("POST", "/pay", strings.NewReader(body))
		r.Header.Set("Content-Type", ct)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if seen != nil && strings.Contains(seen.Error(), "4242424242424242") {
			t.Errorf("hook's error holds the card number: %v", seen)
		}
	}
}

// Observing must not take the handler's time.
func TestObserveCancelsHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve; o.Lease = 700 * time.Millisecond })
		h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				t.Errorf("observed handler was cancelled: %v", r.Context().Err())
			case <-time.After(600 * time.Millisecond):
			}
			w.WriteHeader(201)
		}))
		r := httptest.NewRequest("POST", "/pay", strings.NewReader("x"))
		r.Header.Set("Idempotency-Key", "k")
		h.ServeHTTP(httptest.NewRecorder(), r)
	})
}

func TestObserveParsedForm(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	ran := false
	h := e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true }))
	r := httptest.NewRequest("POST", "/", strings.NewReader("a=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", "k")
	_ = r.ParseForm() // CSRF middleware in front
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !ran {
		t.Errorf("observing refused it: %d %s", w.Code, w.Body)
	}
}

func TestObserveMaxInt(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve; o.MaxRequest = math.MaxInt64 })
	got := "not run"
	h := e.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { b, _ := io.ReadAll(r.Body); got = string(b) }))
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("charge 5")))
	r.ContentLength = -1
	r.Header.Set("Idempotency-Key", "k")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got != "charge 5" {
		t.Errorf("the handler got %q", got)
	}
}

// Two multipart bodies with the same boundary differ in a field's value.
func TestBoundaryCollision(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	seen := []string{}
	h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
		}
		seen = append(seen, r.FormValue("memo"))
		_, _ = w.Write([]byte(r.FormValue("memo")))
	}))
	send := func(boundary, memo string) (int, string) {
		b := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"memo\"\r\n\r\n" + memo + "\r\n--" + boundary + "--\r\n"
		r := httptest.NewRequest("POST", "/", strings.NewReader(b))
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	send("1", "a--1b")
	code, body := send("1", "a--b")
	if code != 422 {
		t.Errorf("another value, same boundary: %d %q", code, body)
	}
}

func TestQueryCollision(t *testing.T) {
	t.Parallel()
	for first, second := range map[string]string{"to=%25zz": "to=%zz", "x=1;y=2": "x=1%3By=2", "x=1%3By%3D2": "x=1;y=2"} {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
		n, last := 0, 0
		h := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n++; _, _ = w.Write([]byte(r.URL.RawQuery)) }))
		for _, q := range []string{first, second} {
			r := httptest.NewRequest("POST", "/pay", nil)
			r.URL.RawQuery = q
			r.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			last = w.Code
		}
		if n != 1 || last != http.StatusUnprocessableEntity {
			t.Errorf("%s and %s under one key: %d runs, the second is answered %d, want 1 and 422", first, second, n, last)
		}
	}
}

// Files that a handler's form has put on the disk are removed with the request,
// as under net/http alone.
//
//nolint:paralleltest // the folder for temporary files is this process's
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

// A key in a form is observed too; without one, a request that can't be read has no key of
// which anything could be said.
func TestObserveReadsAKeyElsewhere(t *testing.T) {
	t.Parallel()
	var told []error
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.Mode, o.KeyFrom, o.MaxRequest = idem.ModeObserve, idem.FormKey("key"), 20
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
	}).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	for _, tt := range []struct {
		body string
		want error
		says string
	}{{"key=k&a=1", nil, ""}, {"key=k&a=1", idem.ErrReplay, ""}, {"key=k&a=" + strings.Repeat("1", 20), idem.ErrTooLarge, ""}} {
		told = nil
		r := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if heard := errors.Join(told...); w.Code != 201 || (tt.want == nil) != (heard == nil) || !errors.Is(heard, tt.want) || w.Header().Get("Idempotency-Status") != tt.says {
			t.Errorf("%s: %d %v, told %v", tt.body, w.Code, w.Header(), told)
		}
	}
}
