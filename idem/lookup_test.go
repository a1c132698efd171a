package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// asked is an operation whose one phase has a look-up.
type asked struct {
	*operation
	opts  []idem.PhaseOption
	calls []string    // keys of the calls
	fails error       // of the calls
	asks  []idem.Call // that were looked up
	found idem.Found  // by the look-up
	err   error       // of the look-up
}

const paid = "paid"

// lookingUp is an operation in whose call a process has died.
func lookingUp(t *testing.T, optFns []func(*idem.Options), opts ...idem.PhaseOption) *asked {
	t.Helper()
	a := &asked{operation: begun(optFns...), opts: opts}
	a.dies(t, func(die func()) handler {
		return a.handler(func() { die() })
	})
	return a
}

// handler pays once.
func (a *asked) handler(then func()) handler {
	return func(ctx context.Context) (idem.Response, error) {
		got, err := idem.Foreign(ctx, "pay", func(_ context.Context, tx *idem.Tx) (string, error) {
			a.calls = append(a.calls, tx.Key("bank"))
			then()
			return paid, a.fails
		}, append(a.opts, idem.Sends("bank", 500), idem.LookUp(a.ask, 0))...)
		return idem.Response{Status: 201, Body: []byte(got)}, err
	}
}

func (a *asked) ask(_ context.Context, c idem.Call) (string, idem.Found, error) {
	a.asks = append(a.asks, c)
	return "found", a.found, a.err
}

func (a *asked) retry(t *testing.T) (idem.Result, error) {
	t.Helper()
	return a.do(t, a.handler(func() {}))
}

// The course of a call in doubt whose provider is asked.
func TestLookUp(t *testing.T) {
	t.Parallel()
	notIdempotent, forgets, once := idem.NotIdempotent(), idem.Remembers(time.Minute), idem.Remembers(0)
	const lease = ample + 3*time.Second // and its margin
	for name, tt := range map[string]struct {
		opts  []idem.PhaseOption
		after time.Duration // the death, the look-up begins
		found idem.Found
		err   error

		calls, asks int
		want        string // answer, or ""
		stuck       bool
		said        string
	}{
		"made":                                  {[]idem.PhaseOption{notIdempotent}, lease, idem.Made, nil, 1, 1, "found", false, "made"},
		"made, its key forgotten":               {[]idem.PhaseOption{forgets}, lease + time.Minute, idem.Made, nil, 1, 1, "found", false, "made"},
		"made, and never to be repeated":        {[]idem.PhaseOption{once}, lease, idem.Made, nil, 1, 1, "found", false, "made"},
		"its key is remembered":                 {nil, lease, idem.NotMade, nil, 2, 0, paid, false, ""},
		"not made, too early":                   {[]idem.PhaseOption{notIdempotent}, lease, idem.NotMade, nil, 1, 1, "", false, "not made yet"},
		"not made":                              {[]idem.PhaseOption{notIdempotent}, lease + 15*time.Minute, idem.NotMade, nil, 2, 1, paid, false, "not made"},
		"not made, its key forgotten":           {[]idem.PhaseOption{forgets}, lease + 15*time.Minute, idem.NotMade, nil, 2, 1, paid, false, "not made"},
		"not made, and never to be repeated":    {[]idem.PhaseOption{once}, lease + 15*time.Minute, idem.NotMade, nil, 1, 1, "", true, "not made"},
		"not idempotent, never to be repeated":  {[]idem.PhaseOption{once, notIdempotent}, lease + 15*time.Minute, idem.NotMade, nil, 1, 1, "", true, "not made"},
		"unknown":                               {[]idem.PhaseOption{notIdempotent}, lease, 0, errDown, 1, 1, "", false, "unknown"},
		"made, but with an error":               {[]idem.PhaseOption{notIdempotent}, lease + time.Hour, idem.NotMade, errDown, 1, 1, "", false, "unknown"},
		"neither answer":                        {[]idem.PhaseOption{notIdempotent}, lease, 0, nil, 1, 1, "", false, "unknown"},
		"a contradiction":                       {[]idem.PhaseOption{notIdempotent}, lease, 0, fmt.Errorf("%w: 400 for 500", idem.ErrContradiction), 1, 1, "", true, "contradiction"},
		"a contradiction, its key is forgotten": {[]idem.PhaseOption{forgets}, time.Hour, 0, fmt.Errorf("%w: twice", idem.ErrContradiction), 1, 1, "", true, "contradiction"},
	} {
		for way, opts := range map[string][]func(*idem.Options){"a client's retry": nil, "a completer": {resumable}, "with CallsOut": {callsOut}} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				a := lookingUp(t, opts, tt.opts...)
				a.found, a.err = tt.found, tt.err
				a.clock.Advance(tt.after)
				var err error
				if way == "a completer" {
					if err = a.completes(t, a.handler(func() {})); err == nil {
						_, err = a.retry(t)
					}
				} else {
					_, err = a.retry(t)
				}
				r := a.record(t)
				if len(a.calls) != tt.calls || len(a.asks) != tt.asks {
					t.Errorf("got %d calls and %d look-ups, want %d and %d", len(a.calls), len(a.asks), tt.calls, tt.asks)
				}
				for _, c := range a.asks {
					want := idem.Call{Service: "bank", Key: a.calls[0], Sends: 500, First: r.Created, Last: r.Created.Add(c.Last.Sub(r.Created))}
					if diff := cmp.Diff(want, c); diff != "" || c.Last.Sub(r.Created) > lease || !c.Last.After(r.Created) {
						t.Errorf("asked of (-want +got):\n%s", diff)
					}
				}
				switch {
				case tt.stuck:
					if !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || len(r.Phases) != 1 || !r.Phases[0].Intent {
						t.Errorf("got %v, %s, phases %v; want it stuck in the call", err, r.State, r.Phases)
					}
				case tt.want == "":
					e, ok := errors.AsType[*idem.Error](err)
					if !errors.Is(err, idem.ErrUnfinished) || !ok || e.RetryAfter <= 0 {
						t.Errorf("got %v, want it unfinished, with a time to retry after", err)
					}
					if r.State != store.Open || len(r.Doubts) == 0 || r.Tries != 0 && tt.after < time.Hour {
						t.Errorf("got %s, doubts %v, %d tries; want an open doubt, and none", r.State, r.Doubts, r.Tries)
					}
				default:
					if r.Response == nil {
						t.Fatalf("got %v, want %q", err, tt.want)
					}
					if got := string(r.Response.Body); err != nil || got != tt.want {
						t.Errorf("got %q, %v; want %q", got, err, tt.want)
					}
				}
				said := ""
				if r.Asked != nil {
					said = r.Asked.Said
				}
				if said != tt.said {
					t.Errorf("the record says %q, want %q", said, tt.said)
				}
			})
		}
	}
}

// However often it is asked, too early is too early: no try is counted, and a client that comes
// every second asks with growing pauses. What is not made later on is made once.
func TestNothingIsStuckByAskingOften(t *testing.T) {
	t.Parallel()
	a := lookingUp(t, nil, idem.NotIdempotent())
	a.found = idem.NotMade
	var polls int
	for ; len(a.calls) < 2 && polls < 7200; polls++ {
		a.clock.Advance(time.Second)
		if _, err := a.retry(t); errors.Is(err, idem.ErrStuck) {
			t.Fatalf("stuck after %d polls and %d look-ups", polls, len(a.asks))
		}
	}
	if r := a.record(t); len(a.calls) != 2 || r.State != store.Done || r.Tries != 0 || len(a.asks) > 15 || r.Asked.Times != len(a.asks) || polls < 15*60 {
		t.Errorf("got %d calls and %d look-ups in %d polls, %s, %d tries, %+v; want one more call, after a quarter of an hour", len(a.calls), len(a.asks), polls, r.State, r.Tries, r.Asked)
	}
}

// Look-ups that fail after the time in which a copy may arrive count, of clients and
// completers, and only they.
func TestLookUpsThatFailAreLimited(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]func(*idem.Options){"a client": nil, "a completer": {resumable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lookingUp(t, append(opts, func(o *idem.Options) { o.MaxTries = 3 }), idem.NotIdempotent())
			a.err = errDown
			next := func() error {
				a.clock.Advance(2 * time.Hour) // longer than any pause
				if opts != nil {
					return a.completes(t, a.handler(func() {}))
				}
				_, err := a.retry(t)
				return err
			}
			a.clock.Advance(5 * time.Minute)
			if _, err := a.retry(t); !errors.Is(err, idem.ErrUnfinished) {
				t.Fatal(err)
			}
			var err error
			for range 10 {
				if err = next(); errors.Is(err, idem.ErrStuck) {
					break
				}
			}
			r := a.record(t)
			if !errors.Is(err, idem.ErrStuck) || len(a.asks) != 1+3 || len(a.calls) != 1 || !strings.Contains(r.LastErr, errDown.Error()) {
				t.Errorf("got %v after %d look-ups and %d calls: %s; want it stuck after 4", err, len(a.asks), len(a.calls), r.LastErr)
			}
			if err := a.engine.Settle(t.Context(), r.PK, idem.Settlement{Ask: true}); opts == nil && !errors.Is(err, idem.ErrResult) || opts != nil && err != nil {
				t.Fatal(err)
			}
			if opts == nil {
				return
			}
			a.err, a.found = nil, idem.NotMade
			if err := next(); err != nil || len(a.calls) != 2 {
				t.Errorf("asked again: got %v and %d calls, want one more", err, len(a.calls))
			}
		})
	}
}

// The call that follows a look-up has its own doubt, and its own time.
func TestACallAfterALookUpIsInDoubtAnew(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]idem.PhaseOption{"without a key": {idem.NotIdempotent()}, "its key forgotten": {idem.Remembers(time.Minute)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lookingUp(t, nil, opts...)
			a.found = idem.NotMade
			a.clock.Advance(time.Hour)
			a.dies(t, func(die func()) handler { return a.handler(die) })
			if len(a.calls) != 2 || a.calls[0] != a.calls[1] {
				t.Fatalf("got calls %q, want the key twice", a.calls)
			}
			a.clock.Advance(10 * time.Minute)
			if _, err := a.retry(t); !errors.Is(err, idem.ErrUnfinished) || len(a.calls) != 2 {
				t.Errorf("got %v and %d calls, want it too early for another", err, len(a.calls))
			}
			a.found = idem.Made
			a.clock.Advance(10 * time.Minute)
			if res, err := a.retry(t); err != nil || string(res.Body) != "found" {
				t.Errorf("got %q, %v; want what was found", res.Body, err)
			}
		})
	}
}

// A call that has failed is in doubt until its attempt's lease ends, whatever its error.
func TestAFailedCallIsLookedUp(t *testing.T) {
	t.Parallel()
	a := &asked{operation: begun(), opts: []idem.PhaseOption{idem.NotIdempotent()}, fails: errDown}
	if _, err := a.retry(t); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	a.fails, a.found = nil, idem.NotMade
	a.clock.Advance(15 * time.Minute) // after the release, and not after the lease
	if _, err := a.retry(t); !errors.Is(err, idem.ErrUnfinished) || len(a.calls) != 1 {
		t.Errorf("got %v after %d calls, want it too early", err, len(a.calls))
	}
	a.clock.Advance(ample + 3*time.Second)
	if _, err := a.retry(t); err != nil || len(a.calls) != 2 {
		t.Errorf("got %v after %d calls, want one more", err, len(a.calls))
	}
	b := &asked{operation: begun(), opts: a.opts, fails: idem.SafeToRetry(errDown)}
	_, _ = b.retry(t)
	b.fails = nil
	if _, err := b.retry(t); err != nil || len(b.calls) != 2 || len(b.asks) > 0 {
		t.Errorf("after an error that is safe to retry: got %v, %d calls and %d look-ups; want 2 and none", err, len(b.calls), len(b.asks))
	}
}

// A release that had no look-up has left the begin of the call as a phase, and no time: the
// look-up counts from the next attempt.
func TestAnIntentIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]bool{"its process has died": false, "it is stuck": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &asked{operation: accepting(), opts: []idem.PhaseOption{idem.NotIdempotent()}}
			before := func(end func() error) handler {
				return func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Foreign(ctx, "pay", func(_ context.Context, tx *idem.Tx) (string, error) {
						a.calls = append(a.calls, tx.Key("bank"))
						return "", end()
					}, idem.NotIdempotent())
					return idem.Response{Status: 201}, err
				}
			}
			if stuck {
				_, _ = a.do(t, before(func() error { return errDown }))
				if err := a.engine.Settle(t.Context(), a.record(t).PK, idem.Settlement{Ask: true}); err != nil {
					t.Fatal(err)
				}
			} else {
				a.dies(t, func(die func()) handler { return before(func() error { die(); return nil }) })
			}
			a.found = idem.NotMade
			a.clock.Advance(time.Hour)
			for range 2 {
				if err := a.completes(t, a.handler(func() {})); !errors.Is(err, idem.ErrUnfinished) || len(a.calls) != 1 {
					t.Errorf("got %v and %d calls, want it too early", err, len(a.calls))
				}
				a.clock.Advance(10 * time.Minute)
			}
			a.clock.Advance(25 * time.Hour) // nobody knows how long the attempt that began it has worked
			if err := a.completes(t, a.handler(func() {})); err != nil || len(a.calls) != 2 {
				t.Errorf("got %v and %d calls, want one more", err, len(a.calls))
			}
		})
	}
}

// A look-up that doesn't fit its phase is refused before the call.
func TestLookUpsThatDoNotFit(t *testing.T) {
	t.Parallel()
	sends := idem.Sends("bank", 1)
	ok := idem.LookUp(func(context.Context, idem.Call) (string, idem.Found, error) { return "", 0, nil }, 0)
	pays := func(use func(tx *idem.Tx), opts ...idem.PhaseOption) handler {
		return answering(func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "pay", func(ctx context.Context, tx *idem.Tx) (string, error) {
				use(tx)
				return "", context.Cause(ctx)
			}, opts...)
			return err
		})
	}
	key := func(tx *idem.Tx) { tx.Key("bank") }
	for name, tt := range map[string]struct {
		fn   handler
		want error
	}{
		"another type": {pays(key, sends, idem.LookUp(func(context.Context, idem.Call) (int, idem.Found, error) { return 0, 0, nil }, 0)), idem.ErrLookUp},
		"no Sends":     {pays(key, ok), idem.ErrLookUp},
		"two Sends":    {pays(key, ok, sends, idem.Sends("fax", 1)), idem.ErrLookUp},
		"another key":  {pays(func(tx *idem.Tx) { tx.Key("fax") }, ok, sends), idem.ErrKeyReused},
		"a second key": {pays(func(tx *idem.Tx) { tx.Key("bank"); tx.Key("bank", "again") }, ok, sends), idem.ErrKeyReused},
		"a write":      {pays(func(tx *idem.Tx) { tx.Write(note("n")) }, ok, sends), idem.ErrWrite},
		"a job":        {pays(func(tx *idem.Tx) { tx.Stage(idem.NewJob("mail", 1)) }, ok, sends), idem.ErrWrite},
		"a job staged before": {answering(func(ctx context.Context) error {
			return errors.Join(idem.Stage(ctx, idem.NewJob("mail", 1)), run(ctx, pays(key, ok, sends)))
		}), idem.ErrWrite},
		"a job of a keyless": {answering(func(ctx context.Context) error {
			return errors.Join(idem.Stage(ctx, idem.NewJob("mail", 1)), run(ctx, pays(key, ok, sends, idem.NotIdempotent())))
		}), idem.ErrWrite},
		"what fits is allowed": {pays(key, ok, sends), nil},
	} {
		if _, err := begun().do(t, tt.fn); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

func run(ctx context.Context, fn handler) error {
	_, err := fn(ctx)
	return err
}

// What would be sent differs from what was sent: nothing is asked, and people decide.
func TestAnotherContentIsNotLookedUp(t *testing.T) {
	t.Parallel()
	a := lookingUp(t, nil, idem.NotIdempotent())
	a.found = idem.Made
	a.clock.Advance(time.Hour)
	_, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "pay", func(context.Context, *idem.Tx) (string, error) { return "", nil }, idem.NotIdempotent(), idem.Sends("bank", 400), idem.LookUp(a.ask, 0))
		return idem.Response{Status: 201}, err
	})
	if r := a.record(t); !errors.Is(err, idem.ErrStuck) || len(a.asks) != 0 || !strings.Contains(r.LastErr, "other parameters") {
		t.Errorf("got %v, %d look-ups, %q; want it stuck unasked", err, len(a.asks), r.LastErr)
	}
}

// A look-up that was overtaken decides nothing: the write before the call is refused.
func TestAnOvertakenLookUpDecidesNothing(t *testing.T) {
	t.Parallel()
	a := lookingUp(t, nil, idem.NotIdempotent())
	a.clock.Advance(time.Hour)
	var inner error
	ask := func(ctx context.Context, _ idem.Call) (string, idem.Found, error) {
		a.clock.Advance(time.Hour) // its lease is over
		a.found = idem.NotMade
		_, inner = do(t, a.engine, a.handler(func() {}))
		return "", idem.NotMade, nil
	}
	_, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "pay", func(_ context.Context, tx *idem.Tx) (string, error) {
			a.calls = append(a.calls, tx.Key("bank"))
			return "late", nil
		}, idem.NotIdempotent(), idem.Sends("bank", 500), idem.LookUp(ask, 0))
		return idem.Response{Status: 201}, err
	})
	if r := a.record(t); inner != nil || len(a.calls) != 2 || err != nil || string(r.Response.Body) != paid {
		t.Errorf("got %v and %v, %d calls, %q; want one more call, the overtaker's", inner, err, len(a.calls), r.Response.Body)
	}
}

// Without a doubt a look-up changes nothing: neither what is written nor what is asked.
func TestALookUpCostsNothingWithoutADoubt(t *testing.T) {
	t.Parallel()
	a := &asked{operation: begun()}
	if _, err := a.retry(t); err != nil || len(a.asks) > 0 || a.record(t).Ver != 4 || a.record(t).Asked != nil {
		t.Errorf("got %v, %d look-ups, version %d; want none, and 4", err, len(a.asks), a.record(t).Ver)
	}
}
