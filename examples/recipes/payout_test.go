package recipes

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// bank is a system without keys, whose search is behind.
func bank(w *idemtest.World) Payouts {
	w.Provider.Memory, w.Provider.Lag = -1, behind
	return Payouts{
		Pay: func(ctx context.Context, reference string, p Payout) (Paid, error) {
			e, err := w.Call(ctx, "pay", reference, p)
			return Paid{e.ID, p.Cents}, err
		},
		Find: func(ctx context.Context, reference string) (all []Paid, err error) {
			found, err := w.LookUp(ctx, reference)
			for _, e := range found {
				var p Payout
				err = json.Unmarshal(e.Body, &p)
				all = append(all, Paid{e.ID, p.Cents})
			}
			return all, err
		},
	}
}

// Wherever the process crashes, the payout is made once, and nobody is asked.
func TestAPayoutIsMadeOnce(t *testing.T) {
	t.Parallel()
	start := func(w *idemtest.World) *lambda.Handler[request, response] {
		return lambda.Wrap(w.Engine(func(o *idem.Options) { o.MaxTries = 3 }), lambda.HTTPAPI, bank(w).Make, func(o *lambda.HandlerOptions) { o.Name = "payout" })
	}
	lambdatest.CrashEverywhere(t, start, post("/payouts", `{"to":"jane","cents":500}`), func(t testing.TB, w *idemtest.World, re response) {
		if n := len(w.Provider.Effects()); n != 1 || re.StatusCode != 201 || re.Body != `{"id":"1","cents":500}` {
			t.Errorf("got %d payouts, %d %s; want one, and 201", n, re.StatusCode, re.Body)
		}
	})
}
