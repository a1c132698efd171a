package lambda

import (
	"context"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const kinesisKind = "a Kinesis event"

// Kinesis takes the records of a data stream in their order. Don't change Kinesis:
// change a copy, as [Batch] shows.
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes. Otherwise Lambda ignores the reply that names the failed
// record, and continues after that record. If you can't use the setting, use a copy
// with a nil Reply. Then a failure fails the whole invocation.
//
// After the first record that fails, no later record of the event is tried. Lambda
// delivers the failed record and all later ones again, until the mapping's
// MaximumRetryAttempts or MaximumRecordAgeInSeconds is reached. By default Lambda tries
// for as long as the stream keeps the record, and the shard waits all that time. So set
// both limits. Also set BisectBatchOnFunctionError and a failure destination. The
// records of one event are tried one after the other. But if ParallelizationFactor is
// set, Lambda sends several events of a shard at a time.
//
// The key of a record is its event id, which consists of shard and sequence number. If
// a producer sends the same data again, the result is another record with another key.
// For a key made from the data use [Batch.WithKey]. The scope is the stream and the
// function. Records with the same key must have the same data and partition key. An
// aggregate of the Kinesis Producer Library counts as one record.
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

// shard is the group of every record, since all records of an event are from one shard.
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

// kinesisReply names only the first failure, because Lambda goes back to the lowest sequence number
// in the reply.
func kinesisReply(failed []string) events.KinesisEventResponse {
	re := events.KinesisEventResponse{BatchItemFailures: []events.KinesisBatchItemFailure{}}
	for _, id := range failed[:min(len(failed), 1)] {
		re.BatchItemFailures = append(re.BatchItemFailures, events.KinesisBatchItemFailure{ItemIdentifier: id})
	}
	return re
}
