package idem_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/state"
)

// keyless is a bank without keys: each call is a payment.
type keyless struct{ paid []string }

func (b *keyless) ask(_ context.Context, c idem.Call) (string, idem.Found, error) {
	if slices.Contains(b.paid, c.Key) {
		return "found", idem.Made, nil
	}
	return "", idem.NotMade, nil
}

func (b *keyless) pays(phase string, look bool, then func() error, steps []string, opts ...idem.PhaseOption) handler {
	return func(ctx context.Context) (idem.Response, error) {
		opts := append([]idem.PhaseOption{idem.Sends("bank", 500, steps...)}, opts...)
		if look {
			opts = append(opts, idem.LookUp(b.ask, 0))
		}
		got, err := idem.Foreign(ctx, phase, func(_ context.Context, tx *idem.Tx) (string, error) {
			b.paid = append(b.paid, tx.Key("bank", steps...))
			return "paid", then()
		}, opts...)
		return idem.Response{Status: 201, Body: []byte(got)}, err
	}
}

// Whatever a deploy, or another branch, makes of a phase whose call may have been made and is
// never repeated: the call isn't made again. Either its look-up finds it, or people decide.
func TestDeploysOverACallThatIsNeverRepeated(t *testing.T) {
	t.Parallel()
	good := func() error { return nil }
	once := idem.NotIdempotent()
	for name, next := range map[string]func(b *keyless) handler{
		"its phase is renamed":           func(b *keyless) handler { return b.pays("payment", true, good, nil, once) },
		"renamed, without a look-up":     func(b *keyless) handler { return b.pays("payment", false, good, nil, once) },
		"it is repeated from now on":     func(b *keyless) handler { return b.pays("pay", false, good, nil) },
		"it is repeated, and looked up":  func(b *keyless) handler { return b.pays("pay", true, good, nil) },
		"its look-up goes":               func(b *keyless) handler { return b.pays("pay", false, good, nil, once) },
		"it gets a look-up, or keeps it": func(b *keyless) handler { return b.pays("pay", true, good, nil, once) },
		"its call gets a step":           func(b *keyless) handler { return b.pays("pay", true, good, []string{"x"}, once) },
		"another call goes to its provider": func(b *keyless) handler {
			return func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "tip", func(_ context.Context, tx *idem.Tx) (string, error) { tx.Key("bank"); return "tip", nil })
				if err != nil {
					return idem.Response{}, err
				}
				return b.pays("pay", true, good, nil, once)(ctx)
			}
		},
	} {
		for before, opts := range map[string][]idem.PhaseOption{"NotIdempotent": {once}, "Remembers(0)": {idem.Remembers(0)}} {
			for _, look := range []bool{false, true} {
				for _, fails := range []bool{false, true} {
					b, op := new(keyless), begun()
					if fails {
						_, _ = op.do(t, b.pays("pay", look, func() error { return errDown }, nil, opts...))
					} else {
						op.dies(t, func(die func()) handler { return b.pays("pay", look, func() error { die(); return nil }, nil, opts...) })
					}
					op.clock.Advance(20 * time.Minute)
					if _, err := op.do(t, next(b)); len(b.paid) != 1 {
						t.Errorf("%s, before it %s, with a look-up %t, failed %t: got %d payments and %v, want one", name, before, look, fails, len(b.paid), err)
					}
				}
			}
		}
	}
}

// A client that polls for as long as the look-up is down leaves nothing to people, whether the
// request is stored or not.
func TestPollingLeavesNothingToPeople(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]*operation{"stored": accepting(), "not stored": begun()} {
		paid := 0
		down := func(context.Context, idem.Call) (string, idem.Found, error) { return "", 0, errDown }
		pays := func(then func()) handler {
			return answering(func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "pay", func(_ context.Context, tx *idem.Tx) (string, error) {
					tx.Key("bank")
					paid++
					then()
					return "paid", nil
				}, idem.NotIdempotent(), idem.Sends("bank", 1), idem.LookUp(down, 0))
				return err
			})
		}
		op.dies(t, pays)
		op.clock.Advance(time.Hour)
		for range 1200 {
			if _, err := op.do(t, pays(func() {})); !errors.Is(err, idem.ErrUnfinished) || paid != 1 {
				t.Fatalf("%s: got %v after %d calls, want it unfinished", name, err, paid)
			}
			op.clock.Advance(time.Second)
		}
	}
}

// An operator ends the lease of an attempt that works all the same: its call goes out before
// the lease would have ended, and is found 14 minutes later. within is 15 minutes.
func TestCallsAfterTheirLeaseWasEnded(t *testing.T) {
	t.Parallel()
	op := begun()
	var paid []time.Time
	ask := func(_ context.Context, c idem.Call) (string, idem.Found, error) {
		for _, at := range paid {
			if !op.clock.Now().Before(at.Add(14 * time.Minute)) {
				return "found", idem.Made, nil
			}
		}
		return "", idem.NotMade, nil
	}
	fn := func(then func()) handler {
		return answering(func(ctx context.Context) error {
			_, err := idem.Foreign(ctx, "pay", func(_ context.Context, tx *idem.Tx) (string, error) {
				tx.Key("bank")
				then()
				paid = append(paid, op.clock.Now())
				return "paid", nil
			}, idem.NotIdempotent(), idem.Sends("bank", 1), idem.LookUp(ask, 15*time.Minute))
			return err
		})
	}
	_, _ = op.do(t, fn(func() {
		op.clock.Advance(time.Second)
		if err := op.engine.EndLease(t.Context(), state.TicketFor(op.record(t)), "op"); err != nil {
			t.Fatal(err)
		}
		op.clock.Advance(99 * time.Second)
	}))
	op.clock.Advance(13*time.Minute + 22*time.Second) // 15m1s after the lease was ended: the client comes back
	_, err := op.do(t, fn(func() {}))
	if len(paid) != 1 || !errors.Is(err, idem.ErrUnfinished) {
		t.Errorf("got %d payments and %v, want one, and too early to tell", len(paid), err)
	}
}

// A repeatable call in doubt whose Sends gives another name (a deploy added a step): the record
// names the first call, so the engine can know that the second one would be another payment.
func TestALookedUpCallKeepsItsName(t *testing.T) {
	t.Parallel()
	good := func() error { return nil }
	for _, fails := range []bool{false, true} {
		b, op := new(keyless), begun()
		if fails {
			_, _ = op.do(t, b.pays("pay", true, func() error { return errDown }, nil))
		} else {
			op.dies(t, func(die func()) handler { return b.pays("pay", true, func() error { die(); return nil }, nil) })
		}
		op.clock.Advance(20 * time.Minute)
		if _, err := op.do(t, b.pays("pay", true, good, []string{"x"})); len(b.paid) != 1 {
			t.Errorf("failed %t: got %d payments and %v, want one", fails, len(b.paid), err)
		}
	}
}
