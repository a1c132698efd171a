package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/lambda"
)

const payments = "payments"

type payment struct {
	ID string `dynamodbav:"id"`
}

func paymentOf(ev webhook.Event) payment { return payment{ID: "of " + ev.ID} }

func receiptOf(ev webhook.Event) map[string]string { return map[string]string{"event": ev.ID} }

func receive(store store.Store) (*webhook.Handler, error) {
	verifier, err := webhook.NewStripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	if err != nil {
		return nil, err
	}
	return webhook.New(store, "stripe", verifier, func(ctx context.Context, ev webhook.Event) error {
		_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
			tx.Write(dynamo.Put(payments, paymentOf(ev)))        // one commit:
			tx.Stage(idem.NewJob("send_receipt", receiptOf(ev))) // the payment, the job, and "evt_… is handled"
			return nil, nil
		})
		return err
	}), nil
}

func serve(hooks *webhook.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/stripe", hooks) // a server
	return mux
}

func start(hooks *webhook.Handler) {
	lambda.Start(lambda.Webhook(lambda.HTTPAPI, hooks)) // a function: also REST, FunctionURL, ALB
}

func Example_webhooks() {
	const secret = "whsec_of_the_endpoint"
	_ = start // it doesn't return
	_ = os.Setenv("STRIPE_WEBHOOK_SECRET", secret)
	store := &idem.MemoryStore{}
	hooks, err := receive(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		body := `{"id":"evt_1"}`
		signed := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: secret})
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(body))
		r.Header.Set(webhook.StripeHeader, signed.Header)
		w := httptest.NewRecorder()
		serve(hooks).ServeHTTP(w, r)
		fmt.Println(w.Code, store.Writes())
	}
	// Output:
	// 200 [put payments {"id":"of evt_1"}]
	// 200 [put payments {"id":"of evt_1"}]
}
