// Package webhook receives webhooks: it checks who sent them, and handles each
// event once, however often it is delivered.
//
//	secrets, err := webhook.NewStripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
//	if err != nil {
//		log.Fatal(err)
//	}
//	hooks := webhook.New(store, "stripe", secrets, func(ctx context.Context, ev webhook.Event) error {
//		_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
//			tx.Write(dynamo.Put(payments, paymentOf(ev))) // commits with the record of the event, or not at all
//			tx.Stage(idem.NewJob("send_receipt", receiptOf(ev)))
//			return nil, nil
//		})
//		return err
//	})
//	http.Handle("POST /webhooks/stripe", hooks)                // a server
//	lambda.Start(lambda.Webhook(lambda.HTTPAPI, hooks))        // or a function
//
// [NewStripe] checks Stripe's signatures, [NewStandard] those of the Standard
// Webhooks specification; a [Verifier] of one's own can check any others.
//
// # What holds
//
//   - Nothing is parsed, stored or handled before a signature over the very
//     bytes of the body is found to be good, and recent.
//   - An event is known by the id its provider gave it. Its handler runs until it
//     succeeds once, and never again while the record is kept
//     ([DefaultRetention]). Of deliveries that come at once, one is handled.
//   - An answer of 2xx means that the event is on record as handled. Providers
//     repeat everything else, for days: they do what a client's retry does.
//   - What the handler does in its phases ([idem.Atomic], [idem.Finish]) commits
//     with the record of the event, so it happens once also if the process dies.
//   - Secrets and bodies are in no log and no error.
//
// # What does not
//
// A handler's effects outside of phases may repeat: where it fails after them,
// or where the process dies or the store fails before the event is recorded.
//
// Events come in any order, and two events may tell of the same thing. Both are
// the handler's business: let writes commute, or carry a condition that an older
// event fails.
//
// # Bodies must arrive as they were sent
//
// A signature is over bytes. A body that was parsed and encoded again has
// others, and the error is ErrNoValidSignature. The adapters of package lambda
// decode what gateways send in base64 and change nothing else; for net/http no
// middleware in front may have read the body.
package webhook
