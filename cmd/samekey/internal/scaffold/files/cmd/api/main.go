// Command api takes orders, behind an HTTP API.
package main

import (
	"errors"
	"log"
	"os"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

func main() {
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, func(o *idem.Options) { o.Hooks = metrics.New(os.Stdout, os.Getenv("SAMEKEY_APP")).Hooks() })
	lambda.Start(lambda.Wrap(engine, lambda.HTTPAPI, createOrder))
}
