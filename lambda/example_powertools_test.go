package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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

// A service that has moved from Powertools' event_key_jmespath, and one that had
// payload_validation_jmespath too: an event with the same key is a retry, whatever else is
// in it, as a new time. docs/use/powertools.md has the options.
func ExampleDirect_fieldsAsKey() {
	type order struct {
		OrderID string `json:"order_id"`
		Amount  int    `json:"amount"`
		SentAt  string `json:"sent_at"`
	}
	charge := func(_ context.Context, o order) (string, error) { return fmt.Sprint("paid ", o.Amount), nil }
	byID := func(o order) (string, error) { return o.OrderID, nil }

	keyAlone := func(o *idem.Options) {
		o.Fingerprint.FuncName = "key"
		o.Fingerprint.Func = func(*idem.Request) ([]byte, error) { return nil, nil }
	}
	andAmount := func(o *idem.Options) {
		o.Fingerprint.FuncName = "amount"
		o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) {
			var in order
			err := json.Unmarshal(r.Body, &in)
			return strconv.AppendInt(nil, int64(in.Amount), 10), err
		}
	}
	for _, fingerprint := range []func(*idem.Options){keyAlone, andAmount} {
		h := lambda.Wrap(idem.New(new(idem.MemoryStore), idem.OneScope, fingerprint), lambda.Direct[order, string](byID), charge)
		for _, o := range []order{{"1", 20, "10:00"}, {"1", 20, "10:05"}, {"1", 30, "10:10"}} {
			answer, err := h.Handle(context.Background(), o)
			fmt.Println(answer, errors.Is(err, idem.ErrMismatch))
		}
	}
	// Output:
	// paid 20 false
	// paid 20 false
	// paid 20 false
	// paid 20 false
	// paid 20 false
	//  true
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
				if op, _ := idem.FromContext(ctx); err == nil && fails && !op.TakenOver() {
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
