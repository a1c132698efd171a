package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Keys are of a service and a step, and differ wherever the call does.
func TestReusedKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		phases  [][]string // "service" or "service|step"
		refused bool
	}{
		"without a step in one phase":           {[][]string{{"pay", "pay"}}, true},
		"without a step in two phases":          {[][]string{{"pay"}, {"pay"}}, false},
		"one step in one phase":                 {[][]string{{"pay|a", "pay|a"}}, true},
		"one step in two phases":                {[][]string{{"pay|a"}, {"pay|a"}}, true},
		"two steps in one phase":                {[][]string{{"pay|a", "pay|b"}}, false},
		"one step of two services":              {[][]string{{"pay|a", "mail|a"}, {"fax|a"}}, false},
		"a step after a call without one":       {[][]string{{"pay", "pay|a"}, {"pay|b", "pay"}}, false},
		"two services without a step, repeated": {[][]string{{"pay", "mail"}, {"mail", "pay"}}, false},
		"separators":                            {[][]string{{"pay|a/b", "pay/a|b", "pay#|a", "pay|a#b", "pay#", "pay", "pay/a"}, {"pay#1", "pay|#1"}}, false},
	} {
		var keys []string
		_, err := begun().do(t, answering(func(ctx context.Context) error {
			for i, asks := range tc.phases {
				if _, err := idem.Foreign(ctx, fmt.Sprint("phase", i), func(_ context.Context, tx *idem.Tx) (int, error) {
					for _, ask := range asks {
						if service, step, named := strings.Cut(ask, "|"); named {
							keys = append(keys, tx.Key(service, step))
						} else {
							keys = append(keys, tx.Key(service))
						}
					}
					return i, nil
				}); err != nil {
					return err
				}
			}
			return nil
		}))
		different := len(slices.Compact(slices.Sorted(slices.Values(keys))))
		if refused := errors.Is(err, idem.ErrKeyReused); refused != tc.refused || !refused && err != nil {
			t.Errorf("%s: got %v, want it refused: %t", name, err, tc.refused)
		}
		if tc.refused && different != 1 || !tc.refused && different != len(keys) {
			t.Errorf("%s: got %d different keys of %d", name, different, len(keys))
		}
	}
}

// A derived key is made of the id that the server gave the operation, and of nothing that the
// client sent. An attempt at the same operation has the same keys, another operation has others.
func TestDerivedKeysAreOfTheServersID(t *testing.T) {
	t.Parallel()
	keys := make(map[string]bool)
	for range 3 {
		a := begun()
		var seen []string
		for _, fail := range []error{errors.New("down"), nil} {
			res, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
				op, _ := idem.FromContext(ctx)
				return idem.Response{Status: 201}, paying(ctx, "charge", func(tx *idem.Tx) error {
					seen = append(seen, op.ID(), tx.Key("payments"))
					return fail
				})
			})
			if !errors.Is(err, fail) {
				t.Errorf("got %+v, %v; want %v", res, err, fail)
			}
		}
		if seen[0] != seen[2] || seen[1] != seen[3] {
			t.Errorf("the attempts had ids and keys %q, want the same", seen)
		}
		if keys[seen[0]] || keys[seen[1]] {
			t.Errorf("another operation has %q, too", seen)
		}
		keys[seen[0]], keys[seen[1]] = true, true
	}
}

// The age of a call counts from the first attempt that may have made it, however many attempts
// and inserted phases follow. A key that the provider may have forgotten would begin a new call.
func TestForHowLongACallIsRepeated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age   time.Duration
		opts  []idem.PhaseOption
		stuck bool
	}{
		"just remembered":                 {23*time.Hour - time.Second, nil, false},
		"less than an hour is left":       {23 * time.Hour, nil, true},
		"forgotten":                       {25 * time.Hour, nil, true},
		"a long memory":                   {1000 * time.Hour, []idem.PhaseOption{idem.Remembers(1002 * time.Hour)}, false},
		"a short memory":                  {44 * time.Minute, []idem.PhaseOption{idem.Remembers(time.Hour)}, false},
		"a short memory, a quarter left":  {45 * time.Minute, []idem.PhaseOption{idem.Remembers(time.Hour)}, true},
		"no memory":                       {30 * time.Minute, []idem.PhaseOption{idem.Remembers(0)}, true},
		"no memory, a clock behind":       {-time.Hour, []idem.PhaseOption{idem.Remembers(0)}, true},
		"of a system without keys by now": {25 * time.Hour, []idem.PhaseOption{idem.NotIdempotent()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, calls := accepting(), 0
			fails := errors.New("down")
			charge := func(opts ...idem.PhaseOption) handler {
				return func(ctx context.Context) (idem.Response, error) {
					return idem.Response{Status: 201}, paying(ctx, "charge", func(*idem.Tx) error { calls++; return fails }, opts...)
				}
			}
			_, _ = a.do(t, charge())
			a.clock.Advance(tc.age)
			fails = nil
			_, err := a.do(t, charge(tc.opts...))
			want := 2
			if tc.stuck {
				want = 1
			}
			if errors.Is(err, idem.ErrStuck) != tc.stuck || !tc.stuck && err != nil || calls != want {
				t.Fatalf("got %v after %d calls, want it stuck: %t", err, calls, tc.stuck)
			}
			if r := a.record(t); tc.stuck && (r.State != store.Stuck || !strings.Contains(r.LastErr, `phase "charge"`)) {
				t.Errorf("%s: %s", r.State, r.LastErr)
			}
		})
	}
	t.Run("another death and an inserted phase in between", func(t *testing.T) {
		t.Parallel()
		a := begun()
		var w outside
		a.dies(t, func(die func()) handler { return charging("charge", func(key string) { w.charge(key); die() }) })
		inserted := func(then func()) handler {
			return func(ctx context.Context) (idem.Response, error) {
				if err := recordPhase(ctx, "new"); err != nil {
					return idem.Response{}, err
				}
				then()
				return charging("charge", w.charge)(ctx)
			}
		}
		a.clock.Advance(22 * time.Hour)
		a.dies(t, inserted)
		a.clock.Advance(2 * time.Hour)
		if _, err := a.do(t, inserted(func() {})); !errors.Is(err, idem.ErrStuck) || len(w.calls) != 1+1 {
			t.Errorf("got %v after %d calls, want it stuck", err, len(w.calls))
		}
	})
	t.Run("nothing was called", func(t *testing.T) {
		t.Parallel()
		a := begun()
		_, _ = a.do(t, answering(func(ctx context.Context) error { return errors.Join(recordPhase(ctx, "first"), errors.New("down")) }))
		a.clock.Advance(100 * time.Hour)
		var w outside
		if _, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
			if err := recordPhase(ctx, "first"); err != nil {
				return idem.Response{}, err
			}
			return charging("charge", w.charge)(ctx)
		}); err != nil || len(w.calls) != 1 {
			t.Errorf("got %v after %d calls, want one", err, len(w.calls))
		}
	})
	t.Run("what was called is known", func(t *testing.T) {
		t.Parallel()
		a, down := begun(), errors.New("down")
		var w outside
		for i := range 3 { // the charge fails and is repeated; the tip fails a day later, and is a call of its own
			_, err := a.do(t, answering(func(ctx context.Context) error {
				for at, name := range []string{"charge", "tip"} {
					if _, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
						if w.charge(tx.Key("payments")); at == i {
							return 0, down
						}
						return 1, nil
					}); err != nil {
						return err
					}
				}
				return nil
			}))
			if errors.Is(err, down) != (i < 2) {
				t.Fatal(err)
			}
			a.clock.Advance(22 * time.Hour)
		}
		if n := w.charged(); len(n) != 2 || len(w.calls) != 4 {
			t.Errorf("got calls %v, want two keys in four calls", n)
		}
	})
}

// A phase learns whether its calls may have been made before.
func TestRepeats(t *testing.T) {
	t.Parallel()
	var got []bool
	notes := func(tx *idem.Tx) error { got = append(got, tx.Repeats()); return nil }
	noAnswer := errors.New("no answer")
	a := begun()
	calls := func(after func() error) handler {
		return answering(func(ctx context.Context) error {
			if err := paying(ctx, "charge", notes); err != nil {
				return err
			}
			return paying(ctx, "tip", func(tx *idem.Tx) error { return errors.Join(notes(tx), after()) })
		})
	}
	_, _ = a.do(t, calls(func() error { return noAnswer }))                                  // two first calls; the second fails
	a.dies(t, func(die func()) handler { return calls(func() error { die(); return nil }) }) // a repeated call
	a.clock.Advance(time.Hour)
	if _, err := a.do(t, calls(func() error { return nil })); err != nil { // once more
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{false, false, true, true}, got); diff != "" {
		t.Errorf("Repeats (-want +got):\n%s", diff)
	}
	for name, tt := range map[string]struct {
		charge idem.PhaseOption
		early  bool // the operation becomes stuck outside of the call's phase
		settle idem.Settlement
		want   []bool // two attempts at the charge, and the tip
	}{
		"not idempotent, not made":      {idem.NotIdempotent(), false, idem.Settlement{NotMade: true}, []bool{false, false, false}},
		"not idempotent, risk of twice": {idem.NotIdempotent(), false, idem.Settlement{RiskTwice: true}, []bool{false, true, false}},
		"forgotten key, risk of twice":  {idem.Remembers(time.Minute), false, idem.Settlement{RiskTwice: true}, []bool{false, true, false}},
		"early, not made":               {idem.Remembers(time.Minute), true, idem.Settlement{NotMade: true}, []bool{false, false, false}},
		"early, risk of twice":          {idem.Remembers(time.Minute), true, idem.Settlement{RiskTwice: true}, []bool{false, true, true}}, // the decision names no phase
	} {
		got = nil
		a := begun()
		pay := func(end error) handler {
			return answering(func(ctx context.Context) error {
				if err := paying(ctx, "charge", func(tx *idem.Tx) error { return errors.Join(notes(tx), end) }, tt.charge); err != nil {
					return err
				}
				return paying(ctx, "tip", notes)
			})
		}
		_, _ = a.do(t, pay(noAnswer))
		a.clock.Advance(25 * time.Hour)
		if tt.early {
			if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came"); err != nil {
				t.Fatal(err)
			}
		} else if _, err := a.do(t, pay(nil)); !errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		if err := a.engine.Settle(t.Context(), a.record(t).PK, tt.settle); err != nil {
			t.Fatal(err)
		}
		_, _ = a.do(t, answering(func(context.Context) error { return errors.New("down") })) // before the call
		if _, err := a.do(t, pay(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Repeats (-want +got):\n%s", name, diff)
		}
	}
}

// Before a call is repeated under its key, its data is compared with the first call's.
func TestSends(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at    string // phase whose call is in doubt
		price any    // in the repeated call; 20 in the first call
		want  error
	}{
		"the same":                       {"charge", 20, nil},
		"another price":                  {"charge", 25, idem.ErrStuck},
		"the second call, the same":      {"tip", 20, nil},
		"the second call, another price": {"tip", 25, idem.ErrStuck},
		"nothing that JSON can hold":     {"charge", make(chan int), idem.ErrResult},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, made := begun(), make(map[string]int)
			attempt := func(price any, end error) error {
				_, err := a.do(t, answering(func(ctx context.Context) error {
					for _, name := range []string{"charge", "tip"} {
						sends, ends := any("always the same"), error(nil)
						if name == tc.at {
							sends, ends = price, end
						}
						if _, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
							tx.Key("payments")
							made[name]++
							return 1, ends
						}, idem.Sends("payments", sends)); err != nil {
							return err
						}
					}
					return nil
				}))
				a.clock.Advance(time.Hour)
				return err
			}
			_ = attempt(20, errors.New("no answer"))
			err := attempt(tc.price, nil)
			if want := map[bool]int{true: 2, false: 1}[tc.want == nil]; !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || made[tc.at] != want {
				t.Errorf("got %v after %d calls, want %v after %d", err, made[tc.at], tc.want, want)
			}
			call := map[string]string{"charge": "payments#1", "tip": "payments#2"}[tc.at]
			if r := a.record(t); errors.Is(tc.want, idem.ErrStuck) && !strings.Contains(r.LastErr, call) || r.State == store.Done && len(r.Sent) > 0 {
				t.Errorf("%s, sent %v: %s", r.State, r.Sent, r.LastErr)
			}
		})
	}
}

// Data that was declared but not sent, for lack of time, binds no later attempt.
func TestSendsNothingOfACallThatWasNotMade(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	calls := 0
	charge := func(price int, begins func(context.Context) context.Context) handler {
		return answering(func(ctx context.Context) error {
			ctx = begins(ctx)
			if err := recordPhase(ctx, "look"); err != nil {
				return err
			}
			return paying(ctx, "charge", func(*idem.Tx) error { calls++; return nil }, idem.Sends("payments", price, "charge"))
		})
	}
	leave := func() {}
	slow := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == "Commit" && c.N == 2 { // the mark of the call
			leave()
		}
		return idemtest.Fault{}
	})
	_, err := do(t, idem.New(slow), charge(20, func(ctx context.Context) context.Context {
		ctx, leave = context.WithCancel(ctx)
		return ctx
	}))
	if r := one(&mem); !errors.Is(err, idem.ErrNoTime) || calls != 0 || len(r.Phases) != 1 || len(r.Doubts)+len(r.Sent) > 0 {
		t.Errorf("the first attempt: %v, %d calls; in doubt %v, sent %v", err, calls, r.Doubts, r.Sent)
	}
	same := func(ctx context.Context) context.Context { return ctx }
	if _, err := do(t, idem.New(&mem), charge(25, same)); err != nil || calls != 1 {
		t.Errorf("the next attempt: %v, %d calls", err, calls)
	}
}

// A call whose result was stored after all is not in doubt: the commit is late, the next write
// is denied, and then the late one lands.
func TestRecordedCallIsInNoDoubt(t *testing.T) {
	t.Parallel()
	a := begun(callsOut)
	var w outside
	var late store.Commit
	st := idemtest.Faulty(&a.mem, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		switch {
		case c.Verb != "Commit":
		case c.N == 1:
			late = c.Commit
			return idemtest.Fault{Err: store.ErrUnknown}
		case c.N == 2:
			return idemtest.Fault{Err: errors.New("access denied")}
		case c.N == 3:
			if held, err := a.mem.Commit(ctx, late); held != nil || err != nil {
				t.Errorf("the late commit: %+v, %v", held, err)
			}
		}
		return idemtest.Fault{}
	})
	if _, err := do(t, idem.New(st, a.opts...), charging("charge", w.charge)); err == nil {
		t.Fatal("no error")
	}
	if r := a.record(t); len(r.Phases) != 1 || len(r.Doubts) > 0 {
		t.Errorf("phases %v, in doubt %v; want one, and none", r.Phases, r.Doubts)
	}
	a.clock.Advance(time.Hour)
	if res, err := a.do(t, charging("charge", w.charge)); err != nil || res.Status != 201 || len(w.calls) != 1 {
		t.Errorf("got %d, %v after %d calls, want 201 after one", res.Status, err, len(w.calls))
	}
}

// A process dies in a call, after the provider has charged. The next attempts look first,
// find the credit gone, and end before the call: none of them ends the operation, whatever
// the status and the way, and people are asked.
func TestEarlyAnswerAfterADeathInACall(t *testing.T) {
	t.Parallel()
	ends := map[string]func(context.Context, idem.Response) (idem.Response, error){
		"plain": func(_ context.Context, resp idem.Response) (idem.Response, error) { return resp, nil },
		"Finish": func(ctx context.Context, resp idem.Response) (idem.Response, error) {
			return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return resp, nil })
		},
		"Respond": func(_ context.Context, resp idem.Response) (idem.Response, error) {
			return idem.Response{}, idem.Respond(resp)
		},
		"Respond in an Atomic": func(ctx context.Context, resp idem.Response) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "declined", func(context.Context, *idem.Tx) (int, error) { return 1, idem.Respond(resp) })
			return idem.Response{}, err
		},
		"Atomic and plain": func(ctx context.Context, resp idem.Response) (idem.Response, error) {
			return resp, recordPhase(ctx, "declined")
		},
	}
	for name, tt := range map[string]struct {
		opt       func(*idem.Options)
		after     bool // a phase
		completer bool // comes first
	}{
		"default":       {opt: asIs},
		"CallsOut":      {opt: callsOut},
		"Resumable":     {opt: resumable},
		"a completer":   {opt: resumable, completer: true},
		"after a phase": {opt: asIs, after: true},
		"both":          {opt: callsOut, after: true},
	} {
		for end, ends := range ends {
			for _, status := range []int{200, 402, 409, 410, 422, 500} {
				t.Run(fmt.Sprint(name, ", ", end, " ", status), func(t *testing.T) {
					t.Parallel()
					a, charges, gone := begun(tt.opt, func(o *idem.Options) { o.MaxTries = 3 }), 0, false
					run := func(die func()) handler {
						return func(ctx context.Context) (idem.Response, error) {
							if tt.after {
								if err := recordPhase(ctx, "reserved"); err != nil {
									return idem.Response{}, err
								}
							}
							if gone {
								return ends(ctx, idem.Response{Status: status})
							}
							return idem.Response{Status: 201}, paying(ctx, "charge", func(*idem.Tx) error { charges++; die(); return nil })
						}
					}
					a.dies(t, run)
					gone = true
					for range 5 {
						a.leaseOver()
						if tt.completer && a.record(t).State == store.Open {
							_ = a.completes(t, run(nil))
							a.leaseOver()
						}
						if res, err := a.do(t, run(nil)); !errors.Is(err, idem.ErrUnfinished) && !errors.Is(err, idem.ErrStuck) {
							t.Fatalf("the client hears %d, %v; want it withheld", res.Status, err)
						}
					}
					if r := a.record(t); r.State != store.Stuck || charges != 1 {
						t.Errorf("%s after %d charges, in doubt %v; want it stuck after one", r.State, charges, r.Doubts)
					}
				})
			}
		}
	}
}

// A process dies where no call can have begun, or behind a call that is recorded: the next
// attempt ends as it likes.
func TestNoDoubtWithoutACall(t *testing.T) {
	t.Parallel()
	dying := func(ctx context.Context, die func()) error {
		_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (int, error) { die(); return 1, nil })
		return err
	}
	called := func(ctx context.Context) error { return paying(ctx, "one", func(*idem.Tx) error { return nil }) }
	for name, steps := range map[string]func(ctx context.Context, die func()) error{
		"before any phase":           func(_ context.Context, die func()) error { die(); return nil },
		"in an Atomic":               dying,
		"behind an Atomic":           func(ctx context.Context, die func()) error { err := recordPhase(ctx, "one"); die(); return err },
		"behind a call":              func(ctx context.Context, die func()) error { err := called(ctx); die(); return err },
		"in an Atomic behind a call": func(ctx context.Context, die func()) error { return errors.Join(called(ctx), dying(ctx, die)) },
		"in a call, before one that is never repeated": func(ctx context.Context, die func()) error {
			return errors.Join(paying(ctx, "one", func(*idem.Tx) error { die(); return nil }),
				paying(ctx, "two", func(*idem.Tx) error { return nil }, idem.Remembers(0)))
		},
	} {
		for how, opt := range map[string]func(*idem.Options){"default": asIs, "Resumable": resumable} {
			a := begun(opt)
			run := func(die func()) handler {
				return func(ctx context.Context) (idem.Response, error) { return idem.Response{Status: 402}, steps(ctx, die) }
			}
			a.dies(t, run)
			a.leaseOver()
			res, err := a.do(t, run(func() {}))
			if r := a.record(t); err != nil || res.Status != 402 || r.State != store.Done {
				t.Errorf("%s, %s: got %+v, %v, the record is %s; want 402 and done", name, how, res, err, r.State)
			}
		}
	}
}

// A call that is never repeated is not made again for a decision about another phase's, which
// a deploy has inserted.
func TestDecisionsLeaveOtherCallsInDoubt(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]idem.PhaseOption{
		"NotIdempotent": {idem.NotIdempotent()}, "Remembers(0)": {idem.Remembers(0)}, "plain": nil,
	} {
		a, charges := begun(), 0
		charge := func(ctx context.Context, die func()) error {
			return paying(ctx, "charge", func(*idem.Tx) error { charges++; die(); return nil }, idem.Remembers(0))
		}
		a.dies(t, func(die func()) handler {
			return answering(func(ctx context.Context) error { return charge(ctx, die) })
		})
		for range 3 {
			a.clock.Advance(30 * time.Hour)
			_, err := a.do(t, answering(func(ctx context.Context) error {
				if err := paying(ctx, "risk", func(*idem.Tx) error { return nil }, opts...); err != nil {
					return err
				}
				return charge(ctx, func() {})
			}))
			if r := a.record(t); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || charges != 1 || r.Phases[len(r.Phases)-1].Name != "charge" {
				t.Fatalf("%s: got %v, %s after %d charges, in %+v; want it stuck in the charge", name, err, r.State, charges, r.Phases)
			}
		}
	}
}

// A call that can't begin leaves no mark, and a mark of an earlier attempt gets the hash of
// what the next one sends.
func TestMarkIsWrittenForTheCallThatFollows(t *testing.T) {
	t.Parallel()
	a, charges := begun(), 0
	charge := func(die func(), opts ...idem.PhaseOption) handler {
		return answering(func(ctx context.Context) error {
			return paying(ctx, "charge", func(*idem.Tx) error { charges++; die(); return nil }, opts...)
		})
	}
	_, _ = a.do(t, func(ctx context.Context) (idem.Response, error) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		resp, err := charge(func() {})(over)
		if r := a.record(t); r.Mark != "" || charges != 0 {
			t.Errorf("got %v, the mark %q and %d calls, want no mark and no call", err, r.Mark, charges)
		}
		return resp, err
	})
	for _, opts := range [][]idem.PhaseOption{nil, {idem.Sends("payments", 20, "charge")}} {
		a.leaseOver()
		a.dies(t, func(die func()) handler { return charge(die, opts...) })
	}
	a.leaseOver()
	if _, err := a.do(t, charge(func() {}, idem.Sends("payments", 30, "charge"))); !errors.Is(err, idem.ErrStuck) || charges != 2 {
		t.Errorf("got %v after %d calls, in doubt about what was sent: %v", err, charges, a.record(t).Sent)
	}
}

// A call that may have been made is never forgotten with its key: a day later the same key
// would call again under another derived key.
func TestCallInDoubtDoesNotExpire(t *testing.T) {
	t.Parallel()
	timesOut := func(func()) error { return errors.New("timeout") }
	dies := func(die func()) error { die(); return errors.New("died") }
	safe := func(func()) error { return idem.SafeToRetry(errors.New("refused")) }
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		key  bool
		end  func(die func()) error
		kept bool
	}{
		"the call times out":           {asIs, true, timesOut, true},
		"the same, declared":           {callsOut, true, timesOut, true},
		"it asks for no key":           {callsOut, false, timesOut, true},
		"the process dies in the call": {asIs, true, dies, true},
		"it dies, declared":            {callsOut, true, dies, true},
		"it certainly had no effect":   {callsOut, true, safe, false},
		"nor had one without a key":    {callsOut, false, safe, false},
	} {
		a, calls := begun(tc.opt), 0
		st := idemtest.Faulty(&a.mem, nil)
		charge := func(end func(die func()) error) handler {
			return answering(func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
					if calls++; tc.key {
						tx.Key("payments")
					}
					return 1, end(st.Crash)
				})
				return err
			})
		}
		if _, err := do(t, idem.New(st, a.opts...), charge(tc.end)); err == nil {
			t.Fatal("no error")
		}
		r := a.record(t)
		if kept := r.Keep == store.KeepOpen && r.Expires.IsZero(); kept != tc.kept || !tc.kept && len(r.Doubts) > 0 {
			t.Errorf("%s: keep %q, expires %v, in doubt %v; want it kept: %t", name, r.Keep, r.Expires, r.Doubts, tc.kept)
		}
		if !tc.kept {
			continue
		}
		a.clock.Advance(30 * time.Hour) // beyond the key's lifetime, and its provider's memory
		if _, err := a.do(t, charge(func(func()) error { return nil })); !errors.Is(err, idem.ErrStuck) || calls != 1 {
			t.Errorf("%s, a day later: %v after %d calls, want it stuck after one", name, err, calls)
		}
	}
}

// A phase's result leaves room for what take-overs add to its record, which nobody could
// otherwise finish, nor give up. After a call, what can never be stored waits for people.
func TestWhatNeverFitsWaitsForPeople(t *testing.T) {
	t.Parallel()
	large := idem.NewJob("mail", strings.Repeat("x", 200<<10))
	result := func(size int) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := idem.Atomic(ctx, "large", func(context.Context, *idem.Tx) (string, error) { return strings.Repeat("x", size), nil })
			return err
		}
	}
	called := func(then func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := paying(ctx, "charge", func(*idem.Tx) error { return nil }); err != nil {
				return err
			}
			return then(ctx)
		}
	}
	stages := func(ctx context.Context) error {
		err := idem.Stage(ctx, large, large)
		if !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("Stage returned %v, want ErrTooLarge before any commit", err)
		}
		return err
	}
	for name, tt := range map[string]struct {
		fn   func(context.Context) error
		plan idemtest.Plan
		fits bool
	}{
		"a result with room":       {fn: result(380 << 10), fits: true},
		"a result without":         {fn: result(399 << 10)},
		"jobs, after a call":       {fn: called(stages)},
		"jobs whose error is lost": {fn: called(func(ctx context.Context) error { _ = idem.Stage(ctx, large, large); return nil })},
		"the finish, after a call": {fn: called(func(context.Context) error { return nil }), plan: func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.Commit.Next.State == store.Done {
				return idemtest.Fault{Err: store.ErrTooLarge}
			}
			return idemtest.Fault{}
		}},
	} {
		a := accepting()
		_, err := do(t, idem.New(idemtest.Faulty(&a.mem, tt.plan), a.opts...), answering(tt.fn))
		if r := a.record(t); (err == nil) != tt.fits || !tt.fits && (!errors.Is(err, store.ErrTooLarge) || !r.Blocked) {
			t.Errorf("%s: got %v, waits for people: %t; want it to fit: %t", name, err, r.Blocked, tt.fits)
		}
	}
}

// A key that is asked for when nobody can record its call ends the program: it would stand for
// two calls.
func TestKeyAfterItsPhase(t *testing.T) {
	t.Parallel()
	var late *idem.Tx
	if _, err := begun().do(t, answering(func(ctx context.Context) error {
		return paying(ctx, "charge", func(tx *idem.Tx) error { late = tx; return nil })
	})); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "after its phase has ended") {
			t.Errorf("recovered %v, want a panic that says why", v)
		}
	}()
	t.Errorf("got the key %s", late.Key("payments"))
}

// A call with an unknown outcome is never repeated, unless the error allows it.
func TestNotIdempotent(t *testing.T) {
	t.Parallel()
	fax := func(calls *int, end error) handler {
		return func(ctx context.Context) (idem.Response, error) {
			id, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (string, error) { *calls++; return "sent", end }, idem.NotIdempotent())
			return idem.Response{Status: 201, Body: []byte(id)}, err
		}
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		a, calls := begun(), 0
		for range 3 {
			if _, err := a.do(t, fax(&calls, errors.New("timeout"))); !errors.Is(err, idem.ErrStuck) || calls != 1 {
				t.Fatalf("got %v after %d calls, want it stuck after one", err, calls)
			}
		}
		pk := a.record(t).PK
		if err := a.engine.Settle(t.Context(), pk, idem.Settlement{}); !errors.Is(err, idem.ErrResult) {
			t.Errorf("settled without an outcome: %v, want ErrResult", err)
		}
		if err := a.engine.Settle(t.Context(), pk, idem.Settlement{Result: []byte(`"by hand"`)}); err != nil {
			t.Fatal(err)
		}
		if res, err := a.do(t, fax(&calls, nil)); err != nil || string(res.Body) != "by hand" || calls != 1 {
			t.Errorf("got %+v, %v after %d calls, want the result by hand", res, err, calls)
		}
	})
	t.Run("safe to retry", func(t *testing.T) {
		t.Parallel()
		a, calls := begun(), 0
		if _, err := a.do(t, fax(&calls, idem.SafeToRetry(errors.New("connection refused")))); err == nil || errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		if res, err := a.do(t, fax(&calls, idem.SafeToRetry(nil))); err != nil || res.Status != 201 || calls != 2 {
			t.Errorf("got %+v, %v after %d calls, want 201 after two", res, err, calls)
		}
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		a, calls := begun(), 0
		for i := range 2 {
			res, err := a.do(t, fax(&calls, idem.Respond(idem.Response{Status: 402})))
			if err != nil || res.Status != 402 || res.Replayed != (i > 0) || calls != 1 {
				t.Errorf("got %+v, %v after %d calls, want 402 after one", res, err, calls)
			}
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		a, calls := begun(), 0
		survived(func() {
			_, _ = a.do(t, answering(func(ctx context.Context) error {
				return paying(ctx, "fax", func(*idem.Tx) error { panic("died") }, idem.NotIdempotent())
			}))
		})
		early := func(context.Context) (idem.Response, error) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 402})
		}
		if _, err := a.do(t, early); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Errorf("an answer from before the call hides its unknown outcome: %v", err)
		}
		if _, err := a.do(t, fax(&calls, nil)); !errors.Is(err, idem.ErrStuck) || calls != 0 {
			t.Errorf("got %v after %d calls, want it stuck without one", err, calls)
		}
	})
	t.Run("an Atomic doesn't pass it", func(t *testing.T) {
		t.Parallel()
		a := begun()
		a.dies(t, func(die func()) handler {
			return answering(func(ctx context.Context) error {
				return paying(ctx, "transfer", func(*idem.Tx) error { die(); return nil }, idem.NotIdempotent())
			})
		})
		a.leaseOver()
		if _, err := a.do(t, answering(func(ctx context.Context) error { return recordPhase(ctx, "transfer") })); err == nil || len(a.mem.Writes()) > 0 {
			t.Errorf("got %v, wrote %v; want an error, and nothing", err, written(&a.mem))
		}
	})
}

// A call whose context is over would certainly fail: it isn't begun, and nobody has to look for
// it, also if the commit of its begin has used up the time.
func TestCallWithoutTimeIsNotBegun(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"before its begin": 1, "in the commit of its begin": 2} {
		var mem idem.MemoryStore
		ctx, leave := context.WithCancel(t.Context())
		calls := 0
		slow := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.N == at { // of the phase, or of the call's begin
				leave()
			}
			return idemtest.Fault{}
		})
		transfer := answering(func(ctx context.Context) error {
			if err := recordPhase(ctx, "ride"); err != nil {
				return err
			}
			return paying(ctx, "transfer", func(*idem.Tx) error { calls++; return nil }, idem.NotIdempotent())
		})
		if _, err := idem.New(slow).Do(ctx, request, transfer); !errors.Is(err, idem.ErrNoTime) || calls != 0 {
			t.Errorf("%s: got %v after %d calls, want ErrNoTime without one", name, err, calls)
		}
		if r := one(&mem); r.State != store.Open || len(r.Phases) != 1 || r.Phases[0].Intent || slow.Calls("Commit") != 2*at {
			t.Errorf("%s: %s with phases %+v after %d commits, want the first phase alone", name, r.State, r.Phases, slow.Calls("Commit"))
		}
		if res, err := idem.New(&mem).Do(t.Context(), request, transfer); err != nil || res.Status != 200 || calls != 1 {
			t.Errorf("%s: the retry: %+v, %v after %d calls", name, res, err, calls)
		}
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
			a := begun()
			res, err := a.do(t, answering(func(ctx context.Context) error {
				return paying(ctx, "fax", func(tx *idem.Tx) error { add(tx); return end }, idem.NotIdempotent())
			}))
			if r := a.record(t); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || len(r.Jobs)+len(a.mem.Writes()) != 0 {
				t.Errorf("%s beside %s: got %+v, %v, the record is %s; want it stuck", what, says, res, err, r.State)
			}
		}
	}
}

// An Atomic calls nobody: after a failure no call of it is in doubt, though it has asked for a
// key.
func TestKeyOfAnAtomicIsNoCall(t *testing.T) {
	t.Parallel()
	a := begun()
	_, _ = a.do(t, answering(func(ctx context.Context) error {
		if err := recordPhase(ctx, "one"); err != nil {
			return err
		}
		_, err := idem.Atomic(ctx, "two", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Key("id"); return 0, errors.New("down") })
		return err
	}))
	if r := a.record(t); len(r.Phases) != 1 || len(r.Doubts) != 0 {
		t.Errorf("%d phases, in doubt: %q; want one, and none", len(r.Phases), r.Doubts)
	}
}

// The text of net/http's error for a failed call contains the whole URL. Neither the record nor
// a log line has the URL's query.
func TestErrorTextsHaveNoQuery(t *testing.T) {
	t.Parallel()
	call := func(ctx context.Context) error {
		return paying(ctx, "transfer", func(*idem.Tx) error {
			return idem.SafeToRetry(fmt.Errorf("pay: %w", &url.Error{Op: "Post", URL: "https://bank.example/pay?token=sk_live_123", Err: io.EOF}))
		})
	}
	for name, handler := range map[string]func(context.Context) (idem.Response, error){
		"the handler returns the error": answering(call),
		"the handler hides the error": func(ctx context.Context) (idem.Response, error) {
			_ = call(ctx)
			return idem.Response{Status: 201}, nil
		},
	} {
		var mem idem.MemoryStore
		var log bytes.Buffer
		e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.Hooks = idem.Log(o.Logger)
		})
		if _, err := e.Serve(t.Context(), keyed("k"), handler); err != nil {
			t.Fatal(err)
		}
		records := mem.Records()
		texts := log.String()
		for _, r := range records {
			texts += r.LastErr
		}
		if strings.Contains(texts, "sk_live") || !strings.Contains(texts, "https://bank.example/pay?…") {
			t.Errorf("%s: the log and the record have\n%s\nwant the URL without its query", name, texts)
		}
	}
}
