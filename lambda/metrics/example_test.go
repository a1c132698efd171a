package metrics_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

// An API's function with metrics, logs and a hook of its own.
func ExampleMetrics_Hooks() {
	store, mine := &idem.MemoryStore{}, idem.Hooks{}

	counts := metrics.New(os.Stdout, "orders")
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	engine := idem.New(store, func(o *idem.Options) {
		o.Logger = logger
		o.Hooks = idem.Join(counts.Hooks(), idem.Log(logger), mine)
	})

	_ = engine
	// Output:
}

// The API's function, in which the calls of the store outside of requests are counted too.
func ExampleMetrics_Wrap() {
	start := func(db *dynamodb.Client, counts *metrics.Metrics, handler func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)) error {
		store, err := dynamo.New(db, os.Getenv("IDEM_TABLE"), func(o *dynamo.Options) { o.Hooks = counts.StoreHooks() })
		if err != nil {
			return err
		}
		engine := idem.New(store, func(o *idem.Options) { o.Hooks = counts.Hooks() })
		lambda.Start(counts.Wrap(lambda.Wrap(engine, lambda.HTTPAPI, handler)))
		return nil
	}

	_ = start
	// Output:
}
