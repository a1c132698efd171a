package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
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

// A process dies in a call, after the provider has charged. The next attempts look first,
// find the credit gone, and end before the call: none of them ends the operation, whatever
// the status and the way, and people are asked.
func TestEarlyAnswerAfterADeathInACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt     func(*idem.Options)
		after   bool // a phase
		unheard bool // the completer comes first
	}{
		"default":       {opt: func(*idem.Options) {}},
		"CallsOut":      {opt: func(o *idem.Options) { o.CallsOut = true }},
		"Resumable":     {opt: func(o *idem.Options) { o.Resumable, o.Function = true, "f" }},
		"a completer":   {opt: func(o *idem.Options) { o.Resumable, o.Function = true, "f" }, unheard: true},
		"after a phase": {opt: func(*idem.Options) {}, after: true},
		"both":          {opt: func(o *idem.Options) { o.CallsOut = true }, after: true},
	} {
		for _, end := range []string{"plain", "Finish", "Respond", "Respond in an Atomic", "Atomic and plain"} {
			for _, status := range []int{200, 402, 409, 410, 422, 500} {
				t.Run(fmt.Sprint(name, ", ", end, " ", status), func(t *testing.T) {
					t.Parallel()
					var mem idem.MemoryStore
					clock := idemtest.NewClock()
					st := idemtest.Faulty(&mem, nil)
					engine := func(s store.Store) *idem.Engine {
						return idem.New(s, callertest.Anybody, tt.opt, func(o *idem.Options) { o.Now, o.MaxTries = clock.Now, 3 })
					}
					charges, gone := 0, false
					handler := func(ctx context.Context) (idem.Response, error) {
						if tt.after {
							if _, err := idem.Atomic(ctx, "reserved", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
								return idem.Response{}, err
							}
						}
						if gone {
							return endsEarly(ctx, end, status)
						}
						_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
							charges++
							st.Crash()
							return tx.Key("payments"), nil
						})
						return idem.Response{Status: 201}, err
					}
					_, _ = do(t, engine(st), handler)
					gone = true
					for range 5 {
						clock.Advance(time.Hour)
						if r := one(&mem); tt.unheard && r.State == store.Open {
							_, _ = engine(&mem).Resume(t.Context(), jobs.TicketFor(r), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
							clock.Advance(time.Hour)
						}
						if res, err := do(t, engine(&mem), handler); !errors.Is(err, idem.ErrUnfinished) && !errors.Is(err, idem.ErrStuck) {
							t.Fatalf("the client hears %d, %v; want it withheld", res.Status, err)
						}
					}
					if r := one(&mem); r.State != store.Stuck || charges != 1 {
						t.Errorf("%s after %d charges, in doubt %v; want it stuck", r.State, charges, r.Doubts)
					}
				})
			}
		}
	}
}

// endsEarly ends a handler before its call.
func endsEarly(ctx context.Context, how string, status int) (idem.Response, error) {
	resp := idem.Response{Status: status}
	switch how {
	case "Finish":
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return resp, nil })
	case "Respond":
		return idem.Response{}, idem.Respond(resp)
	case "Respond in an Atomic":
		_, err := idem.Atomic(ctx, "declined", func(context.Context, *idem.Tx) (int, error) { return 1, idem.Respond(resp) })
		return idem.Response{}, err
	case "Atomic and plain":
		if _, err := idem.Atomic(ctx, "declined", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
	}
	return resp, nil
}

// A process dies where no call can have begun, or behind a call that is recorded: the next
// attempt ends as it likes.
func TestNoDoubtWithoutACall(t *testing.T) {
	t.Parallel()
	atomic := func(ctx context.Context, name string, dies func()) error {
		_, err := idem.Atomic(ctx, name, func(context.Context, *idem.Tx) (int, error) { dies(); return 1, nil })
		return err
	}
	foreign := func(ctx context.Context, name string, dies func(), opts ...idem.PhaseOption) error {
		_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) { dies(); return len(tx.Key("pay")), nil }, opts...)
		return err
	}
	nothing := func() {}
	for name, steps := range map[string]func(ctx context.Context, dies func()) error{
		"before any phase": func(_ context.Context, dies func()) error { dies(); return nil },
		"in an Atomic":     func(ctx context.Context, dies func()) error { return atomic(ctx, "one", dies) },
		"behind an Atomic": func(ctx context.Context, dies func()) error {
			err := atomic(ctx, "one", nothing)
			dies()
			return err
		},
		"behind a call": func(ctx context.Context, dies func()) error {
			err := foreign(ctx, "one", nothing)
			dies()
			return err
		},
		"in an Atomic behind a call": func(ctx context.Context, dies func()) error {
			return errors.Join(foreign(ctx, "one", nothing), atomic(ctx, "two", dies))
		},
		"in a call, before one that is never repeated": func(ctx context.Context, dies func()) error {
			return errors.Join(foreign(ctx, "one", dies), foreign(ctx, "two", nothing, idem.Remembers(0)))
		},
	} {
		for how, opt := range map[string]func(*idem.Options){
			"default": func(*idem.Options) {}, "Resumable": func(o *idem.Options) { o.Resumable, o.Function = true, "f" },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				var mem idem.MemoryStore
				clock := idemtest.NewClock()
				st := idemtest.Faulty(&mem, nil)
				handler := func(dies func()) func(context.Context) (idem.Response, error) {
					return func(ctx context.Context) (idem.Response, error) { return idem.Response{Status: 402}, steps(ctx, dies) }
				}
				_, _ = do(t, idem.New(st, callertest.Anybody, opt, func(o *idem.Options) { o.Now = clock.Now }), handler(st.Crash))
				clock.Advance(time.Hour)
				res, err := do(t, idem.New(&mem, callertest.Anybody, opt, func(o *idem.Options) { o.Now = clock.Now }), handler(nothing))
				if r := one(&mem); err != nil || res.Status != 402 || r.State != store.Done {
					t.Errorf("%+v, %v: the record is %s", res, err, r.State)
				}
			})
		}
	}
}

// paying calls under a key, and dies in it if dies isn't nil.
func paying(ctx context.Context, phase string, charges *int, dies func(), opts ...idem.PhaseOption) error {
	_, err := idem.Foreign(ctx, phase, func(_ context.Context, tx *idem.Tx) (string, error) {
		*charges++
		if dies != nil {
			dies()
		}
		return tx.Key("payments", phase), nil
	}, opts...)
	return err
}

// A call that is never repeated is not made again for a decision about another phase's, which
// a deploy has inserted.
func TestDecisionsLeaveOtherCallsInDoubt(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]idem.PhaseOption{
		"NotIdempotent": {idem.NotIdempotent()}, "Remembers(0)": {idem.Remembers(0)}, "plain": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			clock := idemtest.NewClock()
			engine := func(s store.Store) *idem.Engine {
				return idem.New(s, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
			}
			st := idemtest.Faulty(&mem, nil)
			charges, risks := 0, 0
			_, _ = do(t, engine(st), func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, paying(ctx, "charge", &charges, st.Crash, idem.Remembers(0))
			})
			for range 3 {
				clock.Advance(30 * time.Hour)
				_, err := do(t, engine(&mem), func(ctx context.Context) (idem.Response, error) {
					if err := paying(ctx, "risk", &risks, nil, opts...); err != nil {
						return idem.Response{}, err
					}
					return idem.Response{Status: 201}, paying(ctx, "charge", &charges, nil, idem.Remembers(0))
				})
				if r := one(&mem); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || charges != 1 || r.Phases[len(r.Phases)-1].Name != "charge" {
					t.Fatalf("%v: %s after %d charges, in %+v", err, r.State, charges, r.Phases)
				}
			}
		})
	}
}

// A call that can't begin leaves no mark, and a mark of an earlier attempt gets the hash of
// what the next one sends.
func TestMarkIsWrittenForTheCallThatFollows(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	engine := func(s store.Store) *idem.Engine {
		return idem.New(s, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	}
	charges := 0
	_, _ = do(t, engine(&mem), func(ctx context.Context) (idem.Response, error) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		err := paying(over, "charge", &charges, nil)
		if r := one(&mem); r.Mark != "" || charges != 0 {
			t.Errorf("%v: the record has the mark %q after %d calls", err, r.Mark, charges)
		}
		return idem.Response{}, err
	})
	for _, opts := range [][]idem.PhaseOption{nil, {idem.Sends("payments", 20, "charge")}} {
		clock.Advance(time.Hour)
		st := idemtest.Faulty(&mem, nil)
		_, _ = do(t, engine(st), func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, paying(ctx, "charge", &charges, st.Crash, opts...)
		})
	}
	clock.Advance(time.Hour)
	_, err := do(t, engine(&mem), func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, paying(ctx, "charge", &charges, nil, idem.Sends("payments", 30, "charge"))
	})
	if !errors.Is(err, idem.ErrStuck) || charges != 2 {
		t.Errorf("%v after %d calls, in doubt about what was sent: %v", err, charges, one(&mem).Sent)
	}
}

// A call that may have been made is never forgotten with its key: a day later the same
// key would call again under another derived key (R149).
func TestCallInDoubtDoesNotExpire(t *testing.T) {
	t.Parallel()
	timesOut := func(context.Context) error { return errors.New("timeout") }
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		end  func(st *idemtest.FaultyStore) func(context.Context) error
		kept bool
	}{
		"the call times out":           {asIs, func(*idemtest.FaultyStore) func(context.Context) error { return timesOut }, true},
		"the same, declared":           {func(o *idem.Options) { o.CallsOut = true }, func(*idemtest.FaultyStore) func(context.Context) error { return timesOut }, true},
		"the process dies in the call": {asIs, dies, true},
		"it dies, declared":            {func(o *idem.Options) { o.CallsOut = true }, dies, true},
		"the call certainly had no effect": {func(o *idem.Options) { o.CallsOut = true }, func(*idemtest.FaultyStore) func(context.Context) error {
			return func(context.Context) error { return idem.SafeToRetry(errors.New("refused")) }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := idemtest.NewClock()
			var mem idem.MemoryStore
			var w outside
			st := idemtest.Faulty(&mem, nil)
			opt := func(o *idem.Options) { o.Now = clock.Now }
			end := tc.end(st)
			handler := func(end func(context.Context) error) func(context.Context) (idem.Response, error) {
				return func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Foreign(ctx, "charge", func(ctx context.Context, tx *idem.Tx) (int, error) {
						w.charge(tx.Key("payments"))
						return 1, end(ctx)
					})
					return idem.Response{Status: 201}, err
				}
			}
			_, err := do(t, idem.New(st, opt, tc.opt), handler(end))
			if err == nil {
				t.Fatal("no error")
			}
			r := onlyRecord(t, &mem)
			if kept := r.Keep == store.KeepOpen && r.Expires.IsZero(); kept != tc.kept {
				t.Fatalf("keep %q, expires %v, in doubt %v; want it kept: %t", r.Keep, r.Expires, r.Doubts, tc.kept)
			}
			if !tc.kept {
				return
			}
			clock.Advance(30 * time.Hour) // beyond the key's lifetime, and its provider's memory
			_, err = do(t, idem.New(&mem, opt, tc.opt), handler(func(context.Context) error { return nil }))
			if !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1 {
				t.Errorf("a day later: %v, %d calls under %v", err, len(w.calls), w.charged())
			}
		})
	}
}

// A phase's result leaves room for what take-overs add to its record, which nobody could
// otherwise finish, nor give up.
func TestResultLeavesRoomForATakeOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		ok   bool
	}{"with room": {380 << 10, true}, "without": {399 << 10, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			_, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "large", func(context.Context, *idem.Tx) (string, error) { return strings.Repeat("x", tc.size), nil })
				return idem.Response{Status: 201}, err
			})
			if r := a.record(t); (err == nil) != tc.ok || !tc.ok && (!errors.Is(err, store.ErrTooLarge) || !r.Blocked) {
				t.Errorf("%v; waits for people: %t", err, r.Blocked)
			}
		})
	}
}

// After a call, what can never be stored waits for people, and no retry goes on for ever: jobs
// that don't fit are told when they are staged, and a finish that is refused for good blocks.
func TestFinishThatNeverFitsWaitsForPeople(t *testing.T) {
	t.Parallel()
	large := idem.NewJob("mail", strings.Repeat("x", 200<<10))
	for name, tt := range map[string]struct {
		staged []idem.Job
		plan   idemtest.Plan
	}{
		"jobs": {staged: []idem.Job{large, large}},
		"the finish": {plan: func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == idemtest.Commit && c.Commit.Next.State == store.Done {
				return idemtest.Fault{Err: store.ErrTooLarge}
			}
			return idemtest.Fault{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			_, err := do(t, idem.New(idemtest.Faulty(&a.mem, tt.plan)), func(ctx context.Context) (idem.Response, error) {
				if _, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
					return idem.Response{}, err
				}
				err := idem.Stage(ctx, tt.staged...)
				if errors.Is(err, store.ErrTooLarge) != (tt.staged != nil) {
					t.Errorf("Stage returned %v", err)
				}
				return idem.Response{Status: 201}, nil // whatever Stage says
			})
			if r := a.record(t); !errors.Is(err, store.ErrTooLarge) || !r.Blocked || len(r.Phases) != 1 {
				t.Errorf("got %v; blocked: %t, %d phases; want too large, blocked after the call", err, r.Blocked, len(r.Phases))
			}
		})
	}
}

// A key that is asked for when nobody can record its call ends the program: it would
// stand for two calls.
func TestKeyAfterItsPhase(t *testing.T) {
	t.Parallel()
	var late *idem.Tx
	_, err := do(t, idem.New(new(idem.MemoryStore)), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { late = tx; return 1, nil })
		return idem.Response{Status: 201}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "after its phase has ended") {
			t.Errorf("recovered %v", v)
		}
	}()
	t.Errorf("got the key %s", late.Key("payments"))
}

// R66: a call with an unknown outcome is never repeated, unless the error allows
// it.
func TestNotIdempotent(t *testing.T) {
	t.Parallel()
	call := func(calls *int, err error) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			id, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (string, error) {
				*calls++
				return "sent", err
			}, idem.NotIdempotent())
			return idem.Response{Status: 201, Body: []byte(id)}, err
		}
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		calls := 0
		for range 3 {
			if _, err := do(t, e, call(&calls, errors.New("timeout"))); !errors.Is(err, idem.ErrStuck) {
				t.Fatal(err)
			}
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
		pk := stuckKey(t, &mem)
		if err := e.Settle(t.Context(), pk, idem.Settlement{}); !errors.Is(err, idem.ErrResult) {
			t.Errorf("settled without an outcome: %v", err)
		}
		if err := e.Settle(t.Context(), pk, idem.Settlement{Result: []byte(`"by hand"`)}); err != nil {
			t.Fatal(err)
		}
		res, err := do(t, e, call(&calls, nil))
		if err != nil || string(res.Body) != "by hand" || calls != 1 {
			t.Errorf("%+v, %v, %d calls", res, err, calls)
		}
	})
	t.Run("safe to retry", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		calls := 0
		if _, err := do(t, e, call(&calls, idem.SafeToRetry(errors.New("connection refused")))); err == nil || errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		res, err := do(t, e, call(&calls, nil))
		if err != nil || res.Status != 201 || calls != 2 {
			t.Errorf("%+v, %v, %d calls", res, err, calls)
		}
	})
	t.Run("nothing to mark", func(t *testing.T) {
		t.Parallel()
		if err := idem.SafeToRetry(nil); err != nil {
			t.Errorf("SafeToRetry(nil) is %v, want nil", err)
		}
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		e := idem.New(new(idem.MemoryStore), callertest.Anybody)
		calls := 0
		for i := range 2 {
			res, err := do(t, e, call(&calls, idem.Respond(idem.Response{Status: 402})))
			if err != nil || res.Status != 402 || res.Replayed != (i > 0) || calls != 1 {
				t.Errorf("%+v, %v, %d calls", res, err, calls)
			}
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		func() {
			defer func() { _ = recover() }()
			_, _ = do(t, e, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (string, error) { panic("died") }, idem.NotIdempotent())
				return idem.Response{}, err
			})
		}()
		calls := 0
		// An answer from before the call must not hide the call's unknown outcome.
		early := func(context.Context) (idem.Response, error) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 402})
		}
		if _, err := do(t, e, early); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Errorf("answered over an intent: %v", err)
		}
		if _, err := do(t, e, call(&calls, nil)); !errors.Is(err, idem.ErrStuck) || calls != 0 {
			t.Errorf("%v, %d calls", err, calls)
		}
	})
}

func stuckKey(t *testing.T, mem *idem.MemoryStore) string {
	t.Helper()
	for pk, r := range mem.Records() {
		if r.State == store.Stuck {
			return pk
		}
	}
	t.Fatal("nothing is stuck")
	return ""
}

func TestOperationIDsAndDerivedKeys(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	keys := make(map[string]string)
	_, err := do(t, e, answering(func(ctx context.Context) error {
		for _, name := range []string{"one", "two"} {
			_, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
				for _, k := range [][]string{{"payments"}, {"payments", "refund" + name}, {"payments/refund" + name}, {"payments#"}, {"payments", "refund", name}, {"mail"}} {
					key := tx.Key(k[0], k[1:]...)
					if old, ok := keys[key]; ok {
						t.Errorf("%s %v has the key of %s", name, k, old)
					}
					keys[key] = name + strings.Join(k, "/")
				}
				return 1, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil || len(keys) != 12 {
		t.Fatal(err, keys)
	}
}

// A phase of another kind must not pass an unknown outcome.
func TestIntentIsNotPassedByAnAtomic(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	with := func(o *idem.Options) { o.Now = clock.Now }
	dying := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(dying, callertest.Anybody, with), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "transfer", func(context.Context, *idem.Tx) (string, error) { dying.Crash(); return "x", nil }, idem.NotIdempotent())
		return idem.Response{}, err
	})
	clock.Advance(time.Hour)
	_, err := do(t, idem.New(&mem, callertest.Anybody, with), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "transfer", func(_ context.Context, tx *idem.Tx) (string, error) { tx.Write(note("transfer")); return "x", nil })
		return idem.Response{Status: 201}, err
	})
	t.Log(err, one(&mem).Phases)
	if len(written(&mem)) > 0 {
		t.Errorf("a phase whose outcome is unknown ran as Atomic and committed %v; record: %d phases, %s", written(&mem), len(one(&mem).Phases), one(&mem).State)
	}
}

// The text of net/http's error for a failed call contains the whole URL.
func TestLastErrorHasNoQuery(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, _ = do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "transfer", func(context.Context, *idem.Tx) (string, error) {
			return "", fmt.Errorf("pay: %w", &url.Error{Op: "Post", URL: "https://bank.example/pay?token=sk_live_123", Err: io.EOF})
		}, idem.NotIdempotent())
		return idem.Response{}, err
	})
	if r := one(&mem); strings.Contains(r.LastErr, "sk_live") || !strings.Contains(r.LastErr, "https://bank.example/pay?…") {
		t.Errorf("last error: %s", r.LastErr)
	}
}

// A NotIdempotent call whose context is over would certainly fail: it isn't begun
// and doesn't get stuck.
func TestCallBegunWithoutTimeIsNotStuck(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	ctx, leave := context.WithTimeout(t.Context(), ample)
	calls := 0
	st := idemtest.Faulty(&mem, nil)
	_, err := idem.New(st, callertest.Anybody).Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "ride", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("ride")); return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		leave() // the client goes away, or the time is up
		_, err := idem.Foreign(ctx, "transfer", func(ctx context.Context, _ *idem.Tx) (string, error) {
			if err := ctx.Err(); err != nil {
				return "", err // like every client, before it sends anything
			}
			calls++
			return "tr", nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	})
	for _, r := range mem.Records() {
		if r.State == store.Stuck && calls == 0 {
			t.Errorf("stuck (%v), though nothing was sent: %s", errors.Is(err, idem.ErrStuck), r.LastErr)
		}
	}
	if !errors.Is(err, idem.ErrNoTime) || st.Calls(idemtest.Commit) != 2 { // the ride and the release: no call has begun
		t.Errorf("%v after %d commits", err, st.Calls(idemtest.Commit))
	}
}

// The intent's own commit may use up the remaining time. Then nothing is sent,
// and the intent is removed: otherwise people would have to look for a call that
// was never made.
func TestContextThatEndsInTheIntentsCommit(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	called := 0
	ctx, cancel := context.WithCancel(t.Context())
	slow := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Total == 2 {
			cancel()
		}
		return idemtest.Fault{}
	})
	fax := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { called++; return 1, nil }, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	}
	req := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}
	if _, err := idem.New(slow, callertest.Anybody).Do(ctx, req, fax); !errors.Is(err, idem.ErrNoTime) || called != 0 {
		t.Errorf("got %v after %d calls", err, called)
	}
	if r := one(&mem); r.State != store.Open || len(r.Phases) != 0 {
		t.Errorf("%s with phases %v", r.State, r.Phases)
	}
	if res, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), req, fax); err != nil || res.Status != 201 || called != 1 {
		t.Errorf("the retry: %+v, %v, %d calls", res, err, called)
	}
}

// A derived key is made of the id that the server gave the operation, and of nothing
// that the client sent: each operation has keys of its own, though client, key and
// request are the same, and an attempt at the same operation has the same keys.
func TestDerivedKeysAreOfTheServersID(t *testing.T) {
	t.Parallel()
	keys := make(map[string]bool)
	for range 3 {
		e := idem.New(new(idem.MemoryStore), callertest.Anybody)
		var id, first string
		for _, fail := range []error{errors.New("down"), nil} {
			res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				op, _ := idem.FromContext(ctx)
				_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
					key := tx.Key("payments")
					if first == "" {
						id, first = op.ID(), key
					}
					if op.ID() != id || key != first {
						t.Errorf("a second attempt is %s with %s, the first was %s with %s", op.ID(), key, id, first)
					}
					return 1, fail
				})
				return idem.Response{Status: 201}, err
			})
			if (err == nil) != (fail == nil) {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if keys[first] || keys[id] {
			t.Errorf("another operation has %s or %s, too", first, id)
		}
		keys[first], keys[id] = true, true
	}
}

// An Atomic calls nobody: after a failure no call of it is in doubt, though it has asked for
// a key.
func TestKeyOfAnAtomicIsNoCall(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, _ = do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
		if err := reserve(ctx); err != nil {
			return err
		}
		_, err := idem.Atomic(ctx, "two", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Key("id"); return 0, errors.New("down") })
		return err
	}))
	if r := one(&mem); len(r.Phases) != 1 || len(r.Doubts) != 0 {
		t.Errorf("%d phases, in doubt: %q", len(r.Phases), r.Doubts)
	}
}

// A call that is not repeated takes neither writes nor jobs: they would be lost when people
// settle it. Whatever else it says, its outcome is unknown then.
func TestNotIdempotentTakesNoWrites(t *testing.T) {
	t.Parallel()
	for what, add := range map[string]func(*idem.Tx){
		"a write": func(tx *idem.Tx) { tx.Write(note("lost")) },
		"a job":   func(tx *idem.Tx) { tx.Stage(receipt) },
	} {
		for says, end := range map[string]error{
			"a result": nil, "an answer": idem.Respond(idem.Response{Status: 402}), "that it is safe": idem.SafeToRetry(errors.New("refused")),
		} {
			var mem idem.MemoryStore
			res, err := do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "fax", func(_ context.Context, tx *idem.Tx) (int, error) { add(tx); return 1, end }, idem.NotIdempotent())
				return err
			}))
			if r := one(&mem); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || len(r.Jobs)+len(mem.Writes()) != 0 {
				t.Errorf("%s beside %s: %+v, %v; the record is %s", what, says, res, err, r.State)
			}
		}
	}
}
