package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
)

// Endpoint answers requests in their neutral form, by rules of its own.
// *webhook.Handler of package idem/webhook is one.
type Endpoint interface {
	// Serve answers a request. Its body is what the sender sent, byte for byte.
	Serve(ctx context.Context, r idem.Request) idem.Response
	// Refuse answers a request that could not be decoded, and of which r has what
	// could be read.
	Refuse(ctx context.Context, r idem.Request, err error) idem.Response
}

// Webhook lets h answer the events of an adapter for HTTP:
//
//	lambda.Start(lambda.Webhook(lambda.HTTPAPI, webhook.New(store, "stripe", verifier, handle)))
//
// It panics if anything is nil, or the adapter is one of [Direct]'s: mistakes in
// the program, best found at cold start.
func Webhook[Ev, Re any](a Adapter[Ev, Re], h Endpoint) *WebhookHandler[Ev, Re] {
	if a.Request == nil || a.Reply == nil || a.typed || h == nil {
		panic("lambda: Webhook: an adapter for HTTP and an endpoint are required") //nolint:forbidigo // a mistake in the program
	}
	return &WebhookHandler[Ev, Re]{adapter: a, endpoint: h}
}

// WebhookHandler answers events for an [Endpoint]. It is safe for concurrent use.
type WebhookHandler[Ev, Re any] struct {
	adapter  Adapter[Ev, Re]
	endpoint Endpoint
}

// *WebhookHandler is what the runtime starts.
var _ awslambda.Handler = (*WebhookHandler[any, any])(nil)

// Handle is the endpoint as a function, for tests and for routers that send some
// events here and others elsewhere. The error is nil unless ev is of another kind
// than the adapter's ([ErrEvent]; the endpoint was not asked).
func (h *WebhookHandler[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	req, err := h.adapter.Request(ctx, ev)
	switch {
	case errors.Is(err, ErrEvent):
		var none Re
		return none, err
	case err != nil:
		return h.adapter.Reply(h.endpoint.Refuse(ctx, req, err)), nil
	}
	return h.adapter.Reply(h.endpoint.Serve(ctx, req)), nil
}

// Invoke is Handle for the runtime: payload and result are JSON. A payload that
// isn't the adapter's kind of event is an error that says what came instead.
func (h *WebhookHandler[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev Ev
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("lambda: %w: %w; the payload is %s", ErrEvent, err, kind(payload))
	}
	re, err := h.Handle(ctx, ev)
	if err != nil {
		return nil, fmt.Errorf("%w; the payload is %s", err, kind(payload))
	}
	return encode(re)
}
