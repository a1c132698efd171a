// Command api takes and cancels orders, behind an HTTP API.
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
	engine := idem.New(store, idem.OneScope, func(o *idem.Options) { o.Resumable = true }) // the shop has guests only, with random keys
	shop := newApp(client)
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /orders", engine, shop.order)
	router.Keyed("POST /orders/{id}/cancel", engine, shop.cancel)
	router.Route("GET /orders/{id}", shop.show)
	lambda.Start(router)
}
