package lambda

import (
	"context"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
)

// Adapter pairs an event with its response and makes both neutral, so that an
// answer stored through one kind of event is replayed through any other.
//
// [HTTPAPI], [REST], [FunctionURL] and [ALB] are the adapters for HTTP, [Direct]
// makes those for events of one's own. An adapter of your own can be written from
// nothing, or from a copy of one of these, for instance to take the scope from
// the event:
//
//	api := lambda.HTTPAPI // a copy: the original must not be changed
//	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
//		req, err := lambda.HTTPAPI.Request(ctx, ev)
//		req.Scope = tenantOf(ev)
//		return req, err
//	}
//
// All functions but Event are required; all must be safe for concurrent use.
type Adapter[Ev, Re any] struct {
	// Request makes an event neutral. Body is what the client sent, decoded.
	// Identity is set from what the source has verified, or left empty. A Tenant
	// that is left empty is taken from the invocation's lambdacontext.
	//
	// An error that matches [ErrEvent] says that the event is of another kind:
	// nobody waits for an HTTP answer, so [Handler] returns the error. Any other
	// error is answered with 400, or as the engine's table has it, and the
	// request it comes with should then hold what could be read.
	Request func(ctx context.Context, ev Ev) (idem.Request, error)

	// Event is the inverse of Request: an event that Request would make r of
	// again, for a handler that is run a second time from its stored request. It
	// gets what the engine has kept: not the key, only the headers the engine is
	// told to keep, and Snapshot as Request made it. nil: requests can't be run
	// again from their records.
	Event func(r idem.Request) (Ev, error)

	// Response makes the handler's own answer neutral. An error is the
	// handler's mistake, and counts as if the handler had returned it.
	Response func(re Re) (idem.Response, error)

	// Reply puts a neutral answer, first or replayed, into the event's form.
	Reply func(r idem.Response) Re

	// typed answers are values and errors, and no HTTP: see Direct.
	typed bool
	// ownScope leaves the function out of the scope of a typed adapter's keys.
	ownScope bool
}

// request is Request, with the tenant of the invocation. It is put in here, so
// that adapters of one's own needn't know of it.
func (a *Adapter[Ev, Re]) request(ctx context.Context, ev Ev) (idem.Request, error) {
	req, err := a.Request(ctx, ev)
	if req.Tenant == "" {
		req.Tenant = tenantOf(ctx)
	}
	return req, err
}

// tenantOf is the tenant for which the function is invoked, "" for a function
// without tenant isolation. Lambda demands it of every invocation otherwise.
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}
