package stream

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Both is drain and completer in one function, which leaves one of the
// stream's two readers free. A batching window then delays jobs too. Both fields
// are required.
type Both struct {
	Drain     *Drain
	Completer *Completer
}

// Handle works on a batch of the stream. The report names the first record that
// has to come again for either of the two; the error is always nil.
func (s Both) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	changes := s.Drain.changes(ctx, ev.Records)
	first, _ := s.Drain.run(ctx, netted(changes))
	return s.Drain.report(ctx, ev, min(first, s.Completer.run(ctx, changes))), nil
}

// Invoke is Handle for the runtime: payload and result are JSON. An event of
// another source is an error.
func (s Both) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, s.Handle)
}
