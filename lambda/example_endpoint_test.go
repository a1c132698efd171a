package lambda_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/lambda"
)

// A provider's webhooks behind an HTTP API: each event is handled once.
func ExampleWebhook() {
	const secret = "whsec_from_the_dashboard"
	verifier, err := webhook.NewStripe(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	hooks := webhook.New(&idem.MemoryStore{}, "stripe", verifier, func(_ context.Context, ev webhook.Event) error {
		fmt.Println("handling", ev.ID)
		return nil
	})
	h := lambda.Webhook(lambda.HTTPAPI, hooks) // a function's main hands it to lambda.Start

	deliver := func(body, secret string) {
		signed := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: secret})
		ev := events.APIGatewayV2HTTPRequest{
			RawPath: "/webhooks/stripe", Headers: map[string]string{"stripe-signature": signed.Header}, Body: body,
		}
		ev.RequestContext.HTTP.Method = http.MethodPost
		re, err := h.Handle(context.Background(), ev)
		fmt.Println(re.StatusCode, re.Headers["Idempotent-Replayed"], err)
	}
	deliver(`{"id":"evt_1"}`, secret)
	deliver(`{"id":"evt_1"}`, secret) // the provider didn't hear the answer
	deliver(`{"id":"evt_2"}`, "whsec_guessed")
	// Output:
	// handling evt_1
	// 200  <nil>
	// 200 true <nil>
	// 400  <nil>
}

// The status resource is a route of its own, or a function, with the authorizer
// of the requests: nobody else is told anything.
func ExampleStatusHandler() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/"
	})
	orders := lambda.Wrap(engine, lambda.HTTPAPI,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "order 1"}, nil
		})
	status := lambda.StatusHandler(engine, lambda.HTTPAPI)

	event := func(method, path, subject string) (ev events.APIGatewayV2HTTPRequest) {
		ev.RawPath, ev.Headers = path, map[string]string{"idempotency-key": "8e03978e-40d5"}
		ev.RequestContext.HTTP.Method = method
		ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://id.example", "sub": subject}},
		}
		return ev
	}
	for _, subject := range []string{"jane", "omar"} {
		if subject == "jane" {
			re, err := orders.Handle(context.Background(), event("POST", "/orders", subject))
			fmt.Println(re.StatusCode, re.Body, err)
		}
		re, err := status.Handle(context.Background(), event("GET", "/operations/8e03978e-40d5", subject))
		fmt.Println(subject, re.StatusCode, re.Headers["Idempotent-Replayed"], err)
	}
	// Output:
	// 201 order 1 <nil>
	// jane 201 true <nil>
	// omar 404  <nil>
}

// A shard's records, in order: work stops at the first failure, which is
// reported, and goes on from there when Lambda delivers it again.
func ExampleWrapEach_kinesis() {
	broken := true
	track := func(_ context.Context, r events.KinesisEventRecord) error {
		if r.Kinesis.SequenceNumber == "2" && broken {
			return fmt.Errorf("map is not loaded")
		}
		fmt.Println("tracked", string(r.Kinesis.Data))
		return nil
	}
	stream := lambda.Kinesis
	stream.Failed = func(_ context.Context, r events.KinesisEventRecord, err error) {
		fmt.Println("failed:", r.Kinesis.SequenceNumber, err)
	}
	stream.Keeps = 24 * time.Hour // as the stream is set to; it may be up to a year
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}), stream, track)

	record := func(number, data string) events.KinesisEventRecord {
		return events.KinesisEventRecord{
			EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/positions",
			EventID: "shardId-000000000000:" + number,
			Kinesis: events.KinesisRecord{SequenceNumber: number, PartitionKey: "ride-1", Data: []byte(data)},
		}
	}
	ev := events.KinesisEvent{Records: []events.KinesisEventRecord{record("1", "here"), record("2", "there"), record("3", "home")}}
	for range 2 {
		re, err := h.Handle(context.Background(), ev)
		fmt.Println("go on from:", re.BatchItemFailures, err)
		broken = false
	}
	// Output:
	// tracked here
	// failed: 2 map is not loaded
	// go on from: [{2}] <nil>
	// tracked there
	// tracked home
	// go on from: [] <nil>
}
