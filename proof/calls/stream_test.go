package calls_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// What a stream's records cost. It is looked before it is claimed, since streams
// repeat whole batches: a read more for a new record, and half a read unit
// instead of a write unit for each one that was done.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerRecordOfAStream(t *testing.T) {
	t.Parallel()
	store, tr := newStore(t)
	runs := 0
	h := lambda.WrapEach(idem.New(store, anybody), lambda.Kinesis, func(context.Context, events.KinesisEventRecord) error {
		runs++
		return nil
	})
	var ev events.KinesisEvent
	for i := range 10 {
		number := fmt.Sprint(100 + i)
		ev.Records = append(ev.Records, events.KinesisEventRecord{
			EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/positions",
			EventID: "shardId-000000000000:" + number,
			Kinesis: events.KinesisRecord{SequenceNumber: number, PartitionKey: "ride-1", Data: []byte("here")},
		})
	}
	for _, tt := range []struct {
		name string
		runs int
		want calls
	}{
		{"ten new ones", 10, calls{"GetItem": 10, "PutItem": 10, "UpdateItem": 10}},
		{"delivered again", 0, calls{"GetItem": 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			runs = 0
			tr.Reset()
			re, err := h.Handle(ctx, ev)
			if len(re.BatchItemFailures) != 0 || err != nil || runs != tt.runs {
				t.Errorf("%d failures, %v, %d runs, want %d", len(re.BatchItemFailures), err, runs, tt.runs)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}
