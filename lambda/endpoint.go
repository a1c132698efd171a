package lambda

import (
	"context"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
)

// Endpoint answers requests in their neutral form, by rules of its own.
// *webhook.Handler of package idem/webhook is one.
type Endpoint interface {
	// Serve answers a request. Its body is what the sender sent, byte for byte. A
	// result with a Panic is given all the same, and ends the function's process.
	Serve(ctx context.Context, r idem.Request) idem.Result
	// Refuse answers a request that could not be decoded, and of which r has what
	// could be read.
	Refuse(ctx context.Context, r idem.Request, err error) idem.Response
}

// EndpointHandler answers events for an [Endpoint]. It is safe for concurrent use.
type EndpointHandler[Ev, Re any] struct {
	adapter  Adapter[Ev, Re]
	endpoint Endpoint
}

// *EndpointHandler is what the runtime starts.
var _ awslambda.Handler = (*EndpointHandler[any, any])(nil)

// Handle is the endpoint as a function, for tests and for routers that send some
// events here and others elsewhere. The error is nil unless ev is of another kind
// than the adapter's ([ErrEvent]; the endpoint was not asked). A panic of the
// endpoint's is answered by it; in a Lambda function it goes on, so that the process
// ends: there only Invoke can answer first.
func (h *EndpointHandler[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	req, err := h.adapter.request(ctx, ev)
	switch {
	case errors.Is(err, ErrEvent):
		var none Re
		return none, err
	case err != nil:
		return h.adapter.Reply(h.endpoint.Refuse(ctx, req, err)), nil
	}
	res := h.endpoint.Serve(ctx, req)
	crashed(ctx, res.Panic)
	return h.adapter.Reply(res.Response), nil
}

// Invoke is Handle for the runtime: payload and result are JSON. A payload that
// isn't the adapter's kind of event is an error that says what came instead.
func (h *EndpointHandler[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	return invoked(ctx, func(ctx context.Context) ([]byte, error) {
		re, err := h.Handle(ctx, ev)
		if err != nil {
			return nil, fmt.Errorf("%w; the payload is %s", err, kind(payload))
		}
		return encode(re)
	})
}
