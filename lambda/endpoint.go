package lambda

import (
	"context"
	"errors"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
)

// StatusHandler makes a Lambda handler for the status resource at
// [idem.Options.StatusURL]. Like [idem.Engine.ServeStatus], the handler answers with
// the state of the operation whose key is in the path. Protect the route with the same
// authorizer as the requests, since only the sender of a request may read the state:
//
//	lambda.Start(lambda.StatusHandler(engine, lambda.HTTPAPI)) // GET /operations/{key}
//
// HTTP APIs decode the path. So behind an HTTP API a key whose own text contains an escape such as
// %2F is not found.
//
// The parameter engine needs the same options as the engine that runs the operations,
// otherwise it looks up the operation under another scope or key. StatusHandler panics
// if engine, a.Request or a.Reply is nil, or if the adapter is made by [Direct].
func StatusHandler[Ev, Re any](engine *idem.Engine, a Adapter[Ev, Re]) *EndpointHandler[Ev, Re] {
	if engine == nil || a.Request == nil || a.Reply == nil || a.typed {
		panic("lambda: StatusHandler: an engine and an adapter for HTTP are required") //nolint:forbidigo // a mistake in the program
	}
	return &EndpointHandler[Ev, Re]{adapter: a, endpoint: status{engine}}
}

// Webhook makes a Lambda handler that lets h answer HTTP requests. The adapter converts
// an event to a request for h, and the answer of h to a result for Lambda:
//
//	lambda.Start(lambda.Webhook(lambda.HTTPAPI, webhook.New(store, "stripe", verifier, handle)))
//
// Webhook panics if h, a.Request or a.Reply is nil, or if the adapter is made by
// [Direct].
func Webhook[Ev, Re any](a Adapter[Ev, Re], h Endpoint) *EndpointHandler[Ev, Re] {
	if a.Request == nil || a.Reply == nil || a.typed || h == nil {
		panic("lambda: Webhook: an adapter for HTTP and an endpoint are required") //nolint:forbidigo // a mistake in the program
	}
	return &EndpointHandler[Ev, Re]{adapter: a, endpoint: h}
}

// An Endpoint answers requests by its own rules, not by an engine's contract. *webhook.Handler of
// package idem/webhook is an Endpoint.
type Endpoint interface {
	// Serve returns the answer to a request. r.Body is the sender's body, byte for byte. If
	// [idem.Result.Panic] is set in the result, the answer is still sent, and then the function's
	// process ends.
	Serve(ctx context.Context, r idem.Request) idem.Result
	// Refuse returns the answer to a request that could not be decoded. r has the parts that could
	// be read.
	Refuse(ctx context.Context, r idem.Request, err error) idem.Response
}

// An EndpointHandler answers events for an [Endpoint]. It is safe for concurrent use.
type EndpointHandler[Ev, Re any] struct {
	adapter  Adapter[Ev, Re]
	endpoint Endpoint
}

var _ awslambda.Handler = (*EndpointHandler[any, any])(nil)

// Handle returns the answer to an event, for tests and for routers that send only some
// events to this handler. Handle returns an error only if ev is of another kind than
// the adapter's ([ErrEvent]; the endpoint was not called). If the endpoint's own
// handler panics, the endpoint still makes an answer. Outside of Lambda, Handle returns
// this answer. In Lambda, Handle panics, so that the process ends. Invoke sends the
// answer before the panic.
func (h *EndpointHandler[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	req, err := h.adapter.request(ctx, ev, false)
	switch {
	case errors.Is(err, ErrEvent):
		var none Re
		return none, err
	case err != nil:
		return h.adapter.Reply(h.endpoint.Refuse(ctx, req, err)), nil
	}
	res := h.endpoint.Serve(idem.WithSender(ctx, &req), req)
	if res.Panic != nil {
		crashed(ctx, res.Panic)
	}
	return h.adapter.Reply(res.Response), nil
}

// Invoke is Handle for the runtime: payload and result are JSON. If the payload isn't the
// adapter's kind of event, the error names the payload's kind.
func (h *EndpointHandler[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invoke(ctx, payload, h.Handle)
}

type status struct{ *idem.Engine }

func (s status) Serve(ctx context.Context, r idem.Request) idem.Result {
	return idem.Result{Response: s.ServeStatus(ctx, r)}
}
