// Command keyed is a function that the tests of --watch change while it runs: it counts
// in one phase, waits at a gate, and answers.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

const version = "one"

func main() {
	client, err := dynamo.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, idem.OneScope, func(o *idem.Options) { o.LeaseMargin, o.MinKey = time.Second, 1 })
	awslambda.Start(hurried{lambda.Wrap(engine, lambda.HTTPAPI, handle)})
}

// hurried gives operations a short lease. Only --watch kills the processes.
type hurried struct{ awslambda.Handler }

func (h hurried) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return h.Handler.Invoke(ctx, payload)
}

type counter struct {
	ID string `dynamodbav:"id"`
}

func handle(ctx context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	counted, err := idem.Atomic(ctx, "counted", func(_ context.Context, tx *idem.Tx) (string, error) {
		tx.Write(dynamo.Update(os.Getenv("COUNTERS"), counter{req.Body}, "ADD effects :one", dynamo.Args{":one": 1}))
		return version, nil
	})
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	resp, err := http.Get(os.Getenv("GATE")) //nolint:noctx // it waits for as long as the test wants
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	_ = resp.Body.Close()
	return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "counted by " + counted + ", answered by " + version}, nil
}
