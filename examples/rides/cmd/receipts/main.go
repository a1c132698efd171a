// Command receipts takes jobs from their queue and mails receipts.
package main

import (
	"errors"
	"log"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func main() {
	var env rides.Env
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, env.Text("IDEM_TABLE"))
	mails := &rides.Mails{URL: env.Text("MAILS_URL")}
	margin := env.Duration("SAMEKEY_LEASE_MARGIN", time.Second)
	if err := errors.Join(env.Err(), err1, err2); err != nil {
		log.Fatal(err)
	}
	engine := rides.Engine(store, rides.ReceiptsNamespace, func(o *idem.Options) { o.LeaseMargin = margin })
	lambda.Start(lambda.WrapEach(engine, lambda.SQS, mails.Receive))
}
