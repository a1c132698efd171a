// Command drain delivers the jobs that rides stage: from the table's stream to
// their queue.
package main

import (
	"errors"
	"log"
	"os"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/cmd/internal/client"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/sink"
)

func main() {
	var env rides.Env
	db, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(db, env.Text("IDEM_TABLE"))
	receipts := env.Text("RECEIPTS_QUEUE_URL")
	if err := errors.Join(env.Err(), err1, err2); err != nil {
		log.Fatal(err)
	}
	lambda.Start(stream.NewDrain(store, jobs.Route{rides.ReceiptJob: sink.NewQueue(client.SQS(), receipts)}, func(o *stream.DrainOptions) {
		o.Logger = rides.Logger()
		o.Hooks = rides.NewMetrics(os.Stdout).StreamHooks()
	}))
}
