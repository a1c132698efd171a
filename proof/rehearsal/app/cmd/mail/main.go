// Command mail sends the mails of orders, from their queue.
package main

import (
	"errors"
	"log"
	"os"

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
	lambda.Start(lambda.WrapEach(idem.New(store), lambda.SQS, send))
}
