// Command mailer sends the mails that orders have staged: a worker hands the jobs to
// its queue.
package main

import (
	"log"
	"os"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
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
	engine := idem.New(store, func(o *idem.Options) { o.Retention = 15 * 24 * time.Hour }) // longer than the queue's
	m := mailer{provider.Client{URL: os.Getenv("MAILS_URL")}}
	lambda.Start(lambda.WrapEach(engine, lambda.SQS, m.send))
}
