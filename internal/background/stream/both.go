package stream

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Both is a drain and a completer in one function. A stream allows two readers; a Both is one of
// them. The completer needs a batching window, which then delays jobs too. The fields Drain and
// Completer are required.
//
// Drain and Completer work on each batch concurrently. If Drain or Completer fails to handle a
// record, both get the batch again from that record on. If [DrainOptions.Delayed] and
// [CompleterOptions.LeaveToSweep] are set, a failure of Drain or Completer doesn't delay the other.
type Both struct {
	Drain     *Drain
	Completer *Completer
}

// Handle works on a batch of the stream. The report names the first record that Drain or Completer
// must retry. The error is always nil.
func (s Both) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return s.handle(ctx, batchOf(ev))
}

func (s Both) handle(ctx context.Context, b batch) (events.DynamoDBEventResponse, error) {
	return s.Drain.inParts(ctx, b, func(changes []change) (first int) {
		completerFirst := make(chan int, 1)
		go func() { completerFirst <- s.Completer.run(ctx, changes) }()
		first = s.Drain.work(ctx, changes)
		return min(first, <-completerFirst)
	})
}

// Invoke is Handle for the runtime: payload and result are JSON. An event from another source than
// DynamoDB is an error.
func (s Both) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, s.handle)
}
