// Command completer completes rides that their clients abandoned. It sends
// tickets from the table's stream to a queue, where they wait until they are due,
// and from there invokes the API's function.
package main

import (
	"log"
	"os"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/cmd/internal/client"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
)

func main() {
	var env rides.Env
	tickets, api, grace := env.Text("TICKETS_QUEUE_URL"), env.Text("RIDES_FUNCTION"), env.Duration("SAMEKEY_GRACE", time.Millisecond)
	if err := env.Err(); err != nil {
		log.Fatal(err)
	}
	queue, metrics := completer.NewQueue(client.SQS(), tickets), rides.NewMetrics(os.Stdout)
	lambda.Start(rides.BySource{
		"aws:dynamodb": stream.NewCompleter(queue, func(o *stream.CompleterOptions) {
			o.Grace = grace
			o.Logger = rides.Logger()
			o.Hooks = metrics.StreamHooks()
		}),
		"aws:sqs": completer.New(queue, completer.Invoke(client.Lambda(), api), func(o *completer.Options) {
			o.Grace = grace
			o.Concurrency = 5
			o.Resumed = resumed(metrics)
			o.Logger = rides.Logger()
		}),
	})
}
