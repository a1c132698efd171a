package stream

import (
	"context"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
)

// Ack is what a drain writes about delivered jobs.
func Ack(ctx context.Context, store *dynamo.Store, image *store.Record, names ...string) error {
	return jobWriter{store.Table()}.acknowledge(ctx, image, names...)
}

// LetGo is what a drain writes about a finished record without jobs.
func LetGo(ctx context.Context, store *dynamo.Store, image *store.Record) error {
	return jobWriter{store.Table()}.letGo(ctx, image)
}

// Fail is what a drain writes about failed deliveries.
func Fail(ctx context.Context, store *dynamo.Store, image *store.Record, failures map[string]error, maxTries int) (*store.Record, error) {
	return jobWriter{store.Table()}.countFailures(ctx, image, failures, maxTries)
}
