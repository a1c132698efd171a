package lambda

import (
	"context"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const kinesisKind = "a Kinesis event"

// Kinesis takes the records of a data stream in their order. Don't change it: change
// a copy, as [Batch] shows.
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes. Without it Lambda ignores the report and continues after the
// failed record. If you can't set it, set Reply of a copy to nil.
//
// Work stops at the first failure, and the report names it: Lambda delivers that record and all
// later ones again, as the mapping's MaximumRetryAttempts and MaximumRecordAgeInSeconds say. By
// default Lambda tries for as long as the stream keeps the record. Meanwhile the shard waits.
// Set both limits, BisectBatchOnFunctionError and a failure destination. The records of an
// event run one after the other; with ParallelizationFactor a shard has several events at a
// time.
//
// The key of a record is its event id: shard and sequence number. A producer that sends
// again makes another record; see [Batch.WithKey]. The scope is the stream and the
// function. The data and the partition key must be the same under one key. An aggregate
// of the Kinesis Producer Library is one record here.
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

// shard is the only group of a stream's event, whose records come from the same
// shard.
const shard = "shard"

func kinesisRecords(ev events.KinesisEvent) ([]events.KinesisEventRecord, error) {
	return ev.Records, checkOrigins(kinesisKind, "aws:kinesis", len(ev.Records), func(i int) origin {
		r := &ev.Records[i]
		return origin{r.EventSource, r.Kinesis.SequenceNumber, r.EventSourceArn}
	})
}

func kinesisRequest(ctx context.Context, r events.KinesisEventRecord) (idem.Request, error) {
	return idem.Request{
		Source: consumerScope(ctx, r.EventSourceArn),
		Route:  "Kinesis " + resourceName(r.EventSourceArn),
		Header: jsonHeader(),
		Query:  url.Values{"@partition": {r.Kinesis.PartitionKey}}.Encode(),
		Body:   r.Kinesis.Data,
	}, nil
}

// kinesisReply names the first failure only: Lambda goes back to the lowest reported
// number.
func kinesisReply(failed []string) events.KinesisEventResponse {
	re := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, id := range failed[:min(len(failed), 1)] {
		re.BatchItemFailures = append(re.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
	}
	return re
}
