package rides

import (
	"context"
	"encoding/json"
	"net/http"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// App is what the handlers need. All fields but Deferred are required.
type App struct {
	DB         dynamo.Getter // reads rides
	RidesTable string        // with the key id
	AuditTable string        // with the key id
	Payments   Payments
	Price      int // of a ride, in cents; 0 is [Price]

	// Deferred commits the charge together with what follows it. That saves a
	// call to DynamoDB; if the process dies in between, the provider is called
	// again, with the same key.
	Deferred bool
}

// Function is the API's function.
type Function struct {
	app   *App
	keyed *lambda.Handler[request, response]
}

var _ awslambda.Handler = (*Function)(nil)

// NewFunction returns the function of an app. The engine has to be one with
// [idem.Options.Resumable] for a completer to be of use.
func NewFunction(app *App, engine *idem.Engine) *Function {
	return &Function{app: app, keyed: lambda.Wrap(engine, adapter(), app.create)}
}

// Invoke is the runtime's side of [Function.Handle]. What doesn't come from the
// API is the completer's, who asks for a request that is stored to be resumed.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev request
	if err := json.Unmarshal(payload, &ev); err != nil || ev.RouteKey == "" {
		return f.keyed.Invoke(ctx, payload)
	}
	re, err := f.Handle(ctx, ev)
	if err != nil {
		return nil, err
	}
	return json.Marshal(re)
}

// Handle answers a request to the API. One that can't be served whatever
// becomes of it is refused before its key is looked at: the key is still new
// when the request comes corrected.
func (f *Function) Handle(ctx context.Context, ev request) (response, error) {
	switch ev.RouteKey {
	case "POST /rides":
		if _, _, refused := check(ev); refused != nil {
			return *refused, nil
		}
		return f.keyed.Handle(ctx, ev)
	case "GET /rides/{id}":
		return f.app.show(ctx, ev)
	}
	return problem(http.StatusNotFound, "There is no such route."), nil
}

// check finds the user and the booking, or says why there is none.
func check(ev request) (user User, in input, refused *response) {
	user, known := userOf(ev)
	if !known {
		return user, in, new(problem(http.StatusUnauthorized, "Send your token in the Authorization header."))
	}
	in, err := parse(ev)
	if err != nil {
		return user, in, new(problem(http.StatusUnprocessableEntity, err.Error()))
	}
	return user, in, nil
}
