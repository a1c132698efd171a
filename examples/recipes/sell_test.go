package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/testkit/statestest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

func TestASaleIsChargedAndShippedOnce(t *testing.T) {
	t.Parallel()
	const machine = "arn:aws:states:eu-central-1:123456789012:stateMachine:shipping"
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
		return api(Charge(func(ctx context.Context, key string, amount int) (string, error) {
			e, err := w.Call(ctx, "charge", key, amount)
			return e.ID, err
		}).Sell)(w)
	}, post("/sales", `{"order":"o1","amount":500}`), func(t testing.TB, w *idemtest.World, re response) {
		job := idemtest.Staged[Sale](t, w, "ship")
		if re.StatusCode != 202 || len(w.Provider.Effects("charge")) != 1 || job != (Sale{"o1", 500, "1"}) {
			t.Fatalf("%d, %d charges, staged %+v", re.StatusCode, len(w.Provider.Effects("charge")), job)
		}
		states := &statestest.States{Types: map[string]string{machine: "STANDARD"}}
		srv := httptest.NewServer(states)
		defer srv.Close()
		ship := sink.NewStateMachine(sfn.New(sfn.Options{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: aws.AnonymousCredentials{}}), machine)
		args, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a week later it has ended, and the job comes again
			if err := errors.Join(ship.Deliver(t.Context(), []jobs.Delivery{{JobID: "op.2.0", Operation: "op", Kind: "ship", Args: args}})...); err != nil {
				t.Error(err)
			}
			states.End()
		}
		if got := states.Inputs(); len(got) != 1 || !strings.Contains(got[0], `"charge":"1"`) {
			t.Errorf("executions of %q", got)
		}
	})
}

func TestAnOrderIsRemindedOfOnceADayLater(t *testing.T) {
	t.Parallel()
	lambdatest.CrashEverywhere(t, api(Remind), post("/orders", `{"order":"o1","amount":500}`), func(t testing.TB, w *idemtest.World, re response) {
		if job := idemtest.Staged[Sale](t, w, "remind"); re.StatusCode != 201 || job != (Sale{Order: "o1", Amount: 500}) {
			t.Errorf("%d, staged %+v", re.StatusCode, job)
		}
		var at time.Time
		for _, c := range w.Commits() {
			for _, j := range c.Next.Jobs {
				at = j.At
			}
		}
		if in := time.Until(at); in < 23*time.Hour || in > 25*time.Hour {
			t.Errorf("reminded in %v", in)
		}
	})
	if re, err := Remind(t.Context(), post("/orders", "{}")); err != nil || re.StatusCode != 400 {
		t.Errorf("%d, %v", re.StatusCode, err)
	}
}
