package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Whatever record answers a request, the hook of that answer hears of it.
func TestHookOfEveryRecordInTheWay(t *testing.T) {
	t.Parallel()
	for meeting, want := range map[string]string{
		"done": "Replayed false", "of another request": "Mismatch true", "tombstone": "Refused true", "withheld": "Refused true",
		"stuck": "Refused true", "in flight": "InFlight true",
	} {
		m := meets(t, "plain", meeting)
		if b := m.sends(t, ordered("{}")); !slices.Equal(b.Told, []string{want}) {
			t.Errorf("%s: told %q, want %q", meeting, b.Told, want)
		}
	}
}

// A 202 is told like a refusal, and a page of another origin can read it.
func TestAcceptedIsToldAndReadable(t *testing.T) {
	t.Parallel()
	var told []string
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/"
		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}}
		o.Hooks.InFlight = func(_ context.Context, ev idem.Event) { told = append(told, ev.Name) }
	})
	r := request
	r.Header = http.Header{"Origin": {"https://shop.example"}}
	_, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) {
		res, err := e.Serve(t.Context(), r, never(t))
		if res.Status != 202 || res.Header.Get("Access-Control-Allow-Origin") != "https://shop.example" || !slices.Equal(told, []string{"InFlight"}) {
			t.Errorf("%+v, %v, told %q", res, err, told)
		}
		return idem.Response{}, err
	})
	if err != nil {
		t.Error(err)
	}
}

// A claim that conflicts each time has met nobody whose progress a 202 could tell.
func TestConflictIsNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &spoilt{Store: &idem.MemoryStore{}, claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, idem.ErrConflict }}
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
		if res, err := e.Serve(t.Context(), request, never(t)); err != nil || res.Status != 409 || res.Header.Get("Retry-After") != "1" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// The caller of Do hears that the operation goes on, and no 202.
func TestDoIsNotAcceptedForLater(t *testing.T) {
	t.Parallel()
	a := accepting(func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	if res, err := do(t, a.engine, reserves(409)); !errors.Is(err, idem.ErrUnfinished) || res.Status != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Who comes while an answer is withheld hears when to come again: a second from now at
// least.
func TestRetryAfterAWithheldAnswer(t *testing.T) {
	t.Parallel()
	m := meets(t, "plain", "withheld")
	again := func() time.Duration {
		t.Helper()
		_, err := m.engine(&m.mem, m.opt).Do(t.Context(), ordered("{}"), never(t))
		e, ok := errors.AsType[*idem.Error](err)
		if !ok || !errors.Is(err, idem.ErrUnfinished) {
			t.Fatal(err)
		}
		return e.RetryAfter
	}
	first := again()
	m.clock.Advance(first - 100*time.Millisecond)
	if last := again(); first <= time.Second || last != time.Second {
		t.Errorf("again after %v, and shortly before that after %v, want a second", first, last)
	}
}

// elsewhereStore keeps large bodies beside their records.
func elsewhereStore() *bodied {
	b := &bodied{bodies: make(map[string][]byte)}
	b.empty()
	return b
}

var large = bytes.Repeat([]byte("large"), 20)

func answersLargely(context.Context) (idem.Response, error) {
	return idem.Response{Status: 201, Body: bytes.Clone(large)}, nil
}

// An answer whose body can't be had is no answer, and is told as a failure. Only a body that
// may come back is a reason to try again.
func TestBodyThatCannotBeHad(t *testing.T) {
	t.Parallel()
	statusOnly := func(o *idem.Options) { o.MaxBody = 1 }
	for name, tt := range map[string]struct {
		opt      func(*idem.Options)
		plain    bool
		loads    error
		want     error
		again    bool // it is worth it
		attempts int  // at the body
	}{
		"it was not kept":      {statusOnly, false, nil, idem.ErrNotKept, false, 0},
		"its place is gone":    {asIs, false, idem.ErrNotKept, idem.ErrNotKept, false, 1},
		"its store is down":    {asIs, false, errDown, errDown, true, 1},
		"its store has no way": {asIs, true, nil, idem.ErrNotKept, false, 0},
	} {
		st := elsewhereStore()
		if _, err := idem.New(st, callertest.Anybody, tt.opt).Do(t.Context(), request, answersLargely); err != nil {
			t.Fatal(err)
		}
		var told []string
		faulty := idemtest.Faulty(st, nil)
		if tt.loads != nil {
			faulty.Reset(idemtest.At(idemtest.LoadBody, 0, idemtest.Fault{Err: tt.loads}))
		}
		s := store.Store(faulty)
		if tt.plain {
			s = plain{faulty}
		}
		e := idem.New(s, callertest.Anybody, tt.opt, func(o *idem.Options) {
			o.Hooks = listening(&told, new([]idem.Summary))
		})
		for range 2 {
			told = nil
			res, err := e.Do(t.Context(), request, never(t))
			if !errors.Is(err, tt.want) || errors.Is(err, idem.ErrUnavailable) != tt.again || res.Status != 0 || !slices.Contains(told, "Failed") {
				t.Errorf("%s: %+v, %v, told %q", name, res, err, told)
			}
		}
		if n := faulty.Calls(idemtest.LoadBody); n != 2*tt.attempts {
			t.Errorf("%s: %d attempts at the body in two requests", name, n)
		}
	}
}

// What becomes of an answer in its client's hands is nothing to the next one.
func TestReplaysShareNothing(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	for range 3 {
		res, err := e.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
			return idem.Response{Header: http.Header{"Location": {"/1"}}, Body: []byte("body")}, nil
		})
		if err != nil || string(res.Body) != "body" || res.Header.Get("Location") != "/1" {
			t.Errorf("%+v, %v", res, err)
		}
		if res.Replayed {
			copy(res.Body, "else")
			res.Header["Location"][0] = "/2"
			res.Header.Set("Content-Type", "other")
		}
	}
}

// A record that another program has written may have headers that no other client may get.
func TestReplayOfAForeignRecordIsClean(t *testing.T) {
	t.Parallel()
	var mem, other idem.MemoryStore
	if _, err := idem.New(&other, callertest.Anybody).Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	rec := one(&other).Clone()
	rec.Response.Header = http.Header{"Set-Cookie": {"session=jane"}, "Location": {"/1"}, "X-Split": {"a\nb"}}
	if _, err := mem.Claim(t.Context(), store.Claim{Next: rec, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	res, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), request, never(t))
	if err != nil || !res.Replayed || len(res.Header) != 1 || res.Header.Get("Location") != "/1" {
		t.Errorf("%+v, %v", res, err)
	}
}

// An attempt that was overtaken hears that, and that the other one is still working.
func TestOvertakenByAnAttemptInFlight(t *testing.T) {
	t.Parallel()
	st := elsewhereStore()
	_, err := idem.New(st, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		old := one(st.MemoryStore)
		next := old.Clone()
		next.Owner, next.Ver = "another", old.Ver+1
		if _, err := st.MemoryStore.Commit(t.Context(), store.Commit{Prev: old, Next: next}); err != nil {
			t.Error(err)
		}
		return idem.Response{Status: 201}, nil
	})
	if e, ok := errors.AsType[*idem.Error](err); !errors.Is(err, idem.ErrLeaseLost) || !errors.Is(err, idem.ErrInFlight) || !ok || e.RetryAfter == 0 {
		t.Errorf("got %v", err)
	}
}

// A request that errors out of its handler hears of no header that splits its answer; one
// that is answered without that header leaves a line.
func TestHeaderThatSplitsIsLogged(t *testing.T) {
	t.Parallel()
	for value, lines := range map[string]int{"a": 0, "a\nb": 1} {
		var log strings.Builder
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, logsTo(&log))
		res, err := e.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
			return idem.Response{Header: http.Header{"X-A": {value}}}, nil
		})
		if n := strings.Count(log.String(), "left out"); err != nil || n != lines || len(res.Header) != 1-lines {
			t.Errorf("%q: %+v, %v, %d lines", value, res, err, n)
		}
	}
}

// A call's answer that was stored although its write was reported as failed is the answer:
// without its body there is none, and not that of a later run.
func TestStoredAnswerWhoseBodyIsAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		load error
		body string
		want error
	}{"there": {nil, "a long body of run 1", nil}, "away": {errDown, "", idem.ErrUnavailable}} {
		st := elsewhereStore()
		var slow store.Commit
		faulty := idemtest.Faulty(st, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
			switch {
			case c.Verb == idemtest.Commit && c.N == 1: // sent, acknowledgement lost
				slow = c.Commit
				return idemtest.Fault{Err: store.ErrUnknown}
			case c.Verb == idemtest.Commit && c.N == 2: // meets the first copy, which lands right after
				if held, err := st.Commit(ctx, slow); held != nil || err != nil {
					t.Error(held, err)
				}
				return idemtest.Fault{Err: idem.ErrConflict}
			case c.Verb == idemtest.LoadBody:
				return idemtest.Fault{Err: tt.load}
			}
			return idemtest.Fault{}
		})
		runs := 0
		res, err := do(t, idem.New(faulty, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				runs++
				tx.Write(note("order"))
				return idem.Response{Status: 201, Body: fmt.Append(nil, "a long body of run ", runs)}, nil
			})
		})
		if string(res.Body) != tt.body || !errors.Is(err, tt.want) || runs != 2 {
			t.Errorf("%s: %d %q, %v after %d runs", name, res.Status, res.Body, err, runs)
		}
	}
}

// An answer that was compressed for one client is not given to another that doesn't take it.
func TestReplaysInACodingThatTheClientTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stored, accepts string
		want            int
	}{
		"the same":             {"gzip", "gzip, deflate", 201},
		"its old name":         {"gzip", "x-gzip", 201},
		"any":                  {"br", "*;q=0.1", 201},
		"none stored":          {"", "identity", 201},
		"identity stored":      {"identity", "", 201},
		"another":              {"br", "gzip", 406},
		"excluded":             {"gzip", "gzip;q=0, *", 406},
		"no Accept-Encoding":   {"gzip", "", 406},
		"one of two":           {"gzip, br", "gzip", 406},
		"excluded by the star": {"zstd", "*;q=0", 406},
	} {
		req := idem.Request{Method: "POST", Path: "/", Header: http.Header{idem.KeyHeader: {"k"}, "Accept-Encoding": {tt.stored}}}
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
		fn := func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 201, Header: http.Header{"Content-Encoding": {tt.stored}}}, nil
		}
		if res, err := e.Serve(t.Context(), req, fn); err != nil || res.Status != 201 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		req.Header = http.Header{idem.KeyHeader: {"k"}, "Accept-Encoding": {tt.accepts}}
		if tt.accepts == "" {
			delete(req.Header, "Accept-Encoding")
		}
		if res, err := e.Serve(t.Context(), req, fn); err != nil || res.Status != tt.want || res.Expires.IsZero() || (tt.want == 406) == res.Replayed {
			t.Errorf("%s: %+v, %v, want %d", name, res, err, tt.want)
		}
	}
}
