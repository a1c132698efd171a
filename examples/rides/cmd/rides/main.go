// Command rides is the API's function: POST /rides and GET /rides/{id}.
package main

import (
	"errors"
	"log"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func main() {
	var env rides.Env
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, env.Text("IDEM_TABLE"))
	app := &rides.App{
		DB:         client,
		RidesTable: env.Text("RIDES_TABLE"),
		AuditTable: env.Text("AUDIT_TABLE"),
		Payments:   rides.Payments{URL: env.Text("PAYMENTS_URL")},
		Memory:     env.Duration("PAYMENTS_MEMORY", 0),
	}
	margin := env.Duration("SAMEKEY_LEASE_MARGIN", time.Second)
	if err := errors.Join(env.Err(), err1, err2); err != nil {
		log.Fatal(err)
	}
	engine := rides.Engine(store, rides.RidesNamespace, func(o *idem.Options) {
		o.Resumable = true // a completer finishes requests that a client has left
		o.LeaseMargin = margin
	})
	lambda.Start(rides.NewFunction(app, engine))
}
