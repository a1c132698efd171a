package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
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

// observed is an engine that observes, and hears what requests would have got.
type observed struct {
	mem  idem.MemoryStore
	told []error
}

func (o *observed) engine(s store.Store, opts ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append(opts, func(opt *idem.Options) {
		opt.Mode = idem.ModeObserve
		opt.Hooks.Observed = func(_ context.Context, ev idem.Event) { o.told = append(o.told, ev.Err) }
	})...)
}

// A request is observed whatever would have refused it, and runs once.
func TestObserveOfARefusal(t *testing.T) {
	t.Parallel()
	unread := func(o *idem.Options) {
		o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, errDown }, "f"
		o.Fingerprint.Known = []idem.Fingerprint{{}}
	}
	nobody := request
	nobody.Identity = idem.Identity{}
	for name, tt := range map[string]struct {
		r    idem.Request
		opt  func(*idem.Options)
		left time.Duration
		want error
	}{
		"nobody has sent it":         {nobody, asIs, time.Minute, idem.ErrScope},
		"there is no time":           {request, asIs, time.Millisecond, idem.ErrNoTime},
		"its data can't be compared": {request, unread, time.Minute, errDown},
	} {
		var o observed
		runs := 0
		ctx, cancel := context.WithTimeout(t.Context(), tt.left)
		defer cancel()
		res, err := o.engine(&o.mem, tt.opt).Do(ctx, tt.r, func(ctx context.Context) (idem.Response, error) { runs++; return answers(201)(ctx) })
		if err != nil || res.Status != 201 || runs != 1 || len(o.told) != 1 || !errors.Is(o.told[0], tt.want) || len(o.mem.Records()) != 0 {
			t.Errorf("%s: %+v, %v after %d runs, told %v, %d records", name, res, err, runs, o.told, len(o.mem.Records()))
		}
	}
}

// An observed answer is remembered if it would have been stored: so the next request hears
// that it would have been replayed, or nothing.
func TestObserveRemembersAnswers(t *testing.T) {
	t.Parallel()
	only200 := func(o *idem.Options) { o.Stored = func(r idem.Response) bool { return r.Status == 200 } }
	all := func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }
	conflict := func(v idemtest.Verb) idemtest.Plan { return idemtest.At(v, 1, idemtest.Fault{Err: idem.ErrConflict}) }
	for name, tt := range map[string]struct {
		opt   func(*idem.Options)
		plan  idemtest.Plan
		fn    func(context.Context) (idem.Response, error)
		stays bool
	}{
		"an answer":                        {asIs, nil, answers(201), true},
		"an answer without a status":       {only200, nil, answers(0), true},
		"an answer that isn't stored":      {asIs, nil, answers(409), false},
		"no answer":                        {all, nil, func(context.Context) (idem.Response, error) { return idem.Response{}, errDown }, false},
		"an answer that can't be sent":     {all, nil, answers(1000), false},
		"an answer, its claim conflicts":   {asIs, conflict(idemtest.Claim), answers(201), true},
		"an answer, its storing conflicts": {asIs, conflict(idemtest.Commit), answers(201), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o observed
			_, _ = o.engine(idemtest.Faulty(&o.mem, tt.plan), tt.opt).Do(t.Context(), request, tt.fn)
			if o.told != nil {
				t.Errorf("the first request is told %v", o.told)
			}
			_, _ = o.engine(&o.mem, tt.opt).Do(t.Context(), request, tt.fn)
			if stays := len(o.told) == 1 && errors.Is(o.told[0], idem.ErrReplay); stays != tt.stays || !stays && o.told != nil {
				t.Errorf("the second request is told %v; the first one's answer stays: want %t", o.told, tt.stays)
			}
		})
	}
}

// What an observed handler answers reaches its client as it is; the record has what a replay
// may have.
func TestObserveStoresACleanAnswer(t *testing.T) {
	t.Parallel()
	var o observed
	header := http.Header{"Location": {"/1"}, "X-Split": {"a\nb"}}
	res, err := o.engine(&o.mem, func(o *idem.Options) { o.StoreHeaders = []string{"X-Split"} }).Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		return idem.Response{Header: header}, nil
	})
	if diff := cmp.Diff(header, res.Header); diff != "" || err != nil || res.Status != 0 {
		t.Errorf("%+v, %v (-want +got):\n%s", res, err, diff)
	}
	if got := one(&o.mem).Response; got.Status != 200 || len(got.Header) != 1 || got.Header.Get("Location") != "/1" {
		t.Errorf("the record has %+v", got)
	}
}

// A wrapper in a wrapper observes a request once, and a key in quotes may have a space.
func TestObserveInsideAndSpaces(t *testing.T) {
	t.Parallel()
	var o observed
	e := o.engine(&o.mem)
	r := keyed(`"with a space"`)
	runs := 0
	res, err := e.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, r, func(context.Context) (idem.Response, error) { runs++; return idem.Response{Status: 201}, nil })
		return res.Response, err
	})
	if err != nil || res.Status != 201 || runs != 1 || o.told != nil || len(o.mem.Records()) != 1 {
		t.Errorf("%+v, %v after %d runs, told %v, %d records", res, err, runs, o.told, len(o.mem.Records()))
	}
}

// An observed retry continues an abandoned operation, and its handler learns that.
func TestObserveContinues(t *testing.T) {
	t.Parallel()
	var o observed
	clock := idemtest.NewClock()
	now := func(o *idem.Options) { o.Now = clock.Now }
	for i := range 2 {
		st := idemtest.Faulty(&o.mem, nil)
		_, err := o.engine(st, now).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			if op, _ := idem.FromContext(ctx); op.Resumed() != (i == 1) {
				t.Errorf("attempt %d: resumed: %t", i, op.Resumed())
			}
			st.Crash()
			return idem.Response{Status: 201}, nil
		})
		if err != nil || o.told != nil {
			t.Errorf("attempt %d: %v, told %v", i, err, o.told)
		}
		clock.Advance(storetest.LeaseOver)
	}
}

// Once the store has shown a record, ModeOpen must not run its request.
func TestModeOpenNotOverAKnownRecord(t *testing.T) {
	t.Parallel()
	memory := &idem.MemoryStore{}
	_, _ = idem.New(&spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) {
		return nil, errors.New("dead")
	}}, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("dead") })
	down := &spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) {
		return nil, errors.New("throttled")
	}}
	later := idem.New(down, callertest.Anybody, func(o *idem.Options) {
		o.Mode = idem.ModeOpen
		o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	})
	if _, err := later.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

// The same, however the store has shown the record and whatever has happened to
// the record since.
func TestModeOpenNotOverARecordThatWasSeen(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	hour := func(o *idem.Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } }
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		held store.State // the state that the other attempt leaves
	}{
		"abandoned, by a look before the claim":    {hour, store.Open},
		"gone while it was waited for":             {func(o *idem.Options) { o.InFlight, o.WaitMax = idem.InFlightWait, 2*time.Second }, store.None},
		"given back while it was being taken over": {hour, store.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := &idem.MemoryStore{}
			var held *store.Record
			holder := &spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) { return nil, errors.New("dead") }}
			_, _ = idem.New(holder, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("dead") })
			for _, held = range memory.Records() {
			}
			claims := 0
			broken := &spoilt{
				Store: memory,
				claim: func(ctx context.Context, c store.Claim) (*store.Record, error) {
					if claims++; tt.held == store.Open || claims > 1 {
						return nil, down
					}
					return held, nil
				},
				commit: func(context.Context, store.Commit) (*store.Record, error) { return &store.Record{}, nil }, // gone
				load: func(ctx context.Context, pk string) (*store.Record, error) {
					if tt.held == store.Open && claims == 0 {
						return memory.Load(ctx, pk)
					}
					if claims > 1 || claims == 1 && tt.held == store.Open {
						return nil, down
					}
					return nil, nil
				},
			}
			engine := idem.New(broken, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen; tt.opt(o) })
			r := request
			r.ReadFirst = tt.held == store.Open
			if _, err := engine.Do(t.Context(), r, never(t)); !errors.Is(err, idem.ErrUnavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
		})
	}
}

// Nor may it run over a record that is there but can't be read: it is corrupt, or its
// contents are sealed and their key can't be had.
func TestModeOpenNotOverAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ claim, load, want error }{
		"corrupt, after a claim without an answer": {store.ErrUnknown, store.ErrCorrupt, idem.ErrCorrupt},
		"sealed, after a refused claim":            {errors.Join(store.ErrUnknown, store.ErrSealed), store.ErrSealed, idem.ErrUnavailable},
		"sealed, and then the store is down":       {errors.Join(store.ErrUnknown, store.ErrSealed), errors.New("throttled"), idem.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := idem.New(&spoilt{
				Store: &idem.MemoryStore{},
				claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, tt.claim },
				load:  func(context.Context, string) (*store.Record, error) { return nil, tt.load },
			}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen })
			if _, err := engine.Do(t.Context(), request, never(t)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Nor over one that a look before the claim has found and could not open.
func TestModeOpenNotOverARecordThatALookCannotOpen(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	for name, tt := range map[string]struct {
		rec  *store.Record
		err  error
		runs bool
	}{
		"corrupt":               {nil, store.ErrCorrupt, false},
		"sealed":                {&store.Record{}, store.ErrSealed, false},
		"the look itself fails": {nil, down, true},
	} {
		looks, runs := 0, 0
		engine := idem.New(&spoilt{
			Store: &idem.MemoryStore{},
			claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, down },
			load: func(context.Context, string) (*store.Record, error) {
				if looks++; looks == 1 {
					return tt.rec, tt.err
				}
				return nil, down
			},
		}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen })
		_, err := engine.Do(t.Context(), repeated(request), func(ctx context.Context) (idem.Response, error) { runs++; return answers(201)(ctx) })
		if (runs == 1) != tt.runs || !tt.runs && !errors.Is(err, idem.ErrUnavailable) {
			t.Errorf("%s: %d runs, %v", name, runs, err)
		}
	}
}

// A disabled engine leaves everything to the handlers, without a store.
func TestDisabledEngine(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]idem.KeyMode{"required": idem.KeyRequired, "generated": idem.KeyGenerate} {
		e := idem.New(nil, func(o *idem.Options) { o.Mode, o.Key, o.Fingerprint.SkipPath = idem.ModeOff, key, true })
		for _, r := range []idem.Request{{}, keyed("k")} {
			if res, err := e.Do(t.Context(), r, answers(400)); err != nil || !res.Passed || res.Status != 400 {
				t.Errorf("%s, key %q: %+v, %v", name, r.Key, res, err)
			}
		}
		if err := errors.Join(e.AddOperation("Direct", "a"), e.AddOperation("Direct", "a"), e.CheckRoute("GET /{id}")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e.Acts("POST", http.Header{idem.KeyHeader: {"k"}}) || !e.Keeps(400) {
			t.Errorf("%s: acts", name)
		}
	}
}

// A29: every request runs, and the outcome that the request would have had is
// counted.
func TestObserveExecutesAndCounts(t *testing.T) {
	t.Parallel()
	counts := make(map[error]int)
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) {
		o.Mode = idem.ModeObserve
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) {
			for _, err := range []error{idem.ErrKeyMissing, idem.ErrKeyInvalid, idem.ErrMismatch, idem.ErrReplay, idem.ErrInFlight} {
				if errors.Is(ev.Err, err) {
					counts[err]++
				}
			}
		}
	})
	runs := 0
	serve := func(key, body string, inner func()) {
		t.Helper()
		req := keyed(key)
		req.Body = []byte(body)
		if key == "" {
			req.Header = nil
		}
		res, err := e.Serve(t.Context(), req, func(context.Context) (idem.Response, error) {
			runs++
			if inner != nil {
				inner()
			}
			return idem.Response{Status: 201, Body: []byte(body)}, nil
		})
		if err != nil || res.Passed != (key == "") || res.Status != 201 || string(res.Body) != body {
			t.Errorf("key %q: %+v, %v", key, res, err)
		}
		want := http.Header(nil)
		if key != "" {
			want = http.Header{"Idempotency-Status": {"ignored"}}
		}
		if diff := cmp.Diff(want, res.Header); diff != "" {
			t.Errorf("key %q (-want +got):\n%s", key, diff)
		}
	}
	serve("k", "a", func() { serve2(t, e, "k", "a", &runs) })
	serve("k", "a", nil)
	serve("k", "b", nil)
	serve("", "c", nil)
	serve("no spaces", "d", nil)
	if runs != 6 {
		t.Errorf("%d runs", runs)
	}
	for err, want := range map[error]int{
		idem.ErrInFlight: 1, idem.ErrReplay: 1, idem.ErrMismatch: 1, idem.ErrKeyMissing: 1, idem.ErrKeyInvalid: 1,
	} {
		if counts[err] != want {
			t.Errorf("%v: counted %d times", err, counts[err])
		}
	}
}

// serve2 sends another client's request while a request is running.
func serve2(t *testing.T, e *idem.Engine, key, body string, runs *int) {
	t.Helper()
	req := keyed(key)
	req.Body = []byte(body)
	if _, err := e.Serve(context.WithoutCancel(t.Context()), req, func(context.Context) (idem.Response, error) {
		*runs++
		return idem.Response{Status: 201}, nil
	}); err != nil {
		t.Error(err)
	}
}

// A failure while observing must not fail the request.
func TestObserveSurvivesItsStore(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]store.Store{"down": downStore{}, "fine": new(idem.MemoryStore)} {
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
		boom := errors.New("handler's own")
		if _, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{}, boom }); !errors.Is(err, boom) {
			t.Errorf("%s: %v", name, err)
		}
		declined := idem.Respond(idem.Response{Status: 402})
		if res, err := e.Serve(t.Context(), keyed("d"), func(context.Context) (idem.Response, error) { return idem.Response{}, declined }); err != nil || res.Status != 402 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil }); err != nil || res.Status != 200 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// What isn't protected says so.
func TestIgnoredKeysAreMarked(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody)
	get := keyed("k")
	get.Method = http.MethodGet
	fine := func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil }
	if res, _ := e.Serve(t.Context(), get, fine); res.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("GET with a key: %v", res.Header)
	}
	get.Header = nil
	if res, _ := e.Serve(t.Context(), get, fine); res.Header.Get("Idempotency-Status") != "" {
		t.Errorf("GET without a key: %v", res.Header)
	}
	if res, _ := e.Serve(t.Context(), keyed("k"), fine); res.Header.Get("Idempotency-Status") != "" {
		t.Errorf("POST: %v", res.Header)
	}
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	if res, _ := off.Serve(t.Context(), keyed("k"), fine); res.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("POST to an engine that is disabled: %v", res.Header)
	}
	small := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Mode, o.MaxRequest = idem.ModeObserve, 3 })
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	if r := ask(t, small.Middleware(created), "POST", "k", "larger"); r.StatusCode != 201 || r.Header.Get("Idempotency-Status") != "ignored" {
		t.Errorf("POST that is watched, and too large to be read: %d %v", r.StatusCode, r.Header)
	}
}

// A table that hangs takes little of an observed request's time, and the client
// learns that its key was ignored.
func TestObserveDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := idemtest.Faulty(new(idem.MemoryStore), func(ctx context.Context, _ idemtest.Call) idemtest.Fault {
			<-ctx.Done()
			return idemtest.Fault{Err: ctx.Err()}
		})
		e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		var waited time.Duration
		res, err := e.Serve(ctx, keyed("k"), func(context.Context) (idem.Response, error) {
			waited = time.Since(begun)
			return idem.Response{Status: 201}, nil
		})
		if err != nil || res.Status != 201 || res.Header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("got %+v, %v", res, err)
		}
		if total := time.Since(begun); waited > 2500*time.Millisecond || total > 5*time.Second {
			t.Errorf("the handler began after %v, the answer came after %v", waited, total)
		}
	})
}

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

// A request whose key is optional is observed without one too: that is what is to be found out.
func TestObserveOfAnOptionalKey(t *testing.T) {
	t.Parallel()
	var o observed
	e := o.engine(&o.mem, callertest.Anybody, func(o *idem.Options) { o.KeyOptionalOn = []string{"POST"} })
	if _, err := e.Serve(t.Context(), idem.Request{Method: "POST"}, answers(201)); err != nil || len(o.told) != 1 || !errors.Is(o.told[0], idem.ErrKeyMissing) {
		t.Errorf("%v, told %v", err, o.told)
	}
}
