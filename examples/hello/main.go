// Command hello is the smallest complete function: an ordinary handler behind an HTTP API,
// safe to retry. template.yaml deploys it with an authorizer, which identifies the caller;
// make demo-hello runs it.
package main

import (
	"log"
	"log/slog"
	"os"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/hello/greeting"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

func main() {
	client, err := dynamo.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, func(o *idem.Options) {
		o.MaxBody = 2 << 20 // greetings can be long
		o.Logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
		o.Hooks = metrics.New(os.Stdout, "hello").Hooks()
	})
	lambda.Start(lambda.Wrap(engine, lambda.HTTPAPI, greeting.Greeter{Log: os.Stderr}.Hello))
}
