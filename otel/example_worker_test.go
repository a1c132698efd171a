package otel_test

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/sink"
	"github.com/samekey/samekey/lambda/worker"
	samekeyotel "github.com/samekey/samekey/otel"
)

// The three programs of an application: the API, the worker, and the consumer of its
// jobs. Each sets up the global providers of OpenTelemetry, which send somewhere.
func Example() {
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1"})
	queues := sqs.New(sqs.Options{Region: "eu-central-1"})
	store, err := dynamo.New(client, "records")
	if err != nil {
		fmt.Println(err)
		return
	}
	var telemetry samekeyotel.Telemetry // of the global providers

	api := lambda.Wrap(idem.New(store, telemetry.Engine), lambda.HTTPAPI, new(provider).ride)

	background := worker.New(client, store, completer.NewQueue(queues, "https://sqs/tickets"), func(o *worker.Options) {
		o.Sink = jobs.Route{"receipt": sink.NewQueue(queues, "https://sqs/receipts")}
		o.Tracer, o.Hooks = telemetry.Tracer(), telemetry.StreamHooks()
	})

	engine := idem.New(store, telemetry.Engine, func(o *idem.Options) { o.Namespace, o.Retention = "receipts", 30*24*time.Hour })
	receipts := lambda.WrapEach(engine, lambda.SQS, mail)

	fmt.Println(api != nil, background != nil, receipts != nil)
	// Output: true true true
}
