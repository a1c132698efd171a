package stream

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Both is a drain and a completer in one function. A stream allows two readers, and a
// Both counts as one reader. A batching window saves tickets ([Completer]), but also
// delays jobs. The fields Drain and Completer are required.
//
// Drain and Completer work on each batch concurrently. If Drain or Completer fails to
// handle a record, both get the batch again from that record on. If
// [DrainOptions.Delayed] and [CompleterOptions.LeaveToSweep] are set, the batch comes
// again only if a job of a deleted record can't be delivered.
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

// Invoke is Handle for the Lambda runtime, with payload and result as JSON. It returns
// an error if the event is not from DynamoDB.
func (s Both) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, s.handle)
}
