// Command api takes orders, behind an HTTP API.
package main

import (
	"log"
	"os"

	"github.com/samekey/samekey/dynamo"
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
	lambda.Start(lambda.Wrap(idem.New(store), lambda.HTTPAPI, createOrder))
}
