package metrics_test

import (
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/metrics"
	"github.com/samekey/samekey/lambda/worker"
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

// A worker of one's own with all signals. (The ready program has them.)
func ExampleMetrics_Wrap() {
	start := func(db *dynamodb.Client, queue *completer.Queue, table string, counts *metrics.Metrics, logger *slog.Logger) error {
		store, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Hooks = counts.StoreHooks() })
		if err != nil {
			return err
		}
		w := worker.New(db, store, queue, func(o *worker.Options) {
			o.Logger = logger
			o.Hooks = stream.Join(counts.StreamHooks(), stream.Log(logger))
		})
		lambda.Start(counts.Wrap(w))
		return nil
	}

	_ = start
	// Output:
}
