package worker_test

import (
	"context"
	"log"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/worker"
)

// A worker with a sink of its own. It waits for the runtime, so it is compiled, and not run.
func ExampleNew() {
	send := func(_ context.Context, d jobs.Delivery) error {
		log.Printf("to the mail server: %s, with the id %s", d.Args, d.JobID)
		return nil
	}
	start := func() {
		w, err := worker.New(func(o *worker.Options) {
			o.Sinks = jobs.Route{"send_receipt": jobs.SinkFunc(send)} // beside those of SAMEKEY_SINKS
		})
		if err != nil {
			log.Fatal(err)
		}
		lambda.Start(w)
	}

	_ = start
	// Output:
}

// A worker that completes the requests of a program that is no Lambda function.
func ExampleOptions() {
	start := func(engine *idem.Engine, handler func(context.Context, *idem.Request) (idem.Response, error)) {
		w, err := worker.New(func(o *worker.Options) {
			o.Resume = map[string]func(context.Context, jobs.Ticket) error{
				"charges": func(ctx context.Context, t jobs.Ticket) error { // idem.Options.Function of that program
					_, err := engine.Resume(ctx, t, handler)
					return err
				},
			}
		})
		if err != nil {
			log.Fatal(err)
		}
		lambda.Start(w)
	}

	_ = start
	// Output:
}
