package otel_test

import (
	"log"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/worker"
	samekeyotel "github.com/samekey/samekey/otel"
)

// The three programs of an application: the API, the worker, and the consumer of its
// jobs. Each sets up the global providers of OpenTelemetry, which send somewhere. They wait
// for the runtime, so they are compiled, and not run.
func Example() {
	var telemetry samekeyotel.Telemetry // of the global providers

	api := func(store *dynamo.Store) {
		lambda.Start(lambda.Wrap(idem.New(store, telemetry.Engine), lambda.HTTPAPI, new(provider).ride))
	}
	background := func() {
		w, err := worker.New(func(o *worker.Options) { o.Telemetry = telemetry })
		if err != nil {
			log.Fatal(err)
		}
		lambda.Start(w)
	}
	receipts := func(store *dynamo.Store) {
		engine := idem.New(store, telemetry.Engine, func(o *idem.Options) { o.Namespace, o.Retention = "receipts", 30*24*time.Hour })
		lambda.Start(lambda.WrapEach(engine, lambda.SQS, mail))
	}

	_, _, _ = api, background, receipts
	// Output:
}
