package lambda

// Webhook lets h answer the events of an adapter for HTTP:
//
//	lambda.Start(lambda.Webhook(lambda.HTTPAPI, webhook.New(store, "stripe", verifier, handle)))
//
// It panics if anything is nil, or the adapter is one of [Direct]'s: mistakes in
// the program, best found at cold start.
func Webhook[Ev, Re any](a Adapter[Ev, Re], h Endpoint) *EndpointHandler[Ev, Re] {
	if a.Request == nil || a.Reply == nil || a.typed || h == nil {
		panic("lambda: Webhook: an adapter for HTTP and an endpoint are required") //nolint:forbidigo // a mistake in the program
	}
	return &EndpointHandler[Ev, Re]{adapter: a, endpoint: h}
}
