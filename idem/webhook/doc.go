// Package webhook receives webhooks: it verifies the sender, and handles each
// event once, however often the event is delivered.
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
// Webhooks specification. Implement [Verifier] for other signatures.
//
// # What it guarantees
//
//   - Nothing of the body is parsed, and nothing is stored or handled, before a valid
//     and recent signature over the body's bytes is found.
//   - An event is identified by the provider's id. Deliveries of the event run the
//     handler until one run has succeeded. After that, no delivery runs the handler while
//     the record is kept (31 days by default). Of several simultaneous deliveries, only one
//     runs the handler.
//   - An answer of 2xx means that the event is recorded as handled (see [Handler.Serve]
//     for [idem.ModeOff] and [idem.ModeOpen]). After any other answer, providers deliver
//     the event again, for days.
//   - The effects of the handler's phases ([idem.Atomic], [idem.Finish]) commit together
//     with the record of the event. So the effects happen once even if the process dies.
//   - Logs and errors hold no secrets and no bodies, except what your handler writes
//     into its own errors.
//
// # What it doesn't guarantee
//
// A handler's effects outside of phases happen again on a retry. A retry comes if the
// handler fails after these effects, or if the process dies or the store fails before the
// event is recorded.
//
// Events come in any order, and two events may report the same change. So the handler must
// use writes that give the same result in any order, or writes with a condition that is
// false for an older event.
//
// # Bodies must arrive as they were sent
//
// A signature covers the body's bytes. A body that was parsed and encoded again has other
// bytes and is refused with ErrNoValidSignature. The adapters of package lambda decode
// bodies that a gateway has encoded in base64, and change nothing else. Under net/http, no
// middleware may read the body before the handler.
package webhook
