// Command webhook sends orders to the assistant's platform. The worker puts the orders'
// jobs into this function's queue.
package main

import (
	"errors"
	"log"
	"os"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func main() {
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, func(o *idem.Options) { o.Retention = 15 * 24 * time.Hour }) // longer than the queue's
	w := webhook{url: os.Getenv("WEBHOOK_URL"), secret: []byte(os.Getenv("WEBHOOK_SECRET"))}
	lambda.Start(lambda.WrapEach(engine, lambda.SQS, w.send))
}
