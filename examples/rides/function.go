package rides

import (
	"context"
	"net/http"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// App holds what the handlers need. All fields except Price and Memory are required.
type App struct {
	DB         dynamo.Getter // reads rides
	RidesTable string        // with the key id
	AuditTable string        // with the key id
	Payments   Payments
	Price      int // price of a ride, in cents; 0 is [Price]

	// Memory is how long the payment provider remembers a key; 0 is 24 hours.
	Memory time.Duration
}

// Function is the API's function.
type Function = lambda.Router[request, response]

// NewFunction returns the function of an app. For a completer the engine needs
// [idem.Options.Resumable].
func NewFunction(app *App, engine *idem.Engine) *Function {
	router := lambda.NewRouter(adapter())
	router.Keyed("POST /rides", engine, app.create).Before(refuse)
	router.Route("GET /rides/{id}", app.show)
	return router
}

// refuse answers a request that can't become a booking, before the engine reads the
// key: the corrected request may use the same key.
func refuse(_ context.Context, ev request) (*response, error) {
	_, _, refused := check(ev)
	return refused, nil
}

// check returns the user and the booking, or the refusal.
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
