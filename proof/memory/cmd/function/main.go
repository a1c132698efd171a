// Command function answers a request with a body as long as the caller asks for, at most
// as long as Lambda can answer, and stores requests and answers of every length that fits.
//
// Settings: IDEM_TABLE; PEAK_SOURCE, "url" for events of a function URL, "sqs" for messages of a
// queue; PEAK_RESUMABLE, not empty, stores requests.
package main

import (
	"context"
	"errors"
	"log"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/lambda"
)

func main() {
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, idem.OneScope, func(o *idem.Options) {
		o.MaxBody, o.MaxRequest, o.Resumable, o.CallerFromOp = defaults.MaxMaxBody, defaults.MaxStoredRequest, os.Getenv("PEAK_RESUMABLE") != "", true
	})
	named := func(o *lambda.HandlerOptions) { o.Name = "function" }
	switch os.Getenv("PEAK_SOURCE") {
	case "sqs":
		lambda.Start(lambda.WrapEach(engine, lambda.SQS, func(context.Context, events.SQSMessage) error { return nil }))
	case "url":
		lambda.Start(lambda.Wrap(engine, lambda.FunctionURL, func(_ context.Context, ev events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
			body, is64 := answer(ev.QueryStringParameters)
			return events.LambdaFunctionURLResponse{StatusCode: 201, Body: body, IsBase64Encoded: is64}, nil
		}, named))
	default:
		lambda.Start(lambda.Wrap(engine, lambda.HTTPAPI, func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			body, is64 := answer(ev.QueryStringParameters)
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: body, IsBase64Encoded: is64}, nil
		}, named))
	}
}

// answer is a body of so many letters, base64 that doesn't compress if the caller says binary.
func answer(query map[string]string) (body string, base64 bool) {
	n, _ := strconv.Atoi(query["answer"])
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = letters[random.IntN(len(letters))]
	}
	return string(b), query["form"] == "binary"
}
