package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A client gets the handler's answer even if it can't be stored, and learns that
// a retry would repeat the effect. Only then does an answer say so.
func TestUnstoredAnswerSaysSo(t *testing.T) {
	t.Parallel()
	own := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{"Idempotency-Status": {"unstored"}}}, nil
	}
	refuses := func(ctx context.Context) (idem.Response, error) {
		err := recordPhase(ctx, "order") // which may be committed all the same: a retry goes on from there
		if err != nil {
			err = idem.Respond(idem.Response{Status: 402})
		}
		return idem.Response{}, err
	}
	for name, tc := range map[string]struct {
		handler  func(context.Context) (idem.Response, error)
		denied   bool // the finish is denied
		replay   bool // check the answer to a second request
		unstored bool
	}{
		"stored":                               {handler: answers(201)},
		"a replay":                             {handler: answers(201), replay: true},
		"can't be stored":                      {handler: answers(201), denied: true, unstored: true},
		"not kept, by its status":              {handler: answers(500)},
		"not kept, and the key can't be freed": {handler: answers(500), denied: true},
		"the handler's own word":               {handler: own},
		"a Finish that can't be stored":        {handler: finishes, denied: true},
		"a phase, and then a refusal":          {handler: refuses, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := idemtest.Faulty(new(idem.MemoryStore), nil)
			if tc.denied {
				store.Reset(idemtest.At("Commit", 0, idemtest.Fault{Err: errors.New("access denied")}))
			}
			e := idem.New(store, callertest.Anybody)
			res, err := e.Serve(t.Context(), keyed("k"), tc.handler)
			if tc.replay {
				res, err = e.Serve(t.Context(), keyed("k"), tc.handler)
			}
			want := []string(nil)
			if tc.unstored {
				want = []string{"unstored"}
			}
			if got := res.Header["Idempotency-Status"]; err != nil || len(got) != len(want) || res.Unstored != tc.unstored {
				t.Errorf("%+v, %v; want %s: %q", res, err, "Idempotency-Status", want)
			}
			if tc.unstored && (res.Header.Get("Idempotency-Status") != "unstored" || res.Status != 201 || !res.Expires.IsZero()) {
				t.Errorf("%+v", res)
			}
		})
	}
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
			faulty.Reset(idemtest.At("LoadBody", 0, idemtest.Fault{Err: tt.loads}))
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
		if n := faulty.Calls("LoadBody"); n != 2*tt.attempts {
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
			case c.Verb == "Commit" && c.N == 1: // sent, acknowledgement lost
				slow = c.Commit
				return idemtest.Fault{Err: store.ErrUnknown}
			case c.Verb == "Commit" && c.N == 2: // meets the first copy, which lands right after
				if held, err := st.Commit(ctx, slow); held != nil || err != nil {
					t.Error(held, err)
				}
				return idemtest.Fault{Err: idem.ErrConflict}
			case c.Verb == "LoadBody":
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

// An answer that was compressed for one client is not given to another that doesn't take it,
// nor by the status resource. The hooks hear what the client gets.
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
		var told []string
		var ended idem.Summary
		tells := func(_ context.Context, ev idem.Event) { told = append(told, ev.Name) }
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.StatusURL = "/operations/"
			o.Hooks = idem.Hooks{Replayed: tells, Refused: tells, Ended: func(_ context.Context, s idem.Summary) { ended = s }}
		})
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
		if refused := tt.want == 406; errors.Is(ended.Err, idem.ErrEncoding) != refused || (ended.Status == 0) != refused {
			t.Errorf("%s: ended with %d, %v, want %d", name, ended.Status, ended.Err, tt.want)
		}
		req.Method, req.Path = "GET", "/operations/k"
		if res := e.ServeStatus(t.Context(), req); res.Status != tt.want {
			t.Errorf("%s: the status resource answers %d %s, want %d", name, res.Status, res.Body, tt.want)
		}
		want := []string{"Replayed", "Replayed"}
		if tt.want == 406 {
			want = []string{"Refused", "Refused"}
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %v, want %v", name, told, want)
		}
	}
}

func TestHandlersErrorKeepsItsType(t *testing.T) {
	t.Parallel()
	_, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) { //nolint:errorlint // exactly this value: runtimes report its type
		t.Errorf("got %T", err)
	}
}

// Options.Problem gets the handler's own error, and its headers can't split the answer.
func TestProblemGetsTheCause(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
		o.Problem = func(p idem.Problem) idem.Response {
			if !errors.Is(p.Err, down) || p.Status != 500 {
				t.Errorf("got %+v", p)
			}
			return idem.Response{Status: p.Status, Header: http.Header{"x-a": {"1"}, "X-B": {"a\nb"}}}
		}
	})
	res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{}, down })
	if err != nil || res.Header.Get("X-A") != "1" || res.Header.Get("X-B") != "" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A header map that a handler shares among its answers stays as it is.
func TestSharedHeadersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	shared := http.Header{"X-A": {"1"}}
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	get := keyed("k")
	get.Method = http.MethodGet
	for _, r := range []idem.Request{get, keyed("k")} {
		r.Header = http.Header{idem.KeyHeader: {"k"}}
		if _, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{Header: shared}, nil }); err != nil || len(shared) != 1 {
			t.Errorf("%s: %v, %v", r.Method, shared, err)
		}
	}
}

// Under ACP each answer has its request's Request-Id, and no other contract's does.
func TestRequestIDsAreEchoed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		preset func(*idem.Options)
		ids    []string
		want   string
	}{
		"one":              {idem.ACP, []string{"req_1"}, "req_1"},
		"none":             {idem.ACP, nil, ""},
		"two":              {idem.ACP, []string{"req_1", "req_2"}, ""},
		"one that splits":  {idem.ACP, []string{"req_1\nreq_2"}, ""},
		"another contract": {func(*idem.Options) {}, []string{"req_1"}, ""},
	} {
		e := idem.New(&idem.MemoryStore{}, tc.preset)
		r := request
		r.Key = ""
		for i, key := range []string{"", "k", "k"} { // refused, answered, replayed
			r.Header = http.Header{"Request-Id": tc.ids}
			if key != "" {
				r.Header[idem.KeyHeader] = []string{key}
			}
			res, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
			if err != nil || res.Header.Get("Request-Id") != tc.want || (res.Status == 201) != (i > 0) {
				t.Errorf("%s, answer %d: %d %v, %v", name, i, res.Status, res.Header, err)
			}
		}
	}
}

// Only Serve answers 202: the caller of Do wants a result or an error.
func TestDoIsNotAccepted(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	_, err := e.Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		if res, err := e.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrInFlight) {
			t.Errorf("Do: %+v, %v", res, err)
		}
		if res, err := e.Serve(t.Context(), request, never(t)); err != nil || res.Status != 202 {
			t.Errorf("Serve: %+v, %v", res, err)
		}
		return idem.Response{}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A status that no transport can send is a mistake of the handler, and no record has it.
func TestStatusThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for status, fine := range map[int]bool{0: true, 99: false, 100: true, 999: true, 1000: false, -1: false} {
		var mem idem.MemoryStore
		_, err := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }).Do(t.Context(), request, answers(status))
		if rec := onlyRecord(t, &mem); (err == nil) != fine || !fine && !errors.Is(err, idem.ErrResult) || fine != (rec.State == store.Done) {
			t.Errorf("%d: %v, the record is %v", status, err, rec.State)
		}
	}
}

// Only the engine says that an answer is a replay. A contract's headers are those of that
// contract, also on an answer that has no others.
func TestHeadersThatTheEngineMakes(t *testing.T) {
	t.Parallel()
	r := request
	r.Header = http.Header{"Request-Id": {"req_1"}}
	handler := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{idem.ReplayedHeader: {"true"}, "Request-Id": {"req_own"}}}, nil
	}
	for name, tt := range map[string]struct {
		preset       func(*idem.Options)
		id, original string
	}{"default": {asIs, "req_own", ""}, "Stripe": {idem.StripeV1, "req_own", "req_own"}, "ACP": {idem.ACP, "req_1", ""}} {
		res, err := idem.New(&idem.MemoryStore{}, tt.preset, callertest.Anybody).Serve(t.Context(), r, handler)
		if h := res.Header; err != nil || h[idem.ReplayedHeader] != nil || h.Get("Request-Id") != tt.id || h.Get("Original-Request") != tt.original {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	bare := func(o *idem.Options) {
		o.Problem = func(p idem.Problem) idem.Response { return idem.Response{Status: p.Status} }
	}
	r.Key = "a b"
	if res, err := idem.New(&idem.MemoryStore{}, idem.ACP, callertest.Anybody, bare).Serve(t.Context(), r, never(t)); err != nil || res.Status != 400 || res.Header.Get("Request-Id") != "req_1" {
		t.Errorf("a bare refusal: %+v, %v", res, err)
	}
}

// A request that passes and fails is its handler's alone: nothing is said of its key.
func TestPassThatFailsIsPassed(t *testing.T) {
	t.Parallel()
	res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Pass(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) {
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) || !res.Passed || res.Header != nil { //nolint:errorlint // exactly this value
		t.Errorf("%+v, %v", res, err)
	}
}

// An answer is kept, or the record stays open: an operation with phases doesn't give its
// answer up because one write was slow. Only a body that never fits is left out.
func TestAnswerIsKeptOrTheRecordStaysOpen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		fn    func(context.Context) (idem.Response, error)
		state store.State
	}{
		"phases, and a write that fails":        {errors.New("write body: context deadline exceeded"), reserves(201), store.Open},
		"phases, and an answer that never fits": {fmt.Errorf("%w: 401 KB", store.ErrTooLarge), reserves(201), store.Done},
		"no phases, and a write that fails":     {errors.New("write body: context deadline exceeded"), answers(201), store.Done},
		"no phases, and a body that never fits": {fmt.Errorf("%w: 401 KB", store.ErrTooLarge), answers(201), store.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == "Commit" && c.Commit.Next.State == store.Done && c.Commit.Next.Overflow == nil {
					return idemtest.Fault{Err: tc.err}
				}
				return idemtest.Fault{}
			})
			_, _ = do(t, idem.New(st), tc.fn)
			for _, r := range mem.Records() {
				if r.State != tc.state {
					t.Errorf("state %q, want %q: %+v", r.State, tc.state, r)
				}
			}
		})
	}
}

// A retry of a conditional edit names the version that its first run has changed. It
// gets the first answer all the same; a layer before the engine would refuse it. A 412
// is kept, unless Options.Stored leaves it out; with the header in the fingerprint a key
// belongs to one version.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	type step struct {
		key, version string
		status       int
		replayed     string
	}
	for name, tc := range map[string]struct {
		options func(*idem.Options)
		outside bool // the check is a layer before the engine
		steps   []step
		version string // at the end
	}{
		"default": {func(*idem.Options) {}, false, []step{
			{"a", "v", 200, ""},
			{"a", "v", 200, "true"},
			{"a", "vx", 200, "true"},
			{"b", "v", 412, ""},
			{"b", "vx", 412, "true"},
			{"c", "vx", 200, ""},
		}, "vxx"},
		"412 is not kept": {func(o *idem.Options) {
			o.Stored = func(r idem.Response) bool { return r.Status != http.StatusPreconditionFailed && idem.DefaultStored(r) }
		}, false, []step{{"a", "old", 412, ""}, {"a", "v", 200, ""}, {"a", "v", 200, "true"}}, "vx"},
		"the header counts": {func(o *idem.Options) { o.Fingerprint.Headers = []string{"If-Match"} }, false, []step{
			{"a", "v", 200, ""}, {"a", "v", 200, "true"}, {"a", "vx", 422, ""},
		}, "vx"},
		"a layer before the engine": {func(*idem.Options) {}, true, []step{{"a", "v", 200, ""}, {"a", "v", 412, ""}}, "vx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := "v"
			edit := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { version += "x"; _, _ = w.Write([]byte(version)) }))
			check := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("If-Match") != version {
						w.WriteHeader(http.StatusPreconditionFailed)
						return
					}
					next.ServeHTTP(w, r)
				})
			}
			e := idem.New(&idem.MemoryStore{}, idem.OneScope, func(o *idem.Options) { o.MinKey = 1 }, tc.options)
			h := e.Middleware(check(edit))
			if tc.outside {
				h = check(e.Middleware(edit))
			}
			for i, s := range tc.steps {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/articles/1", strings.NewReader(`{"title":"x"}`))
				r.Header.Set("Idempotency-Key", s.key)
				r.Header.Set("If-Match", s.version)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != s.status || w.Header().Get("Idempotent-Replayed") != s.replayed {
					t.Errorf("step %d: got %d, replayed %q, want %d, %q", i, w.Code, w.Header().Get("Idempotent-Replayed"), s.status, s.replayed)
				}
			}
			if version != tc.version {
				t.Errorf("the article is at %s, want %s", version, tc.version)
			}
		})
	}
}

// The first answer is the stored one: the first run's, if its commit landed late, whatever the
// second run of the phase answers.
func TestFirstAnswerIsTheStoredOne(t *testing.T) {
	t.Parallel()
	told := func(r idem.Response) string {
		return fmt.Sprint(r.Status, " ", string(r.Body), " ", r.Header.Get("Location"))
	}
	for what, answer := range map[string]func(run int) idem.Response{
		"status": func(run int) idem.Response { return idem.Response{Status: 200 + run} },
		"body":   func(run int) idem.Response { return idem.Response{Status: 201, Body: fmt.Append(nil, run)} },
		"header": func(run int) idem.Response {
			return idem.Response{Status: 201, Header: http.Header{"Location": {fmt.Sprint("/rides/", run)}}}
		},
	} {
		var mem idem.MemoryStore
		var slow store.Commit
		st := idemtest.Faulty(&mem, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
			switch {
			case c.Verb == "Commit" && c.N == 1: // sent, acknowledgement lost
				slow = c.Commit
				return idemtest.Fault{Err: store.ErrUnknown}
			case c.Verb == "Commit" && c.N == 2: // meets the first copy, which lands right after
				if held, err := mem.Commit(ctx, slow); held != nil || err != nil {
					t.Error(held, err)
				}
				return idemtest.Fault{Err: idem.ErrConflict}
			}
			return idemtest.Fault{}
		})
		runs := 0
		for i := range 2 {
			res, err := do(t, idem.New(st), func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					runs++
					tx.Write(note("put"))
					return answer(runs), nil
				})
			})
			if got, want := told(res.Response), told(answer(1)); err != nil || got != want || runs != 2 || res.Replayed != (i > 0) {
				t.Errorf("another %s, request %d: got %s, %v after %d runs, want %s", what, i, got, err, runs, want)
			}
		}
		if len(mem.Writes()) != 1 {
			t.Errorf("another %s: wrote %v, want one", what, written(&mem))
		}
	}
}
