package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stripe/stripe-go/v85"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

// Each of Stripe's events is handled once. Stripe's own library decodes Body.
func ExampleNew() {
	const secret = "whsec_from_the_dashboard"
	verifier, err := webhook.NewStripe(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	hooks := webhook.New(&idem.MemoryStore{}, "stripe", verifier, func(_ context.Context, ev webhook.Event) error {
		var event stripe.Event
		if err := json.Unmarshal(ev.Body, &event); err != nil {
			return err
		}
		fmt.Println("handling", ev.ID, event.Type)
		return nil
	})

	for range 2 { // signed anew for each delivery
		body := `{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}`
		signed := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: secret})
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(body))
		r.Header.Set(webhook.StripeHeader, signed.Header)
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get(idem.ReplayedHeader) == "true")
	}
	// Output:
	// handling evt_1 payment_intent.succeeded
	// 200 false
	// 200 true
}

// A secret during a rotation: both secrets are valid until the old secret is
// removed.
func ExampleNewStandard() {
	verifier, err := webhook.NewStandard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", func(o *webhook.VerifierOptions) {
		o.MoreSecrets = []string{"whsec_plJ3nmyCDGBKInavdOK15jslQ9r8GKYq"}
	})
	fmt.Println(err)
	_, err = verifier.Verify(http.Header{}, []byte(`{}`))
	fmt.Println(errors.Is(err, webhook.ErrNotSigned), err)
	// Output:
	// <nil>
	// true webhook is not signed: no Webhook-Signature
}
