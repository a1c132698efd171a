package idem_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// recordless is a way in which a request runs without a record.
type recordless struct {
	mode  idem.Mode
	store func() store.Store
}

func (r recordless) options(o *idem.Options) { o.Mode = r.mode }

var recordlessModes = map[string]recordless{
	"observed": {idem.ModeObserve, func() store.Store { return new(idem.MemoryStore) }},
	"open": {idem.ModeOpen, func() store.Store {
		return &spoilt{Store: new(idem.MemoryStore), claim: failsWith(store.ErrUnknown), load: unread}
	}},
	"off": {idem.ModeOff, func() store.Store { return nil }},
}

func failsWith(err error) func(context.Context, store.Claim) (*store.Record, error) {
	return func(context.Context, store.Claim) (*store.Record, error) { return nil, err }
}

func unread(context.Context, string) (*store.Record, error) { return nil, errors.New("down") }

// A request that runs without a record has no phases: the derived keys of its calls would
// be new at each retry. It is answered 503, whatever its handler makes of the phase's
// error, and nothing is called.
func TestPhasesNeedARecord(t *testing.T) {
	t.Parallel()
	phases := map[string]func(context.Context) error{
		"Atomic": func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "a", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return err
		},
		"Foreign": func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "f", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return err
		},
		"Finish": func(ctx context.Context) error {
			_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			return err
		},
		"Stage": func(ctx context.Context) error { return idem.Stage(ctx, idem.NewJob("mail", 1)) },
	}
	for mode, set := range recordlessModes {
		for name, phase := range phases {
			for hides, then := range map[bool]func(error) (idem.Response, error){
				false: func(err error) (idem.Response, error) { return idem.Response{}, err },
				true:  func(error) (idem.Response, error) { return idem.Response{Status: 201}, nil },
			} {
				var log bytes.Buffer
				e := idem.New(set.store(), callertest.Anybody, set.options, func(o *idem.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				r := keyed("k")
				r.Route = "POST /rides"
				for try := range 2 {
					var failed error
					res, err := e.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
						failed = phase(ctx)
						return then(failed)
					})
					if err != nil || res.Status != 503 || !strings.Contains(string(res.Body), `"unprotected"`) || !errors.Is(failed, idem.ErrUnprotected) {
						t.Errorf("%s, %s, hidden %t, try %d: got %d %s, %v, the phase %v; want 503 unprotected", mode, name, hides, try, res.Status, res.Body, err, failed)
					}
				}
				if !strings.Contains(log.String(), "a phase began without a record") || !strings.Contains(log.String(), "POST /rides") {
					t.Errorf("%s, %s: the log is %s", mode, name, log.String())
				}
			}
		}
	}
}

// Under net/http a phase is refused as well, and a handler without phases isn't.
func TestMiddlewareWithoutARecord(t *testing.T) {
	t.Parallel()
	for mode, set := range recordlessModes {
		for phase, status := range map[bool]int{true: 503, false: 201} {
			h := idem.New(set.store(), callertest.Anybody, set.options).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if phase {
					_ = idem.Stage(r.Context(), idem.NewJob("mail", 1))
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte("made"))
			}))
			for _, key := range []string{"k", ""} {
				if key == "" && mode == "open" {
					continue // refused for its key
				}
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
				if key != "" {
					r.Header.Set(idem.KeyHeader, key)
				}
				h.ServeHTTP(w, r)
				if got := w.Body.String(); w.Code != status || (got == "made") == phase {
					t.Errorf("%s, phase %t, key %q: got %d %s, want %d", mode, phase, key, w.Code, got, status)
				}
				if ignored := w.Header().Get("Idempotency-Status") == "ignored"; !phase && ignored != (key != "") {
					t.Errorf("%s, key %q: Idempotency-Status %q", mode, key, w.Header().Get("Idempotency-Status"))
				}
			}
		}
	}
}

// A request with a key that runs in ModeOff is told, by every door; one without a key isn't.
func TestModeOffIsTold(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", ""} {
		told := 0
		e := idem.New(nil, func(o *idem.Options) {
			o.Mode = idem.ModeOff
			o.Hooks.Unprotected = func(context.Context, idem.Event) { told++ }
		})
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		if key != "" {
			r.Header.Set(idem.KeyHeader, key)
		}
		doors := map[string]func(){
			"Do":         func() { _, _ = e.Do(t.Context(), idem.Request{Key: key}, answers(201)) },
			"Serve":      func() { _, _ = e.Serve(t.Context(), idem.Request{Method: "POST", Header: r.Header}, answers(201)) },
			"Middleware": func() { e.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r) },
		}
		for door, send := range doors {
			told = 0
			if send(); (told == 1) != (key != "") {
				t.Errorf("%s, key %q: told %d times, want once for a request with a key", door, key, told)
			}
		}
	}
}

// A table that refuses a call for certain is reached: ModeOpen runs nothing behind it.
func TestModeOpenStaysShut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		runs bool
	}{
		"no answer":                     {store.ErrUnknown, true},
		"access denied, no such table":  {store.ErrRefused, false},
		"a key that can't be had":       {store.ErrSealed, false},
		"a conflict that doesn't cease": {store.ErrConflict, false},
	} {
		var told []error
		runs := 0
		e := idem.New(&spoilt{Store: new(idem.MemoryStore), claim: failsWith(tt.err), load: unread}, callertest.Anybody, func(o *idem.Options) {
			o.Mode, o.Now = idem.ModeOpen, idemtest.NewClock().Now
			o.Hooks.Unprotected = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
		})
		res, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) { runs++; return answers(201)(ctx) })
		if err != nil || (runs == 1) != tt.runs || (len(told) == 1) != tt.runs || (res.Header.Get("Idempotency-Status") == "ignored") != tt.runs {
			t.Errorf("%s: got %d %v, %v after %d runs, told %v; want it to run: %t", name, res.Status, res.Header, err, runs, told, tt.runs)
		}
	}
}
