package idem_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/meter"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestJoinCallsEachHookOfAll(t *testing.T) {
	t.Parallel()
	var first, second []string
	var ended []idem.Summary
	joined := reflect.ValueOf(idem.Join(listening(&first, &ended), idem.Hooks{}, listening(&second, &ended)))
	for i := range joined.NumField() {
		name := joined.Type().Field(i).Name
		ev := reflect.New(joined.Field(i).Type().In(1)).Elem()
		if named := ev.FieldByName("Name"); named.IsValid() {
			named.SetString(name)
		}
		joined.Field(i).Call([]reflect.Value{reflect.ValueOf(t.Context()), ev})
		for _, told := range [][]string{first, second} {
			if want := []string{name}; !slices.Equal(told, want) {
				t.Errorf("%s told %q, want %q", name, told, want)
			}
		}
		first, second = nil, nil
	}
	none := reflect.ValueOf(idem.Join(idem.Hooks{}, idem.Hooks{}))
	for i := range none.NumField() {
		if !none.Field(i).IsNil() {
			t.Errorf("%s of no hooks is not nil", none.Type().Field(i).Name)
		}
	}
}

// Each request ends with its summary, which has the events that the other hooks were
// told of.
func TestSummaryOfARequest(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	ok := func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }
	request := func(key, body string) idem.Request {
		return idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/orders", Route: "POST /orders", Key: key, Body: []byte(body)}
	}
	for name, tt := range map[string]struct {
		before  func(*testing.T, *idem.Engine, *idemtest.FaultyStore)
		request idem.Request
		fn      func(context.Context) (idem.Response, error)
		want    []string
		err     error
		status  int
	}{
		"new":           {nil, request("k", "1"), ok, []string{"Claimed", "Finished"}, nil, 201},
		"a failing try": {nil, request("k", "1"), func(context.Context) (idem.Response, error) { return idem.Response{}, down }, []string{"Claimed", "Released"}, down, 0},
		"a bad key":     {nil, request("k \x00", "1"), ok, []string{"Refused"}, idem.ErrKeyInvalid, 0},
		"no key":        {nil, request("", "1"), ok, []string{"Refused"}, idem.ErrKeyMissing, 0},
		"a failing store": {func(_ *testing.T, _ *idem.Engine, f *idemtest.FaultyStore) {
			f.Reset(idemtest.At("Claim", 0, idemtest.Fault{Err: down}))
		}, request("k", "1"), ok, []string{"Failed"}, down, 0},
		"a replay":   {first(ok), request("k", "1"), ok, []string{"Replayed"}, nil, 201},
		"a mismatch": {first(ok), request("k", "2"), ok, []string{"Mismatch"}, idem.ErrMismatch, 0},
		"unstored": {func(_ *testing.T, _ *idem.Engine, f *idemtest.FaultyStore) {
			f.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == "Commit" {
					return idemtest.Fault{Err: down}
				}
				return idemtest.Fault{}
			})
		}, request("k", "1"), ok, []string{"Claimed", "Failed", "Unstored"}, nil, 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []string
			var ended []idem.Summary
			faulty := idemtest.Faulty(&idem.MemoryStore{}, nil)
			engine := idem.New(faulty, callertest.Anybody, func(o *idem.Options) { o.Hooks = listening(&told, &ended) })
			if tt.before != nil {
				tt.before(t, engine, faulty)
			}
			told, ended = nil, nil
			_, err := engine.Do(t.Context(), tt.request, tt.fn)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if want := append(slices.Clone(tt.want), "Ended"); !slices.Equal(told, want) || len(ended) != 1 {
				t.Fatalf("told %q with %d summaries, want %q", told, len(ended), want)
			}
			s := ended[0]
			if diff := cmp.Diff(tt.want, names(s)); diff != "" {
				t.Errorf("happened (-want +got):\n%s", diff)
			}
			claimed := slices.Contains(tt.want, "Claimed") || slices.Contains(tt.want, "Replayed")
			if !errors.Is(s.Err, tt.err) || s.Status != tt.status || s.Route != "POST /orders" || s.Duration <= 0 || s.Begun.IsZero() || s.Resumed || (s.ID != "") != (claimed || name == "a mismatch") {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

func first(fn func(context.Context) (idem.Response, error)) func(*testing.T, *idem.Engine, *idemtest.FaultyStore) {
	return func(t *testing.T, e *idem.Engine, _ *idemtest.FaultyStore) {
		t.Helper()
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/orders", Route: "POST /orders", Key: "k", Body: []byte("1")}
		if _, err := e.Do(t.Context(), r, fn); err != nil {
			t.Fatal(err)
		}
	}
}

// A panic ends the request, too, and nobody is told twice of a request within
// another wrapper of the same key.
func TestSummaryOfAPanicAndOfANestedRequest(t *testing.T) {
	t.Parallel()
	var told []string
	var ended []idem.Summary
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Hooks = listening(&told, &ended) })
	r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Route: "r", Key: "k"}
	func() {
		defer func() { _ = recover() }()
		_, _ = engine.Do(t.Context(), r, func(context.Context) (idem.Response, error) { panic("broken") })
	}()
	if want := []string{"Claimed", "Released", "Ended"}; !slices.Equal(told, want) || ended[0].Err == nil {
		t.Errorf("told %q, want %q; summary %+v", told, want, ended)
	}
	told, ended = nil, nil
	_, err := engine.Do(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		res, err := engine.Do(ctx, r, func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil })
		return res.Response, err
	})
	if want := []string{"Claimed", "Finished", "Ended"}; err != nil || !slices.Equal(told, want) {
		t.Errorf("told %q, want %q; error %v", told, want, err)
	}
}

// Every stored phase is told once, with its duration and the jobs of its commit.
func TestCommittedTellsEveryStoredPhase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pause = 3 * time.Second
		var told []idem.Event
		var ended []idem.Summary
		engine := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.Hooks.Committed = func(_ context.Context, ev idem.Event) { told = append(told, ev) }
			o.Hooks.Ended = func(_ context.Context, s idem.Summary) { ended = append(ended, s) }
		})
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Route: "r", Key: "k"}
		job := idem.NewJob("receipt", 1)
		_, err := engine.Do(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
			_, err1 := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) {
				time.Sleep(pause) //nolint:forbidigo // virtual
				return 1, nil
			})
			_, err2 := idem.Atomic(ctx, "note", func(context.Context, *idem.Tx) (int, error) { return 2, nil })
			_, err3 := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(job)
				return 3, nil
			})
			_, err4 := idem.Foreign(ctx, "email", func(context.Context, *idem.Tx) (int, error) { return 4, nil })
			_, err5 := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Stage(job)
				tx.Stage(job)
				return idem.Response{Status: 200}, nil
			})
			return idem.Response{}, errors.Join(err1, err2, err3, err4, err5)
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ev := range told {
			got = append(got, ev.Phase)
			if ev.ID == "" || ev.Duration != map[string]time.Duration{"charge": pause}[ev.Phase] || ev.Jobs != map[string]int{"book": 1}[ev.Phase] {
				t.Errorf("told %+v", ev)
			}
		}
		if want := []string{"charge", "note", "book", "email"}; !slices.Equal(got, want) {
			t.Errorf("committed %q, want %q", got, want)
		}
		last := ended[0].Happened[len(ended[0].Happened)-1]
		if last.Name != "Finished" || last.Jobs != 2 {
			t.Errorf("last %+v", last)
		}
	})
}

// A completer's try ends with a summary of its own.
func TestSummaryOfACompletersTry(t *testing.T) {
	t.Parallel()
	var told []string
	var ended []idem.Summary
	mem := &idem.MemoryStore{}
	now := time.Now()
	engine := idem.New(mem, callertest.Anybody, func(o *idem.Options) {
		o.Resumable, o.Function, o.Now = true, "f", func() time.Time { return now }
		o.Hooks = listening(&told, &ended)
	})
	r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/", Route: "r", Key: "k"}
	_, _ = engine.Do(t.Context(), r, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") })
	var rec *store.Record
	for _, rec = range mem.Records() {
	}
	told, ended = nil, nil
	if _, err := engine.Resume(t.Context(), state.TicketFor(rec), func(context.Context, *idem.Request) (idem.Response, error) {
		return idem.Response{Status: 200}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"TakenOver", "Finished", "Ended"}; !slices.Equal(told, want) {
		t.Fatalf("told %q, want %q", told, want)
	}
	for _, ev := range ended[0].Happened {
		if !ev.Resumed {
			t.Errorf("told of a client: %+v", ev)
		}
	}
	if s := ended[0]; !s.Resumed || s.ID != rec.ID || s.Route != "r" || s.Status != 200 {
		t.Errorf("summary %+v", s)
	}
}

// The meter sums the calls of its own request.
func TestMeterSums(t *testing.T) {
	t.Parallel()
	var outer, inner meter.Meter
	ctx := meter.With(t.Context(), &outer)
	meter.Of(ctx).Add(store.Call{WriteUnits: 2, Retries: 1})
	meter.Of(ctx).Add(store.Call{ReadUnits: 0.5, Fault: store.Throttled})
	meter.Of(meter.With(ctx, &inner)).Add(store.Call{Fault: store.Unknown})
	meter.Of(t.Context()).Add(store.Call{}) // nobody asks
	want := store.Cost{Calls: 2, Retries: 1, WriteUnits: 2, ReadUnits: 0.5, Faults: map[store.Fault]int{store.Throttled: 1}}
	if diff := cmp.Diff(want, outer.Cost()); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
	if got := inner.Cost(); got.Calls != 1 || got.Faults[store.Unknown] != 1 {
		t.Errorf("the inner request's cost is %+v", got)
	}
}

// Who is told of a request in flight is told how long it may still be.
func TestEventTellsTheRestOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got idem.Event
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.Lease, o.Hooks.InFlight = time.Minute, func(_ context.Context, ev idem.Event) { got = ev }
		})
		go func() { _, _ = e.Serve(t.Context(), keyed("k"), slow(10*time.Second, new(atomic.Int64))) }()
		<-time.After(4 * time.Second)
		if res, err := e.Serve(t.Context(), keyed("k"), slow(0, new(atomic.Int64))); err != nil || res.Status != http.StatusConflict {
			t.Errorf("%d, %v", res.Status, err)
		}
		if got.Lease < 55*time.Second || got.Lease > time.Minute || got.Record == "" || got.ID == "" {
			t.Errorf("told of %+v", got)
		}
		<-time.After(time.Minute)
	})
}

// The level of a request's line says whether people have to act.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	levels := map[slog.Level][]string{
		slog.LevelError: {"Stuck", "Blocked", "Unstored", "Failed", "Unprotected"},
		slog.LevelWarn:  {"TakenOver", "Mismatch", "Limited", "LeaseLost", "Refused", "Released"},
		slog.LevelInfo:  {"Claimed", "Committed", "Finished", "Replayed", "InFlight", "Observed"},
	}
	for level, events := range levels {
		for _, name := range events {
			var log bytes.Buffer
			h := idem.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})))
			s := idem.Summary{Happened: []idem.Event{{Name: "Claimed", Jobs: 1}, {Name: name, Jobs: 2}}}
			h.Ended(t.Context(), s)
			if got := log.String(); !strings.Contains(got, "level="+level.String()) || !strings.Contains(got, `events="Claimed `+name+`"`) || !strings.Contains(got, "jobs=3") || !strings.Contains(got, `error=""`) {
				t.Errorf("%s: %s", name, got)
			}
			log.Reset()
			above := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level + 1}))
			if idem.Log(above).Ended(t.Context(), s); log.Len() != 0 {
				t.Errorf("%s is logged above its level: %s", name, &log)
			}
		}
	}
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		var log bytes.Buffer
		idem.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))).Claimed(t.Context(), idem.Event{Name: "Claimed", Err: errors.New("down")})
		if got := strings.Contains(log.String(), "event=Claimed") && strings.Contains(log.String(), "error=down"); got != want {
			t.Errorf("%v: %q", level, &log)
		}
	}
	idem.Log(nil).Claimed(t.Context(), idem.Event{}) // slog.Default()
}

// Each refusal has its hook.
func TestHooksOfRefusals(t *testing.T) {
	t.Parallel()
	down := &spoilt{Store: &idem.MemoryStore{}, claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, errors.New("down") }}
	for name, tc := range map[string]struct {
		store store.Store
		opt   func(*idem.Options)
		left  time.Duration
		want  []string
	}{
		"no time":        {&idem.MemoryStore{}, func(*idem.Options) {}, time.Millisecond, []string{"Refused", "Ended"}},
		"over the quota": {&idem.MemoryStore{}, (&gate{wait: 1}).set, time.Minute, []string{"Limited", "Ended"}},
		"failed open":    {down, func(o *idem.Options) { o.Mode = idem.ModeOpen }, time.Minute, []string{"Unprotected", "Ended"}},
		"in flight":      {&idem.MemoryStore{}, func(*idem.Options) {}, time.Minute, []string{"Claimed", "InFlight", "Ended", "Finished", "Ended"}},
		"too large":      {&idem.MemoryStore{}, func(o *idem.Options) { o.Resumable, o.Function, o.MaxRequest = true, "f", 1 }, time.Minute, []string{"Refused", "Ended"}},
		"its data can't be compared": {&idem.MemoryStore{}, func(o *idem.Options) {
			o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, errors.New("down") }, "f"
			o.Fingerprint.Known = []idem.Fingerprint{{}}
		}, time.Minute, []string{"Refused", "Ended"}},
	} {
		var told []string
		var ended []idem.Summary
		e := idem.New(tc.store, callertest.Anybody, tc.opt, func(o *idem.Options) { o.Hooks = listening(&told, &ended) })
		ctx, cancel := context.WithTimeout(t.Context(), tc.left)
		_, err := e.Do(ctx, request, func(ctx context.Context) (idem.Response, error) {
			if name == "in flight" {
				_, _ = e.Do(t.Context(), request, never(t))
			}
			return answers(201)(ctx)
		})
		cancel()
		if ran := name == "failed open" || name == "in flight"; !slices.Equal(told, tc.want) || ran != (err == nil) {
			t.Errorf("%s: told %q, want %q; %v", name, told, tc.want, err)
		}
	}
}

// Whatever record answers a request, the hook of that answer hears of it.
func TestHookOfEveryRecordInTheWay(t *testing.T) {
	t.Parallel()
	for meeting, want := range map[string]string{
		"done": "Replayed false", "of another request": "Mismatch true", "withheld": "Refused true",
		"stuck": "Refused true", "in flight": "InFlight true",
	} {
		m := meets(t, "plain", meeting)
		if b := m.sends(t, ordered("{}")); !slices.Equal(b.Told, []string{want}) {
			t.Errorf("%s: told %q, want %q", meeting, b.Told, want)
		}
	}
}
