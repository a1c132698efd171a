// Command course answers one plain POST, and writes which functions ran for it
// into GOCOVERDIR. It is built with -cover -covermode=atomic.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

const event = `{"version":"2.0","routeKey":"POST /orders","rawPath":"/orders","headers":{"idempotency-key":"order-1","content-type":"application/json"},
"requestContext":{"accountId":"1","apiId":"a","stage":"$default","requestId":"r","http":{"method":"POST","path":"/orders","sourceIp":"192.0.2.1"},
"authorizer":{"jwt":{"claims":{"iss":"https://issuer.example","sub":"alice"}}}},"body":"{\"item\":1}"}`

func main() {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "made"}, nil
		})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := coverage.ClearCounters(); err != nil {
		fail(err)
	}
	out, err := h.Invoke(ctx, []byte(event))
	if err != nil {
		fail(err)
	}
	if err := coverage.WriteCountersDir(os.Getenv("GOCOVERDIR")); err != nil {
		fail(err)
	}
	fmt.Printf("%s\n", out)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
