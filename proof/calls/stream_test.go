package calls_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// What a stream's or a topic's records cost. It is looked before it is claimed, since
// both repeat whole batches: a read more for a new record, and half a read unit
// instead of a write unit for each one that was done.
func TestCallsPerRecordOfAStream(t *testing.T) {
	t.Parallel()
	var kinesis events.KinesisEvent
	kafka := events.KafkaEvent{EventSource: "aws:kafka", EventSourceARN: "arn:aws:kafka:eu-central-1:123456789012:cluster/rides/e9f7-4", Records: map[string][]events.KafkaRecord{}}
	for i := range 10 {
		number := fmt.Sprint(100 + i)
		kinesis.Records = append(kinesis.Records, events.KinesisEventRecord{
			EventSource: "aws:kinesis", EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/positions",
			EventID: "shardId-000000000000:" + number,
			Kinesis: events.KinesisRecord{SequenceNumber: number, PartitionKey: "ride-1", Data: []byte("here")},
		})
		name := fmt.Sprint("positions-", i%2)
		kafka.Records[name] = append(kafka.Records[name], events.KafkaRecord{
			Topic: "positions", Partition: int64(i % 2), Offset: int64(i), Value: "aGVyZQ==", Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(1795253400000)},
		})
	}
	t.Run("Kinesis", func(t *testing.T) {
		t.Parallel()
		callsPerRecord(t, lambda.Kinesis, kinesis)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		callsPerRecord(t, lambda.Kafka, kafka)
	})
}

// callsPerRecord delivers an event of ten records twice.
//

func callsPerRecord[Ev, Rec, Re any](t *testing.T, b lambda.Batch[Ev, Rec, Re], ev Ev) {
	t.Helper()
	store, tr := newStore(t)
	var runs atomic.Int64
	h := lambda.WrapEach(idem.New(store, anybody), b, func(context.Context, Rec) error {
		runs.Add(1)
		return nil
	})
	for _, tt := range []struct {
		name string
		runs int64
		want calls
	}{
		{"ten new ones", 10, calls{"GetItem": 10, "PutItem": 10, "UpdateItem": 10}},
		{"delivered again", 10, calls{"GetItem": 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			tr.Reset()
			if _, err := h.Handle(ctx, ev); err != nil || runs.Load() != tt.runs {
				t.Errorf("%v, %d runs, want %d", err, runs.Load(), tt.runs)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}
