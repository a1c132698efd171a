package calls_test

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/sink"
	"github.com/samekey/samekey/lambda/worker"
)

// The programs of docs/start/jobs.md. They are compiled, and wait for the runtime, so
// they aren't run.

var (
	cfg    aws.Config
	client *dynamodb.Client
	store  *dynamo.Store
)

var _ = func() { // jobs
	type Receipt struct{ Ride string }
	_ = func(ctx context.Context) error {
		if err := idem.Stage(ctx, idem.NewJob("look_for_driver", "ride_1")); err != nil { // between phases: in the next commit
			return err
		}
		_, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("send_receipt", Receipt{Ride: "ride_1"})) // in a phase: with it
			return "ride_1", nil
		})
		return err
	}
}

var _ = func() { // drain
	receipts := sink.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("RECEIPTS_URL"))
	lambda.Start(stream.NewDrain(store, jobs.Route{"send_receipt": receipts}))
}

var _ = func() { // completer
	// The API's function stores requests.
	engine := idem.New(store, func(o *idem.Options) { o.Resumable = true })
	_ = engine

	// The completer's function on the stream,
	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
	lambda.Start(stream.NewCompleter(queue))

	// and the one on the queue.
	api := completer.Invoke(awslambda.NewFromConfig(cfg), os.Getenv("API_FUNCTION"))
	lambda.Start(completer.New(store, queue, api, func(o *completer.Options) {
		o.Listed = func(ctx context.Context, t jobs.Ticket, why error) error { // for people
			return stream.Refer(ctx, store, t, why)
		}
	}))
}

var _ = func() { // functions on one table
	queue := completer.NewQueue(sqs.NewFromConfig(cfg), os.Getenv("TICKETS_URL"))
	functions := completer.Invoke(awslambda.NewFromConfig(cfg), "charges", "refunds:live")
	functions["payments"] = functions["charges"] // its former name
	lambda.Start(completer.New(store, queue, functions))
}

var _ = func() { // sweep
	engine, drain, queue := idem.New(store), stream.NewDrain(store, jobs.Route{}), completer.NewQueue(sqs.NewFromConfig(cfg), "url")
	lambda.Start(stream.NewSweep(client, store, func(o *stream.SweepOptions) {
		o.Drain, o.Queue, o.MarkStuck = drain, queue, engine.MarkStuck
	}))
}

var _ = func() { // the worker, of docs/operate/background.md
	receipts, queue := sink.NewQueue(sqs.NewFromConfig(cfg), "url"), completer.NewQueue(sqs.NewFromConfig(cfg), "url")
	lambda.Start(worker.New(client, store, queue, func(o *worker.Options) {
		o.Sink = jobs.Route{"send_receipt": receipts}
		o.Functions = completer.Invoke(awslambda.NewFromConfig(cfg), "charges")
	}))
}
