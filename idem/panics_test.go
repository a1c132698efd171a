package idem_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// overHTTP serves h over real HTTP, and returns the client's view of an answer.
func overHTTP(t *testing.T, h http.Handler) func(key string) (status int, body string, err error) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return func(key string) (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode, bodyOf(t, resp), nil
	}
}

// A panic is answered like an error, "retry with the same key", and the log
// contains its place. The value of the panic appears nowhere, since it may
// contain a body or a secret, unless the value is an error of the Go runtime.
func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	for name, panics := range map[string]func(){
		"a text":                  func() { panic("boom: secret") },
		"an error":                func() { panic(errors.New("boom: secret")) },
		"an error of the engine":  func() { panic(&idem.Error{Op: "phase", Err: idem.ErrStuck}) },
		"a nil pointer":           func() { var p *http.Request; _ = p.Host }, //nolint:govet // is what panics
		"nil":                     func() { panic(nil) },                      //nolint:govet // what some do
		"an answer from a panic":  func() { panic(idem.Respond(idem.Response{Status: 201})) },
		"an impossible WriteHead": func() { panic("idem: Middleware: invalid WriteHeader code 0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			runs := 0
			store := &idem.MemoryStore{}
			e := idem.New(store, callertest.Anybody, func(o *idem.Options) {
				o.Function, o.Logger, o.Resumable = "f", slog.New(slog.NewTextHandler(&log, nil)), true // so that the record stays
			})
			send := overHTTP(t, e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if runs++; runs == 1 {
					panics()
				}
				w.WriteHeader(http.StatusCreated)
			})))
			status, body, err := send("k")
			if err != nil || status != 500 || !strings.Contains(body, `"code":"internal_error"`) || !strings.Contains(body, "Retry with the same key") {
				t.Errorf("the client gets %d %s, %v", status, body, err)
			}
			if strings.Contains(body, "secret") || !strings.Contains(log.String(), "panics_test.go") {
				t.Errorf("the client is told %s, the log %s", body, &log)
			}
			if strings.Contains(log.String(), "secret") || (name == "a nil pointer") != strings.Contains(log.String(), "nil pointer dereference") {
				t.Errorf("the log says %s", &log)
			}
			for _, r := range store.Records() {
				if strings.Contains(r.LastErr, "secret") || !strings.HasPrefix(r.LastErr, "handler panicked") {
					t.Errorf("the record says %q", r.LastErr)
				}
			}
			if status, body, err := send("k"); err != nil || status != 201 || runs != 2 {
				t.Errorf("the retry gets %d %s, %v after %d runs", status, body, err, runs)
			}
		})
	}
}

// Panics in requests that the engine passes continue as without the engine, and
// so does http.ErrAbortHandler.
func TestPanicsThatGoOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set   func(*idem.Options)
		key   string
		value any
	}{
		"no key":          {func(o *idem.Options) { o.Key = idem.KeyOptional }, "", "boom"},
		"observed":        {func(o *idem.Options) { o.Mode = idem.ModeObserve }, "k", "boom"},
		"disabled":        {func(o *idem.Options) { o.Mode = idem.ModeOff }, "k", "boom"},
		"ErrAbortHandler": {func(*idem.Options) {}, "k", http.ErrAbortHandler},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			h := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.set).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if runs.Add(1) == 1 {
					panic(tc.value)
				}
				w.WriteHeader(http.StatusCreated)
			}))
			went := make(chan any, 2) // values that reached the server, nil for none
			send := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					v := recover()
					went <- v
					if v != nil {
						panic(http.ErrAbortHandler)
					}
				}()
				h.ServeHTTP(w, r)
			}))
			status, _, err := send(tc.key)
			if got := <-went; err == nil || got != tc.value {
				t.Errorf("the client gets %d, %v; the server %v", status, err, got)
			}
			if status, _, err := send(tc.key); err != nil || status != 201 || runs.Load() != 2 {
				t.Errorf("the retry gets %d, %v after %d runs", status, err, runs.Load())
			}
		})
	}
}

// A wrapper in a wrapper passes a panic to the outer wrapper, which answers.
func TestPanicInANestedWrapper(t *testing.T) {
	t.Parallel()
	went := make(chan any, 1)
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	inner := e.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	send := overHTTP(t, e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if between := recover(); between != nil {
				went <- between
				panic(between)
			}
		}()
		inner.ServeHTTP(w, r)
	})))
	status, body, err := send("k")
	if between := <-went; err != nil || status != 500 || between != "boom" {
		t.Errorf("got %d %s, %v; between the wrappers %v", status, body, err, between)
	}
}

// An answer that a phase has stored is final, whatever happens afterwards.
func TestPanicAfterTheAnswer(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	runs := 0
	for i := range 2 {
		r := ann
		res, err := e.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
			runs++
			_, _ = idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			panic("boom")
		})
		if err != nil || res.Status != 201 || (res.Panic == "boom") != (i == 0) || res.Replayed != (i == 1) {
			t.Errorf("%d: %d, replayed %t, panic %v, %v", i, res.Status, res.Replayed, res.Panic, err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// Do is not HTTP: its caller gets the panic. The key is free, unless a phase has answered:
// then nothing more is written.
func TestPanicOfDoGoesOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt     func(*idem.Options)
		before  func(context.Context) (idem.Response, error)
		commits int
	}{
		"at once":          {asIs, answers(201), 1},
		"after the answer": {asIs, finishes, 1},
	} {
		st := idemtest.Faulty(new(idem.MemoryStore), nil)
		e := idem.New(st, callertest.Anybody, tt.opt)
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("%s: recovered %v", name, v)
				}
			}()
			_, _ = e.Do(t.Context(), ann, func(ctx context.Context) (idem.Response, error) {
				_, _ = tt.before(ctx)
				panic("boom")
			})
		}()
		if n := st.Calls("Commit"); n != tt.commits {
			t.Errorf("%s: %d commits, want %d", name, n, tt.commits)
		}
		runs := 0
		if res, err := e.Do(t.Context(), ann, keepsCount(&runs)); err != nil || res.Status != 201 || res.Replayed != (name == "after the answer") {
			t.Errorf("%s: the retry gets %+v, %v", name, res, err)
		}
	}
}
