// Command api takes and cancels orders, behind an HTTP API.
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
	hooks := metrics.New(os.Stdout, os.Getenv("SAMEKEY_APP")).Hooks()
	engine := idem.New(store, guests, func(o *idem.Options) { o.Resumable, o.Hooks = true, hooks })
	shop := newApp(client)
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /orders", engine, shop.order)
	router.Keyed("POST /orders/{id}/cancel", engine, shop.cancel)
	router.Route("GET /orders/{id}", shop.show)
	lambda.Start(router)
}
