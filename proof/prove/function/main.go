// Command function is all functions of prove's throw-away stack: Rocket Rides, its
// authorizer, the consumer of its receipts, the worker, and the payment provider's stand-in. They are
// the programs that users deploy. Between them and AWS stands a proxy in the same process,
// at which an invocation meets the crash point that was chosen for it.
//
// Settings: PROVE_ROLE is api, authorizer, receipts, provider or plain, and empty for the worker;
// PROVE_PROVIDER, the provider's function; PROVE_TABLE, its table.
package main

import (
	"errors"
	"log"
	"net/http"
	"os"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/background/readyworker"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

func main() {
	switch role := os.Getenv("PROVE_ROLE"); role {
	case "authorizer":
		awslambda.Start(rides.Authorize)
	case "provider":
		serveProvider()
	case "plain":
		servePlain()
	default:
		if err := standBetween(role); err != nil {
			log.Fatal(err)
		}
		work(role)
	}
}

func work(role string) {
	if role == "" {
		readyworker.Main(nil)
		return
	}
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	provider := http.Client{Transport: newInvoker(os.Getenv("PROVE_PROVIDER"))}
	const url = "http://provider"
	measured := func(o *idem.Options) { // for the stack's alarms
		o.Hooks = idem.Join(metrics.New(os.Stdout, os.Getenv("SAMEKEY_APP")).Hooks(), idem.Log(o.Logger))
	}
	if role == "receipts" {
		mails := &rides.Mails{URL: url, Client: provider}
		lambda.Start(lambda.WrapEach(rides.Engine(store, rides.ReceiptsNamespace, measured), lambda.SQS, mails.Receive))
		return
	}
	app := &rides.App{
		DB: client, RidesTable: os.Getenv("RIDES_TABLE"), AuditTable: os.Getenv("AUDIT_TABLE"),
		Payments: rides.Payments{URL: url, Client: provider},
	}
	lambda.Start(rides.NewFunction(app, rides.Engine(store, rides.RidesNamespace, measured, func(o *idem.Options) { o.Resumable = true })))
}
