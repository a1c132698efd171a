package rides_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// Whatever call the function dies at, a ride is charged once and its receipt is staged
// once: the kit for users, on Rocket Rides.
func TestARideSurvivesACrashEverywhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engine func(*idem.Options)
		fate   idemtest.Fate
		runs   int // at least
	}{
		"claim first":        {runs: 20},
		"the answer is lost": {fate: idemtest.Fate{LoseAnswer: true}, runs: 15},
		"no completer":       {engine: func(o *idem.Options) { o.Resumable = false }, runs: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *rides.Function {
				app := &rides.App{
					RidesTable: "rides", AuditTable: "audit",
					Payments: rides.Payments{URL: "https://payments.example", Client: *w.Client()},
				}
				return rides.NewFunction(app, w.Engine(func(o *idem.Options) {
					if tt.engine != nil {
						tt.engine(o)
					}
				}))
			}, event(jane, "7f0c", trip), func(t testing.TB, w *idemtest.World, re events.APIGatewayV2HTTPResponse) {
				runs++
				if receipt := idemtest.Staged[rides.Receipt](t, w, rides.ReceiptJob); re.StatusCode != 201 || receipt.To != jane || len(w.Provider.Effects("/v1/charges")) != 1 {
					t.Errorf("%d %s, receipt %+v, charges %+v", re.StatusCode, re.Body, receipt, w.Provider.Effects())
				}
			}, func(o *idemtest.CrashOptions) {
				if tt.fate != (idemtest.Fate{}) {
					o.Begin = func(w *idemtest.World) { w.Provider.Next(tt.fate) }
				}
			})
			if runs < tt.runs {
				t.Errorf("%d runs, want %d or more", runs, tt.runs)
			}
		})
	}
}
