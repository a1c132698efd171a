package lambda

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// Status answers for the status resource that [idem.Options.StatusURL] names,
// by the contract of [idem.Engine.ServeStatus]: how the operation of the key in
// the path stands. Its route needs the authorizer of the requests themselves,
// since only who sent a request is told of it:
//
//	lambda.Start(lambda.Status(engine, lambda.HTTPAPI)) // GET /operations/{key}
//
// HTTP APIs decode the path, so a key that has an escape such as %2F in it is not
// found behind one.
//
// engine has the options of the one that runs the operations, or its scopes and
// keys are others. Status panics if anything is nil, or the adapter is one of
// [Direct]'s: mistakes in the program, best found at cold start.
func Status[Ev, Re any](engine *idem.Engine, a Adapter[Ev, Re]) *EndpointHandler[Ev, Re] {
	if engine == nil || a.Request == nil || a.Reply == nil || a.typed {
		panic("lambda: Status: an engine and an adapter for HTTP are required") //nolint:forbidigo // a mistake in the program
	}
	return &EndpointHandler[Ev, Re]{adapter: a, endpoint: status{engine}}
}

type status struct{ *idem.Engine }

func (s status) Serve(ctx context.Context, r idem.Request) idem.Result {
	return idem.Result{Response: s.ServeStatus(ctx, r)}
}
