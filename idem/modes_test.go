package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// recordless are the ways in which a request runs without a record.
var recordless = map[string]struct {
	mode  idem.Mode
	store func() store.Store
}{
	"observed": {idem.ModeObserve, memory},
	"off":      {idem.ModeOff, func() store.Store { return nil }},
	"open": {idem.ModeOpen, func() store.Store {
		return &spoilt{Store: new(idem.MemoryStore), claim: failsWith(store.ErrUnknown), load: unread}
	}},
}

// A request that runs without a record has no phases: the derived keys of its calls would be
// new at each retry. It is answered 503, whatever its handler makes of the phase's error, and
// nothing is called. A handler without phases runs.
func TestPhasesNeedARecord(t *testing.T) {
	t.Parallel()
	phases := map[string]func(context.Context) error{
		"none":   func(context.Context) error { return nil },
		"Atomic": func(ctx context.Context) error { return recordPhase(ctx, "a") },
		"Foreign": func(ctx context.Context) error {
			return paying(ctx, "f", func(*idem.Tx) error { t.Error("it was called"); return nil })
		},
		"Finish": finish,
		"Stage":  func(ctx context.Context) error { return idem.Stage(ctx, receipt) },
	}
	for mode, set := range recordless {
		for name, phase := range phases {
			for _, hides := range []bool{false, true} {
				var log bytes.Buffer
				var failed error
				e := idem.New(set.store(), callertest.Anybody, logsTo(&log), func(o *idem.Options) { o.Mode = set.mode })
				res, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
					if failed = phase(ctx); hides {
						return idem.Response{Status: 201}, nil
					}
					return idem.Response{Status: 201}, failed
				})
				if name == "none" {
					if err != nil || res.Status != 201 {
						t.Errorf("%s, no phases: got %d %s, %v, want 201", mode, res.Status, res.Body, err)
					}
					continue
				}
				if err != nil || res.Status != 503 || !strings.Contains(string(res.Body), `"unprotected"`) || !errors.Is(failed, idem.ErrUnprotected) {
					t.Errorf("%s, %s, hidden %t: got %d %s, %v, the phase %v; want 503 unprotected", mode, name, hides, res.Status, res.Body, err, failed)
				}
				if text := log.String(); !strings.Contains(text, "a phase began without a record") || !strings.Contains(text, "POST /orders") {
					t.Errorf("%s, %s: the log is %s", mode, name, text)
				}
			}
		}
	}
}

// The same under net/http.
func TestMiddlewareWithoutARecord(t *testing.T) {
	t.Parallel()
	for mode, set := range recordless {
		for phase, status := range map[bool]int{true: 503, false: 201} {
			h := idem.New(set.store(), callertest.Anybody, func(o *idem.Options) { o.Mode = set.mode }).
				Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if phase {
						_ = idem.Stage(r.Context(), receipt)
					}
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte("made"))
				}))
			for _, key := range []string{"k", ""} {
				if key == "" && mode == "open" {
					continue // refused for its key
				}
				r := ask(t, h, "POST", key, "")
				if got := bodyOf(t, r); r.StatusCode != status || (got == "made") == phase || !phase && (r.Header.Get("Idempotency-Status") == "ignored") != (key != "") {
					t.Errorf("%s, phase %t, key %q: got %d %s %v, want %d", mode, phase, key, r.StatusCode, got, r.Header, status)
				}
			}
		}
	}
}

// A disabled engine leaves everything to the handlers, without a store. Of a request with a key
// that is told, by every door. What needs a record is refused.
func TestModeOff(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]idem.KeyMode{"required": idem.KeyRequired, "generated": idem.KeyGenerate} {
		told := 0
		e := idem.New(nil, func(o *idem.Options) {
			o.Mode, o.Key = idem.ModeOff, key
			o.Hooks.Unprotected = func(context.Context, idem.Event) { told++ }
		})
		if err := errors.Join(e.AddOperation("Direct", "a"), e.AddOperation("Direct", "a"), e.CheckRoute("GET /{id}")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e.Acts("POST", http.Header{idem.KeyHeader: {"k"}}) || !e.Keeps(400) {
			t.Errorf("%s: it acts", name)
		}
		ticket := jobs.Ticket{PK: "v1##k"}
		_, status := e.Status(t.Context(), request)
		_, resume := e.Resume(t.Context(), ticket, nil)
		_, forget := e.Forget(t.Context(), ticket, "", idem.Loss{})
		for door, err := range map[string]error{
			"Status": status, "Resume": resume, "MarkStuck": e.MarkStuck(t.Context(), ticket, ""), "Forget": forget,
		} {
			if _, ours := errors.AsType[*idem.Error](err); !ours || !errors.Is(err, idem.ErrUnprotected) {
				t.Errorf("%s, %s: got %v, want ErrUnprotected", name, door, err)
			}
		}
		for _, key := range []string{"k", ""} {
			r := keyed(key)
			if key == "" {
				r.Header = nil
			}
			for door, send := range map[string]func() (idem.Result, error){
				"Do":    func() (idem.Result, error) { return e.Do(t.Context(), idem.Request{Key: key}, answers(400)) },
				"Serve": func() (idem.Result, error) { return e.Serve(t.Context(), r, answers(400)) },
				"Middleware": func() (idem.Result, error) {
					return idem.Result{Response: idem.Response{Status: ask(t, e.Middleware(http.HandlerFunc(
						func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) })), "POST", key, "").StatusCode}}, nil
				},
			} {
				told = 0
				if res, err := send(); err != nil || door == "Do" && !res.Passed || res.Status != 400 || (told == 1) != (key != "") {
					t.Errorf("%s, %s, key %q: got %+v, %v, told %d times", name, door, key, res, err, told)
				}
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
		synctest.Test(t, func(t *testing.T) {
			told, runs := 0, 0
			e := idem.New(&spoilt{Store: memory(), claim: failsWith(tt.err), load: unread}, func(o *idem.Options) {
				o.Mode, o.Hooks.Unprotected = idem.ModeOpen, func(context.Context, idem.Event) { told++ }
			})
			res, err := e.Serve(t.Context(), keyed("k"), keepsCount(&runs))
			if err != nil || (runs == 1) != tt.runs || (told == 1) != tt.runs || (res.Header.Get("Idempotency-Status") == "ignored") != tt.runs {
				t.Errorf("%s: got %d %v, %v after %d runs, told %d times; want it to run: %t", name, res.Status, res.Header, err, runs, told, tt.runs)
			}
		})
	}
}

// Once the store has shown a record, ModeOpen must not run its request: however it was shown,
// and whatever has happened to the record since, also if it can't be read.
func TestModeOpenNotOverARecord(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	later := func(o *idem.Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } }
	waits := func(o *idem.Options) { o.InFlight = idem.InFlightWait }
	type shown func(ctx context.Context, mem *idem.MemoryStore, n int) (*store.Record, error) // by the nth call
	held := func(_ context.Context, mem *idem.MemoryStore, _ int) (*store.Record, error) { return one(mem), nil }
	fails := func(err error) shown {
		return func(context.Context, *idem.MemoryStore, int) (*store.Record, error) { return nil, err }
	}
	first := func(then shown, after shown) shown {
		return func(ctx context.Context, mem *idem.MemoryStore, n int) (*store.Record, error) {
			if n == 1 {
				return then(ctx, mem, n)
			}
			return after(ctx, mem, n)
		}
	}
	gone := fails(nil)
	sealed := func(context.Context, *idem.MemoryStore, int) (*store.Record, error) {
		return &store.Record{}, store.ErrSealed
	}
	for name, tt := range map[string]struct {
		opt         func(*idem.Options)
		readFirst   bool
		claim, load shown
		commit      error
		want        error // nil: it runs
	}{
		"abandoned, and not to be taken over":       {later, false, held, held, down, idem.ErrUnavailable},
		"abandoned, by a look before the claim":     {later, true, fails(down), first(held, fails(down)), nil, idem.ErrUnavailable},
		"gone while it was waited for":              {waits, false, first(held, fails(down)), first(gone, fails(down)), nil, idem.ErrUnavailable},
		"given back while it was being taken over":  {later, false, first(held, fails(down)), first(gone, fails(down)), nil, idem.ErrUnavailable},
		"corrupt, after a claim without an answer":  {asIs, false, fails(store.ErrUnknown), fails(store.ErrCorrupt), nil, idem.ErrCorrupt},
		"sealed, after a refused claim":             {asIs, false, fails(errors.Join(store.ErrUnknown, store.ErrSealed)), fails(store.ErrSealed), nil, idem.ErrUnavailable},
		"sealed, and then the store is down":        {asIs, false, fails(errors.Join(store.ErrUnknown, store.ErrSealed)), fails(down), nil, idem.ErrUnavailable},
		"corrupt, by a look before the claim":       {asIs, true, fails(down), first(fails(store.ErrCorrupt), fails(down)), nil, idem.ErrUnavailable},
		"sealed, by a look before the claim":        {asIs, true, fails(down), first(sealed, fails(down)), nil, idem.ErrUnavailable},
		"nothing was shown: the look itself failed": {asIs, true, fails(down), fails(down), nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem, runs := new(idem.MemoryStore), 0
			dying := idemtest.Faulty(mem, nil)
			_, _ = idem.New(dying).Do(t.Context(), request, func(context.Context) (idem.Response, error) { dying.Crash(); return idem.Response{}, nil })
			claims, loads := 0, 0
			e := idem.New(&spoilt{
				Store: mem,
				claim: func(ctx context.Context, _ store.Claim) (*store.Record, error) {
					claims++
					return tt.claim(ctx, mem, claims)
				},
				load:   func(ctx context.Context, _ string) (*store.Record, error) { loads++; return tt.load(ctx, mem, loads) },
				commit: func(context.Context, store.Commit) (*store.Record, error) { return &store.Record{}, tt.commit }, // gone
			}, tt.opt, func(o *idem.Options) { o.Mode = idem.ModeOpen })
			r := request
			r.ReadFirst = tt.readFirst
			if _, err := e.Do(t.Context(), r, keepsCount(&runs)); !errors.Is(err, tt.want) || (runs == 1) != (tt.want == nil) {
				t.Errorf("%s: got %v after %d runs, want %v", name, err, runs, tt.want)
			}
		})
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

// Every request runs, and what it would have got is told.
func TestObserveExecutesAndTells(t *testing.T) {
	t.Parallel()
	var o observed
	e, runs := o.engine(&o.mem, callertest.Anybody), 0
	serve := func(key, body string, want error, inside ...func()) {
		t.Helper()
		r := keyed(key)
		r.Body = []byte(body)
		if key == "" {
			r.Header = nil
		}
		o.told = nil
		res, err := e.Serve(context.WithoutCancel(t.Context()), r, func(context.Context) (idem.Response, error) {
			runs++
			for _, fn := range inside {
				fn()
			}
			return idem.Response{Status: 201, Body: []byte(body)}, nil
		})
		if err != nil || res.Passed != (key == "") || res.Status != 201 || string(res.Body) != body || (res.Header.Get("Idempotency-Status") == "ignored") != (key != "") {
			t.Errorf("key %q: got %+v, %v, want the handler's answer", key, res, err)
		}
		if heard := errors.Join(o.told...); !errors.Is(heard, want) || (heard == nil) != (want == nil) {
			t.Errorf("key %q: told %v, want %v", key, o.told, want)
		}
	}
	serve("k", "a", idem.ErrInFlight, func() { serve("k", "a", idem.ErrInFlight) }) // told of the inner one
	serve("k", "a", idem.ErrReplay)
	serve("k", "b", idem.ErrMismatch)
	serve("", "c", idem.ErrKeyMissing)
	serve("no spaces", "d", idem.ErrKeyInvalid)
	if runs != 6 {
		t.Errorf("%d runs, want 6", runs)
	}
	optional := o.engine(&o.mem, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyOptional })
	o.told = nil
	if _, err := optional.Serve(t.Context(), idem.Request{Method: "POST"}, answers(201)); err != nil || !errors.Is(errors.Join(o.told...), idem.ErrKeyMissing) {
		t.Errorf("an optional key: %v, told %v, want ErrKeyMissing", err, o.told)
	}
}

// An engine that observes doesn't wait for another attempt's answer.
func TestObserveNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o observed
		e := o.engine(&o.mem, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
		begun := time.Now()
		_, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) {
			res, err := e.Serve(t.Context(), keyed("k"), answers(201))
			if err != nil || res.Status != 201 {
				t.Errorf("got %+v, %v, want the handler's answer", res, err)
			}
			return idem.Response{Status: 201}, nil
		})
		if waited := time.Since(begun); err != nil || waited != 0 {
			t.Errorf("got %v after %v, want no error at once", err, waited)
		}
	})
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
		res, err := o.engine(&o.mem, tt.opt).Do(ctx, tt.r, keepsCount(&runs))
		if err != nil || res.Status != 201 || runs != 1 || len(o.told) != 1 || !errors.Is(o.told[0], tt.want) || len(o.mem.Records()) != 0 {
			t.Errorf("%s: got %+v, %v after %d runs, told %v, want %v; %d records", name, res, err, runs, o.told, tt.want, len(o.mem.Records()))
		}
	}
}

// An observed answer is remembered if it would have been stored: so the next request hears that
// it would have been replayed, or nothing.
func TestObserveRemembersAnswers(t *testing.T) {
	t.Parallel()
	only200 := func(o *idem.Options) { o.Stored = func(r idem.Response) bool { return r.Status == 200 } }
	all := func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }
	conflict := func(v string) idemtest.Plan { return idemtest.At(v, 1, idemtest.Fault{Err: idem.ErrConflict}) }
	for name, tt := range map[string]struct {
		opt   func(*idem.Options)
		plan  idemtest.Plan
		fn    handler
		stays bool
	}{
		"an answer":                   {asIs, nil, answers(201), true},
		"an answer without a status":  {only200, nil, answers(0), true},
		"an answer that isn't stored": {asIs, nil, answers(409), false},
		"a definitive answer": {asIs, nil, func(context.Context) (idem.Response, error) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 409})
		}, true},
		"no answer":                        {all, nil, func(context.Context) (idem.Response, error) { return idem.Response{}, errDown }, false},
		"an answer that can't be sent":     {all, nil, answers(1000), false},
		"an answer, its claim conflicts":   {asIs, conflict("Claim"), answers(201), true},
		"an answer, its storing conflicts": {asIs, conflict("Commit"), answers(201), true},
	} {
		var o observed
		_, _ = o.engine(idemtest.Faulty(&o.mem, tt.plan), tt.opt).Do(t.Context(), request, tt.fn)
		if o.told != nil {
			t.Errorf("%s: the first request is told %v, want nothing", name, o.told)
		}
		_, _ = o.engine(&o.mem, tt.opt).Do(t.Context(), request, tt.fn)
		if stays := len(o.told) == 1 && errors.Is(o.told[0], idem.ErrReplay); stays != tt.stays || !stays && o.told != nil {
			t.Errorf("%s: the second request is told %v; want the first one's answer to stay: %t", name, o.told, tt.stays)
		}
	}
}

// What an observed handler answers reaches its client as it is; the record has what a replay
// may have.
func TestObserveStoresACleanAnswer(t *testing.T) {
	t.Parallel()
	var o observed
	header := http.Header{"Location": {"/1"}, "X-Split": {"a\nb"}}
	splits := func(o *idem.Options) { o.StoreHeaders = []string{"X-Split"} }
	res, err := o.engine(&o.mem, splits).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{Header: header}, nil })
	if diff := cmp.Diff(header, res.Header); diff != "" || err != nil || res.Status != 0 {
		t.Errorf("got %+v, %v (-want +got):\n%s", res, err, diff)
	}
	if got := one(&o.mem).Response; got.Status != 200 || len(got.Header) != 1 || got.Header.Get("Location") != "/1" {
		t.Errorf("the record has %+v, want 200 and the location", got)
	}
}

// A wrapper in a wrapper observes a request once, and a key in quotes may have a space.
func TestObserveInsideAndSpaces(t *testing.T) {
	t.Parallel()
	var o observed
	e, runs := o.engine(&o.mem), 0
	r := keyed(`"with a space"`)
	res, err := e.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, r, keepsCount(&runs))
		return res.Response, err
	})
	if err != nil || res.Status != 201 || runs != 1 || o.told != nil || len(o.mem.Records()) != 1 {
		t.Errorf("got %+v, %v after %d runs, told %v, %d records", res, err, runs, o.told, len(o.mem.Records()))
	}
}

// An observed retry continues an abandoned operation, and its handler learns that.
func TestObserveContinues(t *testing.T) {
	t.Parallel()
	var o observed
	clock := idemtest.NewClock()
	for i := range 2 {
		st := idemtest.Faulty(&o.mem, nil)
		_, err := o.engine(st, func(o *idem.Options) { o.Now = clock.Now }).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			if op, _ := idem.FromContext(ctx); op.TakenOver() != (i == 1) {
				t.Errorf("attempt %d: resumed: %t", i, op.TakenOver())
			}
			st.Crash()
			return idem.Response{Status: 201}, nil
		})
		if err != nil || o.told != nil {
			t.Errorf("attempt %d: %v, told %v, want nothing", i, err, o.told)
		}
		clock.Advance(storetest.LeaseOver)
	}
}

// A failure of the store while observing fails no request, and takes little of its time. The
// client learns that its key was ignored.
func TestObserveSurvivesItsStore(t *testing.T) {
	t.Parallel()
	hangs := idemtest.Faulty(new(idem.MemoryStore), func(ctx context.Context, _ idemtest.Call) idemtest.Fault {
		<-ctx.Done()
		return idemtest.Fault{Err: ctx.Err()}
	})
	boom := errors.New("handler's own")
	for name, st := range map[string]store.Store{"down": downStore{}, "fine": new(idem.MemoryStore), "hangs": hangs} {
		for end, want := range map[error]int{boom: 0, idem.Respond(idem.Response{Status: 402}): 402, nil: 201} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				begun, waited := time.Now(), time.Duration(0)
				e := idem.New(st, func(o *idem.Options) { o.Mode = idem.ModeObserve })
				res, err := e.Serve(ctx, keyed(fmt.Sprint("k", want)), func(context.Context) (idem.Response, error) {
					waited = time.Since(begun)
					return idem.Response{Status: 201}, end
				})
				if res.Status != want || errors.Is(err, boom) != (want == 0) || err == nil && res.Header.Get("Idempotency-Status") != "ignored" {
					t.Errorf("%s: got %+v, %v, want %d", name, res, err, want)
				}
				if total := time.Since(begun); waited > 2500*time.Millisecond || total > 5*time.Second {
					t.Errorf("%s: the handler began after %v, the answer came after %v", name, waited, total)
				}
			})
		}
	}
}

// An observed request reaches its handler as it was sent, with its time and, without a key, all
// features of the server.
func TestObservedRequestsAreUntouched(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		key  string
		body string
		send func(*http.Request)
		told error
	}{
		"a small body":          {asIs, "k", "charge 5", func(*http.Request) {}, nil},
		"a large body":          {asIs, "k", "a body over the limit", func(*http.Request) {}, idem.ErrTooLarge},
		"the same, without key": {asIs, "", "a body over the limit", func(*http.Request) {}, idem.ErrKeyMissing},
		"of unknown length": {func(o *idem.Options) { o.MaxRequest = math.MaxInt64 }, "k", "charge 5", func(r *http.Request) {
			r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader("charge 5"))
		}, nil},
		"a form, parsed before": {asIs, "k", "", func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Body = io.NopCloser(strings.NewReader("a=b"))
			_ = r.ParseForm()
		}, idem.ErrRequest},
		"a key in a form": {func(o *idem.Options) { o.KeyFrom = idem.FormKey("key") }, "", "key=k&a=1", func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var o observed
			ran := false
			short := func(o *idem.Options) { o.Lease, o.MaxRequest = 700*time.Millisecond, 10 }
			h := o.engine(&o.mem, callertest.Anybody, short, tt.opt).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ran = true
				if err := http.NewResponseController(w).Flush(); tt.key == "" && tt.told != nil && err != nil {
					t.Errorf("%s: Flush: %v", name, err)
				}
				if b, err := io.ReadAll(r.Body); err != nil || string(b) != tt.body {
					t.Errorf("%s: the handler got %q, %v, want %q", name, b, err, tt.body)
				}
				select {
				case <-r.Context().Done():
					t.Errorf("%s: the handler was cancelled: %v", name, r.Context().Err())
				case <-time.After(600 * time.Millisecond):
				}
			}))
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/pay", strings.NewReader(tt.body))
			if tt.key != "" {
				r.Header.Set(idem.KeyHeader, tt.key)
			}
			tt.send(r)
			h.ServeHTTP(httptest.NewRecorder(), r)
			if heard := errors.Join(o.told...); !ran || !errors.Is(heard, tt.told) || (heard == nil) != (tt.told == nil) {
				t.Errorf("%s: ran %t, told %v, want %v", name, ran, o.told, tt.told)
			}
		})
	}
}

// What isn't protected says so, and passes untouched.
func TestIgnoredKeysAreMarked(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.MaxRequest = 10 })
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	small := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Mode, o.MaxRequest = idem.ModeObserve, 3 })
	for name, tt := range map[string]struct {
		e                 *idem.Engine
		method, key, body string
		want              string
		flushes           bool
	}{
		"GET with a key":           {e, "GET", "k", "", "ignored", true},
		"GET without a key":        {e, "GET", "", "", "", true},
		"PUT, too large":           {e, "PUT", "k", "more than ten", "ignored", true},
		"POST":                     {e, "POST", "k", "", "", false},
		"POST, disabled":           {off, "POST", "k", "", "ignored", true},
		"POST, watched, too large": {small, "POST", "k", "larger", "ignored", false},
	} {
		var flushes error
		r := ask(t, tt.e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			flushes = http.NewResponseController(w).Flush()
		})), tt.method, tt.key, tt.body)
		if got := r.Header.Get("Idempotency-Status"); r.StatusCode != 200 || got != tt.want || tt.flushes && flushes != nil {
			t.Errorf("%s: got %d, Idempotency-Status %q, Flush %v; want %q", name, r.StatusCode, got, flushes, tt.want)
		}
	}
}
