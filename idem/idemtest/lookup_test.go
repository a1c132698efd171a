package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
)

const within = 15 * time.Minute

// asksAt looks a payment up at a provider.
func asksAt(find func(context.Context, string) ([]idemtest.Effect, error)) idem.PhaseOption {
	return idem.LookUp(func(ctx context.Context, c idem.Call) (string, idem.Found, error) {
		all, err := find(ctx, c.Key)
		switch {
		case err != nil:
			return "", 0, err
		case len(all) == 0:
			return "", idem.NotMade, nil
		case all[0].Key != c.Key:
			return "", 0, errors.New("the answer is about another key")
		case len(all) > 1 || string(all[0].Body) != fmt.Sprint(c.Sends):
			return "", 0, fmt.Errorf("%w: %d payments, of %s", idem.ErrContradiction, len(all), all[0].Body)
		}
		return all[0].ID, idem.Made, nil
	}, within)
}

// pays pays 500 with a call and a look-up.
func pays(ctx context.Context, call func(ctx context.Context, name, key string, args any) (idemtest.Effect, error), opts ...idem.PhaseOption) (idem.Response, error) {
	id, err := idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (string, error) {
		e, err := call(ctx, "pay", tx.Key("bank"), 500)
		return e.ID, err
	}, append(opts, idem.Sends("bank", 500))...)
	return idem.Response{Status: 201, Body: []byte(id)}, err
}

// What look-ups find, however they fare.
func TestProviderLooksUp(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	p := idemtest.Provider{Now: clock.Now, Memory: -1, Lag: time.Minute}
	finds := func(name string, want ...string) {
		t.Helper()
		all, err := p.LookUp(t.Context(), "a")
		var got []string
		if err != nil {
			got = append(got, err.Error())
		}
		for _, e := range all {
			got = append(got, e.ID+e.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	finds("nothing called")
	for _, key := range []string{"a", "b"} {
		if _, err := p.Call(t.Context(), "pay", key, 1); err != nil {
			t.Fatal(err)
		}
	}
	finds("within the lag")
	clock.Advance(time.Minute)
	finds("after the lag", "1a")
	p.NextLooks(idemtest.Look{Behind: true}, idemtest.Look{}, idemtest.Look{Down: true}, idemtest.Look{OtherKey: true}, idemtest.Look{Delay: time.Millisecond})
	finds("behind")
	finds("not behind", "1a")
	finds("down", "idemtest: no answer")
	finds("another key", "2b")
	finds("late", "1a")
	p.Next(idemtest.Fate{Late: time.Hour})
	if _, err := p.Call(t.Context(), "pay", "a", 1); !errors.Is(err, idemtest.ErrNoAnswer) {
		t.Errorf("a late call: got %v, want no answer", err)
	}
	finds("on its way", "1a")
	clock.Advance(time.Hour)
	if n := len(p.Effects()); n != 3 {
		t.Errorf("got %d effects, want the late one among 3", n)
	}
	clock.Advance(time.Minute)
	finds("after it has arrived", "1a", "3a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.NextLooks(idemtest.Look{Delay: time.Hour})
	if _, err := p.LookUp(ctx, "a"); !errors.Is(err, idemtest.ErrNoAnswer) {
		t.Errorf("a look-up whose context ends: got %v, want no answer", err)
	}
}

// A crash anywhere, the look-up included, leaves one payment, and nobody is asked: of a system
// without keys, of one that has forgotten them, and of look-ups that fare badly.
func TestCrashesWithALookUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts  []idem.PhaseOption
		begin func(*idemtest.World)
	}{
		"no keys":               {[]idem.PhaseOption{idem.NotIdempotent()}, nil},
		"no keys, look-ups lag": {[]idem.PhaseOption{idem.NotIdempotent()}, func(w *idemtest.World) { w.Provider.Lag = 10 * time.Minute }},
		"forgotten keys":        {[]idem.PhaseOption{idem.Remembers(time.Second)}, nil},
		"bad look-ups": {[]idem.PhaseOption{idem.NotIdempotent()}, func(w *idemtest.World) {
			w.Provider.NextLooks(idemtest.Look{Down: true}, idemtest.Look{Behind: true}, idemtest.Look{OtherKey: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, _ *idem.Request) (idem.Response, error) {
				return pays(ctx, w.Call, append(tt.opts, asksAt(w.LookUp))...)
			}, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, nil, func(o *idemtest.CrashOptions) {
				o.Begin = func(w *idemtest.World) {
					w.Provider.Memory = -1
					if tt.begin != nil {
						tt.begin(w)
					}
				}
			})
		})
	}
}

// Calls on their way and a look-up that lags: together less than within, no run of 1,000 pays
// twice. Together more, a payment is doubled: within says what nobody can measure.
func TestWithin(t *testing.T) {
	t.Parallel()
	const seed = 47
	for name, tt := range map[string]struct {
		most  time.Duration // on the way and behind, together
		runs  int
		twice bool
	}{
		"less than within": {within, 1000, false},
		"more":             {2 * within, 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd, doubled, lost, asks := rand.New(rand.NewPCG(seed, 1)), 0, 0, 0
			for range tt.runs {
				clock := idemtest.NewClock()
				way := time.Duration(rnd.Int64N(int64(tt.most)-1)) + 1
				lag := tt.most - way
				if tt.runs == 1000 {
					lag = time.Duration(rnd.Int64N(int64(lag)))
				}
				p := idemtest.Provider{Now: clock.Now, Memory: -1, Lag: lag}
				p.Next(idemtest.Fate{Late: way})
				var mem idem.MemoryStore
				e := idem.New(&mem, func(o *idem.Options) { o.Now = clock.Now })
				opts := []idem.PhaseOption{idem.NotIdempotent(), asksAt(func(ctx context.Context, key string) ([]idemtest.Effect, error) {
					asks++
					return p.LookUp(ctx, key)
				})}
				var err error
				for range 5000 {
					_, err = e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(ctx context.Context) (idem.Response, error) { return pays(ctx, p.Call, opts...) })
					if err == nil || errors.Is(err, idem.ErrStuck) {
						break
					}
					clock.Advance(time.Duration(1+rnd.IntN(9)) * time.Second)
				}
				if err != nil {
					t.Fatalf("on its way for %v, behind by %v: got %v", way, lag, err)
				}
				clock.Advance(time.Hour)
				switch n := len(p.Effects()); {
				case n > 1:
					doubled++
				case n == 0:
					lost++
				}
			}
			t.Logf("%d runs, %d doubled, %d lost, %d look-ups", tt.runs, doubled, lost, asks)
			if doubled > 0 != tt.twice || lost > 0 {
				t.Errorf("got %d of %d runs with two payments and %d with none; want two: %t", doubled, tt.runs, lost, tt.twice)
			}
		})
	}
}
