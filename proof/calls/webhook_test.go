package calls_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

// What a delivery costs, as docs/use/webhooks.md says. The handler's one phase stages
// a job; with writes of its own its commit is a transaction in place of the
// update.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerDelivery(t *testing.T) {
	t.Parallel()
	const secret = "whsec_test"
	store, tr := newStore(t)
	verifier, err := webhook.NewStripe(secret)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := func(name string, opt func(*idem.Options)) *webhook.Handler {
		return webhook.New(store, name, verifier, func(ctx context.Context, _ webhook.Event) error {
			_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
				tx.Stage(idem.NewJob("send_receipt", "r"))
				return nil, nil
			})
			return err
		}, opt)
	}
	plain := endpoint("plain", func(*idem.Options) {})
	for _, tt := range []struct {
		name   string
		to     *webhook.Handler
		secret string
		status int
		want   calls
	}{
		{"not signed by the provider", plain, "whsec_guessed", 400, calls{}},
		{"a new event", plain, secret, 200, calls{"PutItem": 1, "UpdateItem": 1}},
		{"a duplicate", plain, secret, 200, calls{"PutItem": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			tr.Reset()
			p := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(`{"id":"evt_1"}`), Secret: tt.secret})
			re := tt.to.Serve(ctx, idem.Request{Method: "POST", Header: http.Header{webhook.StripeHeader: {p.Header}}, Body: p.Payload})
			if re.Status != tt.status {
				t.Errorf("got %d %s", re.Status, re.Body)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}
