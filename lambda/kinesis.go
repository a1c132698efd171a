package lambda

import (
	"context"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const kinesisKind = "a Kinesis event"

// Kinesis takes the records of a data stream, in their order. It must not be
// changed; see [Batch] for how to vary it.
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes: without it Lambda ignores the report and goes on behind
// the failed record. Where that can't be had, set Reply of a copy to nil.
//
// Work stops at the first failure, which is the one reported: Lambda delivers it
// and all that follow again, as the mapping's MaximumRetryAttempts and
// MaximumRecordAgeInSeconds have it (by default for as long as the stream keeps
// them, and nothing else of the shard moves). Set both, BisectBatchOnFunctionError
// and a failure destination. There is no concurrency within an event;
// ParallelizationFactor makes more events of a shard.
//
// A record's key is its event id: shard and sequence number. A producer that
// sends again makes another record; see [Batch.WithKey]. The scope is the stream
// and the function. What must be the same under one key is the data and the
// partition key. Records aggregated by the Kinesis Producer Library are one
// record here.
var Kinesis = Batch[events.KinesisEvent, events.KinesisEventRecord, events.KinesisEventResponse]{
	Records: kinesisRecords,
	ID:      func(r events.KinesisEventRecord) string { return r.Kinesis.SequenceNumber },
	Key:     func(r events.KinesisEventRecord) (string, error) { return r.EventID, nil },
	Request: kinesisRequest,
	Keeps:   keepsKinesis,
	shared:  true,
	Group:   func(events.KinesisEventRecord) string { return shard },
	Reply:   kinesisReply,
}

// keepsKinesis is the longest RetentionPeriodHours, 8760.
// https://docs.aws.amazon.com/streams/latest/dev/kinesis-extended-retention.html
const keepsKinesis = 365 * day

// shard is the one group of a stream's event, which is of one shard.
const shard = "shard"

func kinesisRecords(ev events.KinesisEvent) ([]events.KinesisEventRecord, error) {
	return ev.Records, checkOrigins(kinesisKind, "aws:kinesis", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.Kinesis.SequenceNumber, r.EventSourceArn}
	})
}

func kinesisRequest(ctx context.Context, r events.KinesisEventRecord) (idem.Request, error) {
	return idem.Request{
		Scope:  consumerScope(ctx, r.EventSourceArn),
		Route:  "Kinesis " + resourceName(r.EventSourceArn),
		Header: jsonHeader(),
		Query:  url.Values{"@partition": {r.Kinesis.PartitionKey}}.Encode(),
		Body:   r.Kinesis.Data,

		ReadFirst: true, // a batch that timed out or a new mapping repeats thousands
	}, nil
}

// kinesisReply names the first failure only: Lambda goes back to the lowest
// number it is given.
func kinesisReply(failed []string) events.KinesisEventResponse {
	re := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, id := range failed[:min(len(failed), 1)] {
		re.BatchItemFailures = append(re.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
	}
	return re
}
