package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// delivery is one invocation of a function.
type delivery struct {
	arn     string // functionARN, if empty
	payload any
}

// sourceHandler wraps a handler that counts, for the source a row is about.
func sourceHandler(t *testing.T, source string, e *idem.Engine, runs *atomic.Int64) awslambda.Handler {
	t.Helper()
	switch source {
	case "envelope":
		return countedBatch(e, lambda.SQS, runs)
	case "SQS by its body":
		return countedBatch(e, lambda.SQS.WithBodyKey(lambda.JSONKey("/order")), runs)
	case "Direct":
		return lambda.Wrap(e, lambda.Direct[order, int](orderID), func(context.Context, order) (int, error) {
			return int(runs.Add(1)), nil
		})
	}
	return sourceOf(t, source).counted(e, runs)
}

func changed[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

// What comes a second time, from every source and by every way: the table in
// docs/use/sources.md.
func TestWhatComesAgain(t *testing.T) {
	t.Parallel()
	sqs := func(m events.SQSMessage) any { return batch(m) }
	sns := func(r events.SNSEventRecord) any { return events.SNSEvent{Records: []events.SNSEventRecord{r}} }
	s3 := func(r events.S3EventRecord) any { return events.S3Event{Records: []events.S3EventRecord{r}} }
	kinesis := func(r events.KinesisEventRecord) any {
		return events.KinesisEvent{Records: []events.KinesisEventRecord{r}}
	}
	stream := func(r events.DynamoDBEventRecord) any {
		return events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{r}}
	}
	bus := func(n string, detail any, change ...func(map[string]any)) any {
		return json.RawMessage(put(t, n, detail, change...))
	}
	const body = `{"order":"o-1"}`
	received := func(m *events.SQSMessage) { // again: what a delivery changes
		m.ReceiptHandle, m.Md5OfBody = "other", "other"
		m.Attributes = map[string]string{
			"ApproximateReceiveCount": "2", "ApproximateFirstReceiveTimestamp": "7", "SentTimestamp": "7", "SenderId": "7", "AWSTraceHeader": "7",
		}
	}
	replayed := func(m *events.SQSMessage) {
		yes := "true"
		m.MessageId = "2"
		m.MessageAttributes["Replayed"] = events.SQSMessageAttribute{DataType: "String", StringValue: &yes}
	}
	dead := func(m *events.SQSMessage) {
		m.EventSourceARN += "-dead"
		m.Attributes = map[string]string{"DeadLetterQueueSourceArn": queueARN}
	}
	said := map[string]any{"ride": "ride-1"}
	later := "2026-11-22T00:00:00.000Z"
	for name, row := range map[string]struct {
		source        string
		first, second delivery
		runs          int64
	}{
		"SQS, delivered again":               {"SQS", delivery{"", sqs(message("1", body))}, delivery{"", sqs(changed(message("1", body), received))}, 1},
		"SQS, sent again":                    {"SQS", delivery{"", sqs(message("1", body))}, delivery{"", sqs(message("2", body))}, 2},
		"SQS, sent again with its key":       {"SQS", delivery{"", sqs(keyed(message("1", body), "k"))}, delivery{"", sqs(keyed(message("2", body), "k"))}, 1},
		"SQS, redriven":                      {"SQS", delivery{"", sqs(message("1", body))}, delivery{"", sqs(message("2", body))}, 2},
		"SQS, redriven with its key":         {"SQS", delivery{"", sqs(keyed(message("1", body), "k"))}, delivery{"", sqs(keyed(message("2", body), "k"))}, 1},
		"SQS, redriven, a key in its body":   {"SQS by its body", delivery{"", sqs(message("1", body))}, delivery{"", sqs(message("2", body))}, 1},
		"SQS, read in the dead-letter queue": {"SQS", delivery{"", sqs(message("1", body))}, delivery{"", sqs(changed(message("1", body), dead))}, 1},
		"SQS, another queue": {
			"SQS", delivery{"", sqs(message("1", body))}, delivery{"", sqs(changed(message("1", body), func(m *events.SQSMessage) { m.EventSourceARN += "-2" }))}, 2,
		},
		"SQS, another function": {"SQS", delivery{"", sqs(message("1", body))}, delivery{functionARN + "-2", sqs(message("1", body))}, 1},

		"envelope, sent again by SNS": {"envelope", delivery{"", sqs(message("1", published(t, "1", body, nil)))}, delivery{"", sqs(message("2", published(t, "1", body, nil)))}, 1},
		"envelope, published again":   {"envelope", delivery{"", sqs(message("1", published(t, "1", body, nil)))}, delivery{"", sqs(message("2", published(t, "2", body, nil)))}, 2},
		"envelope, published again with its key": {
			"envelope", delivery{"", sqs(message("1", published(t, "1", body, jobAttributes)))}, delivery{"", sqs(message("2", published(t, "2", body, jobAttributes)))}, 1,
		},
		"envelope, redriven": {"envelope", delivery{"", sqs(message("1", put(t, "1", said)))}, delivery{"", sqs(message("2", put(t, "1", said)))}, 1},
		"envelope, from the topic's archive": {
			"envelope", delivery{"", sqs(message("1", published(t, "1", body, nil)))}, delivery{"", sqs(message("2", published(t, "1", body, nil, changing("Replayed", true))))}, 1,
		},
		"envelope, from the topic's archive, raw, with its key": {
			"envelope", delivery{"", sqs(keyed(message("1", body), "k"))}, delivery{"", sqs(changed(keyed(message("1", body), "k"), replayed))}, 1,
		},
		"envelope, from the bus's archive": {
			"envelope", delivery{"", sqs(message("1", put(t, "1", said)))}, delivery{"", sqs(message("2", put(t, "1", said, changing("replay-name", "r"))))}, 1,
		},

		"SNS, delivered again": {
			"SNS", delivery{"", sns(notification("1"))}, delivery{"", sns(changed(notification("1"), func(r *events.SNSEventRecord) { r.SNS.Signature = "other" }))}, 1,
		},
		"SNS, published again":                     {"SNS", delivery{"", sns(notification("1"))}, delivery{"", sns(notification("2"))}, 2},
		"SNS, invoked again with the failed event": {"SNS", delivery{"", sns(notification("1"))}, delivery{"", sns(notification("1"))}, 1},
		"SNS, another function":                    {"SNS", delivery{"", sns(notification("1"))}, delivery{functionARN + "-2", sns(notification("1"))}, 2},
		"SNS, an alias":                            {"SNS", delivery{functionARN, sns(notification("1"))}, delivery{functionARN + ":staging", sns(notification("1"))}, 2},
		"SNS, the latest":                          {"SNS", delivery{functionARN, sns(notification("1"))}, delivery{functionARN + ":$LATEST", sns(notification("1"))}, 1},
		"SNS, another version":                     {"SNS", delivery{functionARN + ":1", sns(notification("1"))}, delivery{functionARN + ":2", sns(notification("1"))}, 1},

		"EventBridge, delivered again":  {"EventBridge", delivery{"", bus("1", said)}, delivery{"", bus("1", said)}, 1},
		"EventBridge, another source":   {"EventBridge", delivery{"", bus("1", said)}, delivery{"", bus("1", said, changing("source", "other"))}, 2},
		"EventBridge, put again":        {"EventBridge", delivery{"", bus("1", said)}, delivery{"", bus("2", said)}, 2},
		"EventBridge, a job, put again": {"EventBridge", delivery{"", bus("1", staged)}, delivery{"", bus("2", staged)}, 1},
		"EventBridge, from the archive, under its id": {
			"EventBridge", delivery{"", bus("1", said)}, delivery{"", bus("1", said, changing("replay-name", "r"), changing("time", later))}, 1,
		},
		"EventBridge, another function": {"EventBridge", delivery{"", bus("1", said)}, delivery{functionARN + "-2", bus("1", said)}, 2},

		"S3, notified again": {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(changed(upload("a"), func(r *events.S3EventRecord) {
			r.EventTime, r.ResponseElements = time.Unix(1, 0), map[string]string{"x-amz-request-id": "2"}
		}))}, 1},
		"S3, written again":    {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(changed(upload("a"), func(r *events.S3EventRecord) { r.S3.Object.Sequencer = "02" }))}, 2},
		"S3, another version":  {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(changed(upload("a"), func(r *events.S3EventRecord) { r.S3.Object.VersionID = "v" }))}, 2},
		"S3, removed":          {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(changed(upload("a"), func(r *events.S3EventRecord) { r.EventName = "ObjectRemoved:Delete" }))}, 2},
		"S3, another object":   {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(upload("b"))}, 2},
		"S3, another bucket":   {"S3", delivery{"", s3(upload("a"))}, delivery{"", s3(changed(upload("a"), func(r *events.S3EventRecord) { r.S3.Bucket.Name = "b" }))}, 2},
		"S3, another function": {"S3", delivery{"", s3(upload("a"))}, delivery{functionARN + "-2", s3(upload("a"))}, 2},

		"Kinesis, delivered again, or read again by another mapping": {"Kinesis", delivery{"", kinesis(position("1"))}, delivery{"", kinesis(position("1"))}, 1},
		"Kinesis, put again": {"Kinesis", delivery{"", kinesis(position("1"))}, delivery{"", kinesis(changed(position("2"), func(r *events.KinesisEventRecord) { r.Kinesis.Data = []byte("1") }))}, 2},
		"Kafka, delivered again, or read again by another mapping": {"Kafka", delivery{"", partitions(moved(0, 1, "1"))}, delivery{"", partitions(moved(0, 1, "1"))}, 1},
		"Kafka, produced again": {"Kafka", delivery{"", partitions(moved(0, 1, "1"))}, delivery{"", partitions(moved(0, 2, "1"))}, 2},
		"Kafka, produced again with its key": {
			"Kafka", delivery{"", partitions(namedRecord(moved(0, 1, "1"), "k"))}, delivery{"", partitions(namedRecord(moved(1, 2, "1"), "k"))}, 1,
		},
		"Kafka, the topic made anew": {
			"Kafka", delivery{"", partitions(moved(0, 1, "1"))}, delivery{"", partitions(changed(moved(0, 1, "1"), func(r *events.KafkaRecord) { r.Timestamp.Time = time.UnixMilli(1795253499999) }))}, 2,
		},
		"Kafka, another function": {"Kafka", delivery{"", partitions(moved(0, 1, "1"))}, delivery{functionARN + "-2", partitions(moved(0, 1, "1"))}, 2},
		"Kafka, another cluster": {
			"Kafka", delivery{"", partitions(moved(0, 1, "1"))}, delivery{"", changed(partitions(moved(0, 1, "1")), func(ev *events.KafkaEvent) { ev.EventSourceARN += "2" })}, 2,
		},
		"Kafka, servers in another order": {"Kafka", delivery{"", own("b:1,a:1")}, delivery{"", own("a:1,b:1")}, 1},
		"Kinesis, another function":       {"Kinesis", delivery{"", kinesis(position("1"))}, delivery{functionARN + "-2", kinesis(position("1"))}, 2},

		"DynamoDBStream, delivered again, or read again by another mapping": {"DynamoDBStream", delivery{"", stream(change("1"))}, delivery{"", stream(change("1"))}, 1},
		"DynamoDBStream, changed again":                                     {"DynamoDBStream", delivery{"", stream(change("1"))}, delivery{"", stream(change("2"))}, 2},
		"DynamoDBStream, another function":                                  {"DynamoDBStream", delivery{"", stream(change("1"))}, delivery{functionARN + "-2", stream(change("1"))}, 2},

		"Direct, invoked again":   {"Direct", delivery{"", order{ID: "o-1"}}, delivery{"", order{ID: "o-1"}}, 1},
		"Direct, another order":   {"Direct", delivery{"", order{ID: "o-1"}}, delivery{"", order{ID: "o-2"}}, 2},
		"Direct, another version": {"Direct", delivery{functionARN + ":1", order{ID: "o-1"}}, delivery{functionARN + ":2", order{ID: "o-1"}}, 1},
		"Direct, another alias":   {"Direct", delivery{functionARN + ":live", order{ID: "o-1"}}, delivery{functionARN + ":next", order{ID: "o-1"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			h := sourceHandler(t, row.source, anEngine(), &runs)
			for _, d := range []delivery{row.first, row.second} {
				invoke(t, h, d)
			}
			if runs.Load() != row.runs {
				t.Errorf("ran %d times, want %d", runs.Load(), row.runs)
			}
		})
	}
}

func invoke(t *testing.T, h awslambda.Handler, d delivery) {
	t.Helper()
	ctx := invoked(t.Context(), functionARN)
	if d.arn != "" {
		ctx = invoked(t.Context(), d.arn)
	}
	if _, err := h.Invoke(ctx, []byte(marshalled(t, d.payload))); err != nil {
		t.Errorf("%v", err)
	}
}

// What a source brings again is known for Options.Retention after it was done, and no
// longer: then it is new.
func TestHowLongIsRemembered(t *testing.T) {
	t.Parallel()
	payloads := map[string]any{"envelope": batch(message("1", published(t, "1", "m", jobAttributes))), "Direct": order{ID: "o-1"}}
	for _, s := range recordSources {
		payloads[s.name] = s.one(t)
	}
	for source, payload := range payloads {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const retention = 30 * 24 * time.Hour
				var runs atomic.Int64
				h := sourceHandler(t, source, anEngine(func(o *idem.Options) { o.Retention = retention }), &runs)
				for i, step := range []struct {
					wait time.Duration
					runs int64
				}{{0, 1}, {retention - time.Minute, 1}, {2 * time.Minute, 2}} {
					time.Sleep(step.wait) //nolint:forbidigo // virtual
					if invoke(t, h, delivery{"", payload}); runs.Load() != step.runs {
						t.Error(fmt.Sprint("step ", i, ": ran ", runs.Load(), " times, want ", step.runs))
					}
				}
			})
		})
	}
}

// An engine that forgets a key while its source may still bring the record would
// let it run a second time: the log says so, once, as the function starts.
func TestASourceThatOutlastsTheRetention(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	wrap := func(source string) func(*idem.Engine, time.Duration) { return sourceOf(t, source).wrap }
	for name, tc := range map[string]struct {
		wrap    func(*idem.Engine, time.Duration)
		keeps   time.Duration // 0: as the package has it
		options func(*idem.Options)
		warns   bool
	}{
		"SQS, a day":                          {wrap("SQS"), 0, func(*idem.Options) {}, true},
		"SQS, less than 14 days":              {wrap("SQS"), 0, func(o *idem.Options) { o.Retention = 14*day - time.Second }, true},
		"SQS, 14 days":                        {wrap("SQS"), 0, func(o *idem.Options) { o.Retention = 14 * day }, false},
		"SQS, disabled":                       {wrap("SQS"), 0, func(o *idem.Options) { o.Mode = idem.ModeOff }, false},
		"a queue that keeps for an hour":      {wrap("SQS"), time.Hour, func(*idem.Options) {}, false},
		"a queue with a dead-letter queue":    {wrap("SQS"), 28 * day, func(o *idem.Options) { o.Retention = 14 * day }, true},
		"SNS, 23 days":                        {wrap("SNS"), 0, func(o *idem.Options) { o.Retention = 23 * day }, true},
		"SNS, a month":                        {wrap("SNS"), 0, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour }, false},
		"EventBridge, a day":                  {wrap("EventBridge"), 0, func(*idem.Options) {}, true},
		"EventBridge, a weekend":              {wrap("EventBridge"), 0, func(o *idem.Options) { o.Retention = 72 * time.Hour }, false},
		"S3, an hour":                         {wrap("S3"), 0, func(o *idem.Options) { o.Retention = time.Hour }, true},
		"S3, a day":                           {wrap("S3"), 0, func(*idem.Options) {}, false},
		"Kinesis, a month":                    {wrap("Kinesis"), 0, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour }, true},
		"Kinesis, a stream that keeps a day":  {wrap("Kinesis"), day, func(*idem.Options) {}, false},
		"Kafka, a day":                        {wrap("Kafka"), 0, func(*idem.Options) {}, true},
		"Kafka, a week":                       {wrap("Kafka"), 0, func(o *idem.Options) { o.Retention = 7 * day }, false},
		"Kafka, a topic that keeps a day":     {wrap("Kafka"), day, func(*idem.Options) {}, false},
		"a table's stream, a day":             {wrap("DynamoDBStream"), 0, func(*idem.Options) {}, false},
		"a table's stream, less than its day": {wrap("DynamoDBStream"), 0, func(o *idem.Options) { o.Retention = 23 * time.Hour }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			tc.wrap(anEngine(func(o *idem.Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				tc.options(o)
			}), tc.keeps)
			if n := strings.Count(log.String(), "carried out a second time"); n > 1 || (n == 1) != tc.warns {
				t.Errorf("the log says, want a warning: %v:\n%s", tc.warns, log.String())
			}
		})
	}
}
