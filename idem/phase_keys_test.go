package idem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// charging returns a handler whose only phase before the finish calls the
// provider. In the process that dies, crash ends the process during the call.
func charging(name string, charge func(key string), opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		id, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (string, error) {
			key := tx.Key("payments")
			charge(key)
			return key, nil
		}, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte(id)}, nil
		})
	}
}

// A deploy that renames a phase must not change the key of a call that may have
// been made.
func TestRenamedForeignKeepsItsKey(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	opt := func(o *idem.Options) { o.Now = clock.Now }
	var w outside
	store := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(store, callertest.Anybody, opt), charging("charge", func(key string) { w.charge(key); store.Crash() }))
	clock.Advance(time.Hour)
	res, err := do(t, idem.New(&mem, callertest.Anybody, opt), charging("payment", w.charge))
	if err != nil || res.Status != 201 {
		t.Fatalf("%+v, %v", res, err)
	}
	if keys := w.charged(); len(keys) != 1 || len(w.calls) != 2 {
		t.Errorf("the provider was called with %v, want one key twice", keys)
	}
}

// A key that the provider may have forgotten would begin a new call.
func TestKeyThatTheProviderMayHaveForgottenIsNotSent(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	opt := func(o *idem.Options) { o.Now = clock.Now }
	var w outside
	store := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(store, callertest.Anybody, opt, func(o *idem.Options) { o.Function, o.Resumable = "f", true }), charging("charge", func(key string) { w.charge(key); store.Crash() }))
	clock.Advance(25 * time.Hour)
	_, err := do(t, idem.New(&mem, callertest.Anybody, opt), charging("charge", w.charge))
	if !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1 {
		t.Errorf("got %v after %d calls, want ErrStuck after one", err, len(w.calls))
	}
}

// Data stored with the begin of a call costs no extra write.
func TestCallsOfALeadingForeign(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		opts  []idem.PhaseOption
		calls int
	}{
		"claim first":             {opt: func(o *idem.Options) { o.CallsOut = true }, calls: 3},
		"claim first, undeclared": {opt: func(*idem.Options) {}, calls: 4}, // the record is kept before the call
		"not idempotent":          {opt: func(*idem.Options) {}, opts: []idem.PhaseOption{idem.NotIdempotent()}, calls: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := idemtest.Faulty(new(idem.MemoryStore), nil)
			_, err := do(t, idem.New(store, callertest.Anybody, tc.opt), func(ctx context.Context) (idem.Response, error) {
				return charging("charge", func(string) {}, tc.opts...)(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.calls, store.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// keysOf runs phases of a new operation. Each phase requests keys: "service" or
// "service/step". keysOf returns the keys in order, and the handler's error.
func keysOf(t *testing.T, e *idem.Engine, phases ...[]string) (keys []string, err error) {
	t.Helper()
	_, err = do(t, e, answering(func(ctx context.Context) error {
		for i, asks := range phases {
			_, err := idem.Foreign(ctx, fmt.Sprint("phase", i), func(_ context.Context, tx *idem.Tx) (int, error) {
				for _, ask := range asks {
					service, step, named := strings.Cut(ask, "/")
					if named {
						keys = append(keys, tx.Key(service, step))
					} else {
						keys = append(keys, tx.Key(service))
					}
				}
				return i, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return keys, err
}

func TestReusedKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		phases  [][]string
		refused bool
	}{
		"without a step in one phase":           {[][]string{{"pay", "pay"}}, true},
		"without a step in two phases":          {[][]string{{"pay"}, {"pay"}}, false},
		"one step in one phase":                 {[][]string{{"pay/a", "pay/a"}}, true},
		"one step in two phases":                {[][]string{{"pay/a"}, {"pay/a"}}, true},
		"two steps in one phase":                {[][]string{{"pay/a", "pay/b"}}, false},
		"one step of two services":              {[][]string{{"pay/a", "mail/a"}, {"fax/a"}}, false},
		"a step after a call without one":       {[][]string{{"pay", "pay/a"}, {"pay/b", "pay"}}, false},
		"two services without a step, repeated": {[][]string{{"pay", "mail"}, {"mail", "pay"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, err := keysOf(t, idem.New(new(idem.MemoryStore), callertest.Anybody), tc.phases...)
			different := len(slices.Compact(slices.Sorted(slices.Values(keys))))
			if refused := errors.Is(err, idem.ErrKeyReused); refused != tc.refused || !refused && err != nil {
				t.Errorf("got %v", err)
			}
			if tc.refused && different != 1 || !tc.refused && different != len(keys) {
				t.Errorf("%d different keys of %d", different, len(keys))
			}
		})
	}
}

// A resumed run doesn't repeat recorded phases and continues their counts, also
// after a process died.
func TestResumedRunGoesOnCounting(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	opt := func(o *idem.Options) { o.Now = clock.Now }
	tips := make(map[string]int)
	handler := func(charges *outside, tip func(key string)) func(context.Context) (idem.Response, error) {
		return answering(func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
				charges.charge(tx.Key("payments"))
				charges.charge(tx.Key("payments", "fee"))
				return 1, nil
			})
			if err != nil {
				return err
			}
			_, err = idem.Foreign(ctx, "tip", func(_ context.Context, tx *idem.Tx) (int, error) {
				key := tx.Key("payments")
				tips[key]++
				tip(key)
				return 1, nil
			})
			return err
		})
	}
	var w outside
	store := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(store, callertest.Anybody, opt), handler(&w, func(string) { store.Crash() }))
	clock.Advance(time.Hour)
	if _, err := do(t, idem.New(&mem, callertest.Anybody, opt), handler(&w, func(string) {})); err != nil {
		t.Fatal(err)
	}
	if len(tips) != 1 || len(w.calls) != 2 || len(w.charged()) != 2 {
		t.Errorf("tips %v, charges %v", tips, w.calls)
	}
	for key := range tips {
		if w.charged()[key] > 0 {
			t.Error("the tip has the key of the charge")
		}
	}
}

// memoryOf lets a process die in a call, and resumes the operation after age.
func memoryOf(t *testing.T, age time.Duration, again func(*idem.Engine, *outside) error) (*idem.MemoryStore, *idemtest.Clock, *outside, error) {
	t.Helper()
	var w outside
	mem, clock := new(idem.MemoryStore), idemtest.NewClock()
	opt := func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", clock.Now, true }
	store := idemtest.Faulty(mem, nil)
	_, _ = do(t, idem.New(store, callertest.Anybody, opt), charging("charge", func(key string) { w.charge(key); store.Crash() }))
	clock.Advance(age)
	err := again(idem.New(mem, callertest.Anybody, opt), &w)
	return mem, clock, &w, err
}

// The age of a call counts from the first attempt that may have made the call,
// however many attempts and inserted phases follow.
func TestForHowLongACallIsRepeated(t *testing.T) {
	t.Parallel()
	retry := func(opts ...idem.PhaseOption) func(*testing.T, *idem.Engine, *outside) error {
		return func(t *testing.T, e *idem.Engine, w *outside) error {
			t.Helper()
			_, err := do(t, e, charging("charge", w.charge, opts...))
			return err
		}
	}
	for name, tc := range map[string]struct {
		age   time.Duration
		opts  []idem.PhaseOption
		stuck bool
	}{
		"just remembered":                 {23*time.Hour - time.Second, nil, false},
		"less than an hour is left":       {23 * time.Hour, nil, true},
		"a long memory":                   {1000 * time.Hour, []idem.PhaseOption{idem.Remembers(1002 * time.Hour)}, false},
		"a short memory":                  {44 * time.Minute, []idem.PhaseOption{idem.Remembers(time.Hour)}, false},
		"a short memory, a quarter left":  {45 * time.Minute, []idem.PhaseOption{idem.Remembers(time.Hour)}, true},
		"no memory":                       {30 * time.Minute, []idem.PhaseOption{idem.Remembers(0)}, true},
		"of a system without keys by now": {25 * time.Hour, []idem.PhaseOption{idem.NotIdempotent()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem, _, w, err := memoryOf(t, tc.age, func(e *idem.Engine, w *outside) error { return retry(tc.opts...)(t, e, w) })
			calls := 2
			if tc.stuck {
				calls = 1
			}
			if errors.Is(err, idem.ErrStuck) != tc.stuck || !tc.stuck && err != nil || len(w.calls) != calls {
				t.Fatalf("%v after %d calls", err, len(w.calls))
			}
			if r := one(mem); tc.stuck && (r.State != store.Stuck || !strings.Contains(r.LastErr, `phase "charge"`)) {
				t.Errorf("%s: %s", r.State, r.LastErr)
			}
		})
	}
	t.Run("no memory, by a clock that is behind", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		clock := idemtest.NewClock()
		calls := 0
		run := func(now func() time.Time) error {
			_, err := do(t, idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Now = now }), func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { calls++; return 0, errors.New("down") }, idem.Remembers(0))
				return idem.Response{}, err
			})
			return err
		}
		_ = run(clock.Now)
		if err := run(func() time.Time { return clock.Now().Add(-time.Hour) }); !errors.Is(err, idem.ErrStuck) || calls != 1 {
			t.Errorf("got %v after %d calls, want %v after 1", err, calls, idem.ErrStuck)
		}
	})
	t.Run("another death and an inserted phase in between", func(t *testing.T) {
		t.Parallel()
		inserted := func(w *outside, then func() error) func(context.Context) (idem.Response, error) {
			return func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "new", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				if err := errors.Join(err, then()); err != nil {
					return idem.Response{}, err
				}
				return charging("charge", w.charge)(ctx)
			}
		}
		mem, clock, w, _ := memoryOf(t, 22*time.Hour, func(*idem.Engine, *outside) error { return nil })
		opt := func(o *idem.Options) { o.Now = clock.Now }
		st := idemtest.Faulty(mem, nil)
		_, _ = do(t, idem.New(st, callertest.Anybody, opt), inserted(w, func() error { st.Crash(); return errors.New("died") }))
		if r := one(mem); len(r.Phases) != 1 {
			t.Fatalf("phases %v", r.Phases)
		}
		clock.Advance(2 * time.Hour)
		_, err := do(t, idem.New(mem, callertest.Anybody, opt), inserted(w, func() error { return nil }))
		if !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1 {
			t.Errorf("%v after %d calls", err, len(w.calls))
		}
	})
	t.Run("nothing was called", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		clock := idemtest.NewClock()
		e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
		var w outside
		for i := range 2 {
			_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "first", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				if i == 0 {
					return idem.Response{}, errors.Join(err, errors.New("down"))
				}
				return charging("charge", w.charge)(ctx)
			})
			if (err == nil) != (i > 0) {
				t.Fatal(err)
			}
			clock.Advance(100 * time.Hour)
		}
		if len(w.calls) != 1 {
			t.Errorf("%d calls", len(w.calls))
		}
	})
	t.Run("what was called is known", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		clock := idemtest.NewClock()
		e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
		var w outside
		down := errors.New("down")
		for i := range 3 { // the charge fails and is repeated; the tip fails a day later, and is a separate call
			_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				for at, name := range []string{"charge", "tip"} {
					_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
						w.charge(tx.Key("payments"))
						if at == i {
							return 0, down
						}
						return 1, nil
					})
					if err != nil {
						return idem.Response{}, err
					}
				}
				return idem.Response{Status: 201}, nil
			})
			if errors.Is(err, down) != (i < 2) {
				t.Fatal(err)
			}
			clock.Advance(22 * time.Hour)
		}
		if n := w.charged(); len(n) != 2 || len(w.calls) != 4 {
			t.Errorf("calls %v", n)
		}
	})
}

// An operator's decisions about such a call, and how the operation continues.
func TestSettlingACallThatTheProviderMayHaveForgotten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settlement idem.Settlement
		refused    bool
		charges    int // number of calls in the end
		body       string
	}{
		"without a word":  {idem.Settlement{}, true, 1, ""},
		"its result":      {idem.Settlement{Result: []byte(`"ch_1"`)}, false, 1, "ch_1"},
		"not made":        {idem.Settlement{NotMade: true}, false, 2, ""},
		"at the own risk": {idem.Settlement{RiskTwice: true}, false, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem, clock, w, _ := memoryOf(t, 25*time.Hour, func(e *idem.Engine, w *outside) error {
				_, err := do(t, e, charging("charge", w.charge))
				return err
			})
			e := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
			err := e.Settle(t.Context(), one(mem).PK, tc.settlement)
			if errors.Is(err, idem.ErrResult) != tc.refused || !tc.refused && err != nil {
				t.Fatal(err)
			}
			clock.Advance(30 * time.Hour) // the new attempt has no call in doubt
			tips := make(map[string]bool)
			res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				id, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
					w.charge(tx.Key("payments"))
					return "", nil
				})
				if err != nil {
					return idem.Response{}, err
				}
				_, err = idem.Foreign(ctx, "tip", func(_ context.Context, tx *idem.Tx) (int, error) { tips[tx.Key("payments")] = true; return 1, nil })
				return idem.Response{Status: 201, Body: []byte(id)}, err
			})
			if tc.refused {
				if !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1 {
					t.Errorf("%v after %d calls", err, len(w.calls))
				}
				return
			}
			if err != nil || string(res.Body) != tc.body || len(w.calls) != tc.charges || len(w.charged()) != 1 {
				t.Errorf("%+v, %v, calls %v", res, err, w.calls)
			}
			if len(tips) != 1 || tips[w.calls[0]] {
				t.Error("the tip has the key of the charge")
			}
		})
	}
	t.Run("before it is stuck in the call", func(t *testing.T) {
		t.Parallel()
		for name, s := range map[string]idem.Settlement{"not made": {NotMade: true}, "at the own risk": {RiskTwice: true}} {
			mem, clock, w, _ := memoryOf(t, 25*time.Hour, func(*idem.Engine, *outside) error { return nil })
			e := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
			if err := e.MarkStuck(t.Context(), jobs.TicketFor(one(mem)), "nobody came"); err != nil {
				t.Fatal(err)
			}
			if err := e.Settle(t.Context(), one(mem).PK, s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := do(t, e, charging("charge", w.charge)); err != nil || len(w.calls) != 2 {
				t.Errorf("%s: %v after %d calls", name, err, len(w.calls))
			}
		}
	})
}

// A phase learns whether its calls may have been made before.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	opt := func(o *idem.Options) { o.Now = clock.Now }
	var got []bool
	call := func(after func() error) func(context.Context) (idem.Response, error) {
		return answering(func(ctx context.Context) error {
			for _, name := range []string{"charge", "tip"} {
				_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
					tx.Key("payments")
					got = append(got, tx.Repeats())
					if name == "tip" {
						return 1, after()
					}
					return 1, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	nothing := func() error { return nil }
	_, _ = do(t, idem.New(&mem, callertest.Anybody, opt), call(func() error { return errors.New("no answer") })) // two first calls; the second call fails
	died := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(died, callertest.Anybody, opt), call(func() error { died.Crash(); return nil })) // a repeated call
	clock.Advance(time.Hour)
	if _, err := do(t, idem.New(&mem, callertest.Anybody, opt), call(nothing)); err != nil { // once more
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{false, false, true, true}, got); diff != "" {
		t.Error(diff)
	}
}

// A phase whose result has another type now gets all stored data or an error:
// never a value with holes, such as an amount of 0.
func TestResultOfAnotherTypeIsRefusedWhereItLosesData(t *testing.T) {
	t.Parallel()
	type v1 struct {
		ID     string         `json:"id"`
		Amount int            `json:"amount"`
		Tags   map[string]any `json:"tags,omitempty"`
		Legs   []ride         `json:"legs"`
	}
	stored := v1{"o1", 9007199254740993, map[string]any{"a": true}, []ride{{"r1"}, {"r2"}}}
	retry := func(second func(context.Context) (string, error)) (string, error) {
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (v1, error) { return stored, nil })
			return idem.Response{}, errors.Join(err, errors.New("down"))
		})
		if one(&mem) == nil || len(one(&mem).Phases) != 1 {
			t.Fatal(err)
		}
		var got string
		_, err = do(t, e, answering(func(ctx context.Context) error {
			got, err = second(ctx)
			return err
		}))
		return got, err
	}
	as := func(ctx context.Context, v any) (string, error) { // reads the result into a copy of v
		switch v.(type) {
		case v1:
			r, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (v1, error) { return v1{}, nil })
			return r.ID, err
		case string:
			return idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (string, error) { return "", nil })
		case map[string]any:
			r, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (map[string]any, error) { return nil, nil })
			return fmt.Sprint(r["id"]), err
		}
		return "", nil
	}
	type renamed struct {
		ID    string         `json:"id"`
		Price int            `json:"price"`
		Tags  map[string]any `json:"tags"`
		Legs  []ride         `json:"legs"`
	}
	type more struct {
		v1ID   string
		ID     string         `json:"ID"`
		Amount int64          `json:"amount"`
		Tags   map[string]any `json:"tags"`
		Legs   []ride         `json:"legs"`
		New    int            `json:"new"`
	}
	type fewer struct {
		ID     string         `json:"id"`
		Amount int            `json:"amount"`
		Tags   map[string]any `json:"tags"`
		Legs   []struct{}     `json:"legs"`
	}
	for name, tc := range map[string]struct {
		read func(context.Context) (string, error)
		lost string // "" = the type is accepted
	}{
		"the same":     {func(ctx context.Context) (string, error) { return as(ctx, v1{}) }, ""},
		"another kind": {func(ctx context.Context) (string, error) { return as(ctx, "") }, "be read as string"},
		"a map":        {func(ctx context.Context) (string, error) { return as(ctx, map[string]any{}) }, "amount"}, // float64
		"more fields": {func(ctx context.Context) (string, error) {
			r, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (more, error) { return more{}, nil })
			_ = r.v1ID
			return r.ID, err
		}, ""},
		"a renamed field": {func(ctx context.Context) (string, error) {
			r, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (renamed, error) { return renamed{}, nil })
			return r.ID, err
		}, "amount"},
		"a field that is gone, deep": {func(ctx context.Context) (string, error) {
			r, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (fewer, error) { return fewer{}, nil })
			return r.ID, err
		}, "legs[0].id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := retry(tc.read)
			switch {
			case tc.lost == "" && (err != nil || got != "o1"):
				t.Errorf("got %q, %v", got, err)
			case tc.lost != "" && (!errors.Is(err, idem.ErrResult) || !strings.Contains(err.Error(), tc.lost)):
				t.Errorf("got %v, want ErrResult about %s", err, tc.lost)
			}
		})
	}
}

// Before a call is repeated under its key, its data is compared with the first
// call's data, if that could be recorded without an extra write.
func TestSends(t *testing.T) {
	t.Parallel()
	plain := func(*idem.Options) {}
	for name, tc := range map[string]struct {
		opt   func(*idem.Options)
		at    string // phase whose call is in doubt
		dies  bool
		price any // price in the repeated call; 20 in the first call
		want  error
	}{
		"failed, the same":               {plain, "charge", false, 20, nil},
		"failed, another price":          {plain, "charge", false, 25, idem.ErrStuck},
		"the second call, the same":      {plain, "tip", false, 20, nil},
		"the second call, another price": {plain, "tip", false, 25, idem.ErrStuck},
		"nothing that JSON can hold":     {plain, "charge", false, make(chan int), idem.ErrResult},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			made := make(map[string]int)
			clock := idemtest.NewClock()
			now := func(o *idem.Options) { o.Now = clock.Now }
			handler := func(price any, after func() error) func(context.Context) (idem.Response, error) {
				return answering(func(ctx context.Context) error {
					for _, name := range []string{"charge", "tip"} {
						sends, then := any("always the same"), func() error { return nil }
						if name == tc.at {
							sends, then = price, after
						}
						_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
							tx.Key("payments")
							made[name]++
							return 1, then()
						}, idem.Sends("payments", sends))
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			st := idemtest.Faulty(&mem, nil)
			_, _ = do(t, idem.New(st, callertest.Anybody, tc.opt, now), handler(20, func() error {
				if tc.dies {
					st.Crash()
				}
				return errors.New("no answer")
			}))
			clock.Advance(time.Hour)
			_, err := do(t, idem.New(&mem, callertest.Anybody, tc.opt, now), handler(tc.price, func() error { return nil }))
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if want := map[bool]int{true: 2, false: 1}[tc.want == nil]; made[tc.at] != want {
				t.Errorf("%s was called %d times, want %d", tc.at, made[tc.at], want)
			}
			call := map[string]string{"charge": "payments#1", "tip": "payments#2"}[tc.at]
			if r := one(&mem); errors.Is(tc.want, idem.ErrStuck) && !strings.Contains(r.LastErr, call) || r.State == store.Done && len(r.Sent) > 0 {
				t.Errorf("%s, sent %v: %s", r.State, r.Sent, r.LastErr)
			}
		})
	}
}

// telling is a store that reports when a commit is applied.
type telling struct {
	*idem.MemoryStore
	commit func()
}

func (s *telling) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	held, err := s.MemoryStore.Commit(ctx, c)
	s.commit()
	return held, err
}

// Data that was declared but not sent, for lack of time, binds no later attempt:
// the next attempt may send different data.
func TestSendsNothingOfACallThatWasNotMade(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	store := &telling{&mem, func() {}}
	called := 0
	charge := func(price int) func(context.Context) (idem.Response, error) {
		return answering(func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if price == 20 {
				store.commit = cancel
			}
			if _, err := idem.Atomic(ctx, "look", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return err
			}
			_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
				called++
				return len(tx.Key("payments")), nil
			}, idem.Sends("payments", price))
			return err
		})
	}
	if _, err := do(t, idem.New(store, callertest.Anybody), charge(20)); !errors.Is(err, idem.ErrNoTime) || called != 0 {
		t.Fatalf("the first attempt: %v, %d calls", err, called)
	}
	if r := one(&mem); len(r.Phases) != 1 || len(r.Doubts)+len(r.Sent) > 0 {
		t.Errorf("phases %v, in doubt %v, sent %v", r.Phases, r.Doubts, r.Sent)
	}
	store.commit = func() {}
	if _, err := do(t, idem.New(store, callertest.Anybody), charge(25)); err != nil || called != 1 {
		t.Errorf("the next attempt: %v, %d calls", err, called)
	}
}

// lateCommit is a store whose commit number at is late: the next write is refused
// for good, and then the late commit is applied.
type lateCommit struct {
	*idem.MemoryStore
	at   int
	n    int
	late *store.Commit
}

func (s *lateCommit) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	s.n++
	switch s.n {
	case s.at:
		s.late = &c
		return nil, store.ErrUnknown
	case s.at + 1:
		return nil, errors.New("access denied")
	case s.at + 2:
		if held, err := s.MemoryStore.Commit(ctx, *s.late); held != nil || err != nil {
			return held, err
		}
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A call whose result was stored after all is not in doubt.
func TestRecordedCallIsInNoDoubt(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	opt := func(o *idem.Options) { o.Now, o.CallsOut = clock.Now, true }
	var mem idem.MemoryStore
	var w outside
	store := &lateCommit{MemoryStore: &mem, at: 1}
	if _, err := do(t, idem.New(store, callertest.Anybody, opt), charging("charge", w.charge)); err == nil {
		t.Fatal("no error")
	}
	for _, r := range mem.Records() {
		if len(r.Phases) != 1 || len(r.Doubts) > 0 {
			t.Errorf("phases %v, in doubt %v", r.Phases, r.Doubts)
		}
	}
	clock.Advance(time.Hour)
	res, err := do(t, idem.New(&mem, callertest.Anybody, opt), charging("charge", w.charge))
	if err != nil || res.Status != 201 || len(w.calls) != 1 {
		t.Errorf("got %d, %v after %d calls", res.Status, err, len(w.calls))
	}
}
