package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

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
