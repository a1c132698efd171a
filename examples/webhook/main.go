// Command webhook is a function that keeps a table of payments up to date with
// Stripe's events, and handles each event once.
//
// Settings: IDEM_TABLE and PAYMENTS_TABLE (partition key "id"),
// STRIPE_WEBHOOK_SECRET, and during a rotation STRIPE_WEBHOOK_SECRET_2 for the second
// secret.
package main

import (
	"log"
	"log/slog"
	"os"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/webhook/payments"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/lambda"
)

func main() {
	client, err := dynamo.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err != nil {
		log.Fatal(err)
	}
	table := os.Getenv("PAYMENTS_TABLE")
	if table == "" {
		log.Fatal("PAYMENTS_TABLE is not set")
	}
	verifier, err := webhook.NewStripe(os.Getenv("STRIPE_WEBHOOK_SECRET"), func(o *webhook.VerifierOptions) {
		if second := os.Getenv("STRIPE_WEBHOOK_SECRET_2"); second != "" {
			o.MoreSecrets = []string{second}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	hooks := webhook.New(store, "stripe", verifier, payments.Recorder{Table: table}.Handle, func(o *idem.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	})
	lambda.Start(lambda.Webhook(lambda.HTTPAPI, hooks))
}
