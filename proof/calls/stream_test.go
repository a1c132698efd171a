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
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// What a stream's or a topic's records cost. An event doesn't tell that it comes again, but
// its first record of a shard or partition does: after one that was done, the next is read
// first, so a repeated event takes one refused write for each of them, and reads. A new
// record costs as much as any.
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
		callsPerRecord(t, lambda.Kinesis, kinesis, 1)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		callsPerRecord(t, lambda.Kafka, kafka, 2)
	})
}

// callsPerRecord delivers an event of ten records, and again: after the function was cut off
// behind the fifth, and when all are done.
func callsPerRecord[Ev, Rec, Re any](t *testing.T, b lambda.Batch[Ev, Rec, Re], ev Ev, groups int) {
	t.Helper()
	store, tr := newStore(t)
	all, err := b.Records(ev)
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	n := 0
	b.Records = func(Ev) ([]Rec, error) { return all[:n], nil }
	h := lambda.WrapEach(idem.New(store, callertest.Anybody), b, func(context.Context, Rec) error {
		runs.Add(1)
		return nil
	})
	// The event's order is by group, so the first half has one of several.
	for _, tt := range []struct {
		name string
		n    int
		runs int64
		want calls
	}{
		{"five new ones", 5, 5, calls{"PutItem": 5, "UpdateItem": 5}},
		{"delivered again, and five more", 10, 10, map[int]calls{
			1: {"PutItem": 1 + 5, "GetItem": 4 + 1, "UpdateItem": 5}, // the first new one is read, too
			2: {"PutItem": 1 + 5, "GetItem": 4, "UpdateItem": 5},
		}[groups]},
		{"delivered again", 10, 10, calls{"PutItem": groups, "GetItem": 10 - groups}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			tr.Reset()
			n = tt.n
			if _, err := h.Handle(ctx, ev); err != nil || runs.Load() != tt.runs {
				t.Errorf("%v, %d runs, want %d", err, runs.Load(), tt.runs)
			}
			if diff := cmp.Diff(tt.want, tr.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
		})
	}
}
