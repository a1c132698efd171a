// Command sweeper scans the whole table for records that the stream's readers
// missed, and for operations that wait for people.
package main

import (
	"errors"
	"log"
	"os"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/cmd/internal/client"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/sink"
)

func main() {
	var env rides.Env
	db, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(db, env.Text("IDEM_TABLE"))
	receipts, tickets, grace := env.Text("RECEIPTS_QUEUE_URL"), env.Text("TICKETS_QUEUE_URL"), env.Duration("SAMEKEY_GRACE", time.Millisecond)
	if err := errors.Join(env.Err(), err1, err2); err != nil {
		log.Fatal(err)
	}
	queues, metrics := client.SQS(), rides.NewMetrics(os.Stdout)
	lambda.Start(rides.Sweeper{Metrics: metrics, Sweep: stream.NewSweep(db, store, func(o *stream.SweepOptions) {
		o.Drain = stream.NewDrain(store, jobs.Route{rides.ReceiptJob: sink.NewQueue(queues, receipts)}, func(o *stream.DrainOptions) {
			o.Logger = rides.Logger()
			o.Hooks = metrics.StreamHooks()
		})
		o.Queue = completer.NewQueue(queues, tickets)
		o.GiveUp = rides.Engine(store, rides.RidesNamespace).GiveUp
		o.Grace = grace
		o.Retention = rides.Retention
		o.Logger = rides.Logger()
		o.Hooks = metrics.StreamHooks()
	})})
}
