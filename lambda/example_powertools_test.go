package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// The function that docs/use/powertools.md has beside one with Powertools for Python.
func ExampleDirect_powertools() {
	store, provider := new(idem.MemoryStore), new(idemtest.Provider)
	charge := func(ctx context.Context, amount int, key string) (string, error) {
		e, err := provider.Call(ctx, "charge", key, amount)
		return "payment " + e.ID, err
	}

	type order struct {
		OrderID string `json:"order_id"`
		Amount  int    `json:"amount"`
	}
	type payment struct {
		Payment string `json:"payment"`
	}
	byID := func(o order) (string, error) { return o.OrderID, nil }
	h := lambda.Wrap(idem.New(store), lambda.Direct[order, payment](byID), func(ctx context.Context, o order) (payment, error) {
		id, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
			return charge(ctx, o.Amount, tx.Key("payments"))
		})
		return payment{id}, err
	})

	for _, o := range []order{{"1", 20}, {"1", 20}, {"1", 30}, {"", 20}} {
		p, err := h.Handle(context.Background(), o)
		fmt.Println(p.Payment, errors.Is(err, idem.ErrMismatch), errors.Is(err, idem.ErrKeyMissing))
	}
	fmt.Println(len(provider.Effects()), "charge")
	// Output:
	// payment 1 false false
	// payment 1 false false
	//  true false
	//  false true
	// 1 charge
}

// The rows of docs/use/powertools.md in which a handler fails or its process dies behind
// the charge.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	type order struct{ ID string }
	start := func(fails bool) func(*idemtest.World) *lambda.Handler[order, string] {
		return func(w *idemtest.World) *lambda.Handler[order, string] {
			byID := func(o order) (string, error) { return o.ID, nil }
			return lambda.Wrap(w.Engine(), lambda.Direct[order, string](byID), func(ctx context.Context, _ order) (string, error) {
				id, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
					e, err := w.Call(ctx, "charge", tx.Key("payments"), 20)
					return e.ID, err
				})
				if op, _ := idem.FromContext(ctx); err == nil && fails && !op.Resumed() {
					err = errors.New("no answer today")
				}
				return id, err
			}, named("charges"))
		}
	}
	for _, fails := range []bool{false, true} {
		runs := 0
		lambdatest.CrashEverywhere(t, start(fails), order{"1"}, func(t testing.TB, w *idemtest.World, id string) {
			if runs++; id != "1" || len(w.Provider.Effects()) != 1 {
				t.Errorf("fails %t: payment %q, %d charges", fails, id, len(w.Provider.Effects()))
			}
		}, func(o *idemtest.CrashOptions) { o.Begin = func(*idemtest.World) {} })
		if runs < 10 {
			t.Errorf("fails %t: %d runs", fails, runs)
		}
	}
}
