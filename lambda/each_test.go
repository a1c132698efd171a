package lambda_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// message is what a queue delivers.
func message(id, body string) events.SQSMessage {
	return events.SQSMessage{MessageId: id, Body: body, EventSource: "aws:sqs", EventSourceARN: queueARN}
}

// inGroup is a message of a FIFO queue.
func inGroup(group, id string) events.SQSMessage {
	m := message(id, id)
	m.EventSourceARN = queueARN + ".fifo"
	m.Attributes = map[string]string{"MessageGroupId": group}
	return m
}

func keyed(m events.SQSMessage, key string) events.SQSMessage {
	m.MessageAttributes = map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {StringValue: &key, DataType: "String"}}
	return m
}

func batch(messages ...events.SQSMessage) events.SQSEvent { return events.SQSEvent{Records: messages} }

func position(seq string) events.KinesisEventRecord {
	return events.KinesisEventRecord{
		EventID: "shardId-000000000000:" + seq, EventSource: "aws:kinesis",
		EventSourceArn: "arn:aws:kinesis:eu-central-1:123456789012:stream/positions",
		Kinesis:        events.KinesisRecord{SequenceNumber: seq, Data: []byte(seq), PartitionKey: "p"},
	}
}

const (
	clusterARN = "arn:aws:kafka:eu-central-1:123456789012:cluster/rides/e9f754c6-d29a-4430-a7db-958a19fd2c54-4"
	topicName  = "positions"
)

// moved is a record of a topic.
func moved(partition, offset int64, value string) events.KafkaRecord {
	return events.KafkaRecord{
		Topic: topicName, Partition: partition, Offset: offset, Value: base64.StdEncoding.EncodeToString([]byte(value)),
		Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(1795253400000 + offset)},
	}
}

// partitions is an event of a topic.
func partitions(records ...events.KafkaRecord) events.KafkaEvent {
	ev := events.KafkaEvent{EventSource: "aws:kafka", EventSourceARN: clusterARN, Records: make(map[string][]events.KafkaRecord)}
	for _, r := range records {
		name := fmt.Sprint(topicName, "-", r.Partition)
		ev.Records[name] = append(ev.Records[name], r)
	}
	return ev
}

// namedRecord is a record with a key of its producer's.
func namedRecord(r events.KafkaRecord, keys ...string) events.KafkaRecord {
	for _, key := range keys {
		r.Headers = append(r.Headers, map[string]events.JSONNumberBytes{lambda.KeyAttribute: []byte(key)})
	}
	return r
}

// own is an event of a cluster that isn't MSK's.
func own(servers string) events.KafkaEvent {
	ev := partitions(moved(0, 1, "1"))
	ev.EventSource, ev.EventSourceARN, ev.BootstrapServers = "SelfManagedKafka", "", servers
	return ev
}

func change(seq string) events.DynamoDBEventRecord {
	return events.DynamoDBEventRecord{
		EventID: "event-" + seq, EventName: "INSERT", EventSource: "aws:dynamodb",
		EventSourceArn: "arn:aws:dynamodb:eu-central-1:123456789012:table/rides/stream/2026-11-21T00:48:05.899",
		Change:         events.DynamoDBStreamRecord{SequenceNumber: seq},
	}
}

func notification(id string) events.SNSEventRecord {
	return events.SNSEventRecord{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: id, TopicArn: topicARN, Message: id}}
}

func upload(object string) events.S3EventRecord {
	return events.S3EventRecord{EventSource: "aws:s3", EventName: "ObjectCreated:Put", S3: events.S3Entity{
		Bucket: events.S3Bucket{Name: "statements"}, Object: events.S3Object{Key: object, Sequencer: "01"},
	}}
}

// worker is a handler of records, known by their names, that counts.
type worker struct {
	mu   sync.Mutex
	did  []string // every run, in order
	fail map[string]error
}

var errBad = errors.New("bad record")

func (w *worker) do(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, name)
	return w.fail[name]
}

func (w *worker) message(_ context.Context, m events.SQSMessage) error { return w.do(m.MessageId) }

// failing makes the next runs of these records fail, and of no others.
func (w *worker) failing(names ...string) {
	w.fail = make(map[string]error)
	for _, n := range names {
		w.fail[n] = errBad
	}
}

// ran checks which records were worked on since the last time, in any order.
func (w *worker) ran(t testing.TB, want ...string) {
	t.Helper()
	w.mu.Lock() // a handler may be running still
	slices.Sort(w.did)
	w.mu.Unlock()
	w.ranInOrder(t, want...)
}

// ranInOrder checks which records were worked on since the last time, in order.
func (w *worker) ranInOrder(t testing.TB, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.did); diff != "" {
		t.Errorf("records worked on (-want +got):\n%s", diff)
	}
	w.did = nil
}

// quiet is a batch that doesn't log, for tests in which records fail.
func quiet[Ev, Rec, Re any](b lambda.Batch[Ev, Rec, Re]) lambda.Batch[Ev, Rec, Re] {
	b.Failed = func(context.Context, Rec, error) {}
	b.NotRun = b.Failed
	return b
}

func failures(re events.SQSEventResponse) []string {
	ids := make([]string, 0, len(re.BatchItemFailures))
	for _, f := range re.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// reported checks which records an answer names as failed.
func reported(t testing.TB, re events.SQSEventResponse, err error, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), failures(re)); diff != "" || err != nil {
		t.Errorf("err %v, failures reported (-want +got):\n%s", err, diff)
	}
}

func TestEachRecordIsAnOperation(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
	ev := batch(message("1", "a"), message("2", "b"), message("3", "a"))

	w.failing("2")
	re, err := h.Handle(t.Context(), ev)
	reported(t, re, err, "2")
	w.ran(t, "1", "2", "3")

	w.failing()
	re, err = h.Handle(t.Context(), ev)
	reported(t, re, err)
	w.ran(t, "2")

	re, err = h.Handle(t.Context(), ev)
	reported(t, re, err)
	w.ran(t)
}

func TestFIFOGroupStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{0, 1, 2, 8} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			b := quiet(lambda.SQS)
			b.Concurrency = concurrency
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
			ev := batch(inGroup("A", "a1"), inGroup("B", "b1"), inGroup("A", "a2"), inGroup("B", "b2"), inGroup("A", "a3"), inGroup("", "c1"))

			w.failing("a2")
			re, err := h.Handle(t.Context(), ev)
			reported(t, re, err, "a2", "a3")
			w.ran(t, "a1", "a2", "b1", "b2", "c1")

			w.failing()
			re, err = h.Handle(t.Context(), batch(inGroup("A", "a2"), inGroup("A", "a3")))
			reported(t, re, err)
			w.ranInOrder(t, "a2", "a3")
		})
	}
}

// Groups of standard queues are for fairness, not for order.
func TestStandardQueueHasNoOrder(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
	m1, m2 := message("1", ""), message("2", "")
	m1.Attributes = map[string]string{"MessageGroupId": "tenant"}
	m2.Attributes = m1.Attributes
	w.failing("1")
	re, err := h.Handle(t.Context(), batch(m1, m2))
	reported(t, re, err, "1")
	w.ran(t, "1", "2")
}

func TestStreamStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	t.Run("Kinesis", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		b := quiet(lambda.Kinesis)
		b.Concurrency = 8 // makes no difference within a shard
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, r events.KinesisEventRecord) error {
			return w.do(string(r.Kinesis.Data))
		})
		stopsAtFirst(t, w, func(seqs ...string) (any, error) {
			var ev events.KinesisEvent
			for _, s := range seqs {
				ev.Records = append(ev.Records, position(s))
			}
			return h.Handle(t.Context(), ev)
		})
	})
	t.Run("DynamoDBStream", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.DynamoDBStream), func(_ context.Context, r events.DynamoDBEventRecord) error {
			return w.do(r.Change.SequenceNumber)
		})
		stopsAtFirst(t, w, func(seqs ...string) (any, error) {
			var ev events.DynamoDBEvent
			for _, s := range seqs {
				ev.Records = append(ev.Records, change(s))
			}
			return h.Handle(t.Context(), ev)
		})
	})
}

func stopsAtFirst(t *testing.T, w *worker, deliver func(seqs ...string) (any, error)) {
	t.Helper()
	answers := func(re any, err error, want string) {
		t.Helper()
		got, _ := json.Marshal(re)
		if string(got) != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	w.failing("103", "104")
	re, err := deliver("101", "102", "103", "104")
	answers(re, err, `{"batchItemFailures":[{"itemIdentifier":"103"}]}`)
	w.ranInOrder(t, "101", "102", "103")

	// Nothing done: the invocation fails, so that a mapping that bisects halves.
	_, err = deliver("103", "104")
	failed, ok := errors.AsType[*lambda.BatchError](err)
	if !ok || failed.Total != 2 || len(failed.Records) != 2 || !errors.Is(failed.Records[0].Err, errBad) || !errors.Is(failed.Records[1].Err, lambda.ErrNotRun) {
		t.Errorf("got %v, want both to have failed", err)
	}
	w.ran(t, "103")

	w.failing()
	re, err = deliver("102", "103", "104") // a whole batch again: what is done stays so
	answers(re, err, `{"batchItemFailures":[]}`)
	w.ranInOrder(t, "103", "104")
}

// Sources without partial reports: all records are tried, and the retry of the
// whole event runs the failed ones only.
func TestSourcesWithoutReportFailAfterAllRecords(t *testing.T) {
	t.Parallel()
	t.Run("SNS", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SNS), func(_ context.Context, r events.SNSEventRecord) error {
			return w.do(r.SNS.MessageID)
		})
		failsAfterAll(t, w, func() error {
			_, err := h.Handle(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{notification("1"), notification("2"), notification("3")}})
			return err
		})
	})
	t.Run("S3", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.S3), func(_ context.Context, r events.S3EventRecord) error {
			return w.do(r.S3.Object.Key)
		})
		failsAfterAll(t, w, func() error {
			_, err := h.Handle(t.Context(), events.S3Event{Records: []events.S3EventRecord{upload("1"), upload("2"), upload("3")}})
			return err
		})
	})
	t.Run("SQS without Reply", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		b := quiet(lambda.SQS)
		b.Reply = nil
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
		failsAfterAll(t, w, func() error {
			_, err := h.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", "")))
			return err
		})
	})
}

func failsAfterAll(t *testing.T, w *worker, deliver func() error) {
	t.Helper()
	w.failing("2")
	err := deliver()
	failed, ok := errors.AsType[*lambda.BatchError](err)
	if !ok || failed.Total != 3 || len(failed.Records) != 1 || failed.Records[0].ID != "2" || !errors.Is(err, errBad) {
		t.Errorf("got %v, want the failure of record 2", err)
	}
	const want = "lambda: 1 of 3 records failed: 2: bad record"
	if ok && err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	w.ran(t, "1", "2", "3")
	w.failing()
	if err := deliver(); err != nil {
		t.Errorf("the retry: %v", err)
	}
	w.ran(t, "2")
}

// Where nothing was done at all the invocation itself fails: its error shows in
// the function's metrics, and a mapping that ignores reports loses nothing.
func TestNothingDoneFailsTheInvocation(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), quiet(lambda.SQS), w.message)
	w.failing("1", "2", "3", "4", "5")
	re, err := h.Handle(t.Context(), batch(message("1", "")))
	if err != errBad || len(re.BatchItemFailures) != 0 { //nolint:errorlint // it must be the handler's own, for its errorType
		t.Errorf("one record: got %+v, %v, want its own error", re, err)
	}
	re, err = h.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", ""), message("4", ""), message("5", "")))
	const want = "lambda: 5 of 5 records failed: 1: bad record; 2: bad record; 3: bad record; and 2 more"
	if err == nil || err.Error() != want || !errors.Is(err, errBad) || len(re.BatchItemFailures) != 0 {
		t.Errorf("five records: got %+v, %v\nwant %s", re, err, want)
	}
}

// Two records of one key in one event: the second is a replay, never in flight.
func TestDuplicatesInOneBatch(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &worker{}
				b := quiet(lambda.SQS)
				b.Concurrency = concurrency
				h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(ctx context.Context, m events.SQSMessage) error {
					time.Sleep(time.Second) //nolint:forbidigo // virtual
					return w.message(ctx, m)
				})
				var messages []events.SQSMessage
				for i := range 40 {
					messages = append(messages, keyed(message(strconv.Itoa(i), "same"), "job-1"))
				}
				re, err := h.Handle(t.Context(), batch(messages...))
				reported(t, re, err)
				w.ran(t, "0")
			})
		})
	}
}

// The same key for other work: reported, so that it ends in the dead-letter
// queue and not in silence.
func TestMismatchIsReported(t *testing.T) {
	t.Parallel()
	text := func(s string) events.SQSMessageAttribute {
		return events.SQSMessageAttribute{StringValue: &s, DataType: "String"}
	}
	with := func(name, value string) events.SQSMessage {
		m := keyed(message("2", "same"), "job-1")
		m.MessageAttributes[name] = text(value)
		return m
	}
	grouped := keyed(message("2", "same"), "job-1")
	grouped.Attributes = map[string]string{"MessageGroupId": "g"}
	for name, tc := range map[string]struct {
		second  events.SQSMessage
		refused bool
	}{
		"the same":         {keyed(message("2", "same"), "job-1"), false},
		"another body":     {keyed(message("2", "other"), "job-1"), true},
		"an attribute":     {with("kind", "cancel"), true},
		"a group":          {grouped, true},
		"another trace":    {with("traceparent", "00-1"), false},
		"a B3 trace":       {with("X-B3-TraceId", "1"), false},
		"a Datadog trace":  {with("_datadog", "{}"), false},
		"another baggage":  {with("Baggage", "a=b"), false},
		"an X-Ray segment": {with("X-Amzn-Trace-Id", "Root=1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			var why error
			b := lambda.SQS
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) { why = err }
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, w.message)
			re, err := h.Handle(t.Context(), batch(keyed(message("1", "same"), "job-1"), tc.second))
			if tc.refused {
				reported(t, re, err, "2")
			} else {
				reported(t, re, err)
			}
			if errors.Is(why, idem.ErrMismatch) != tc.refused {
				t.Errorf("why: %v", why)
			}
			w.ran(t, "1")
		})
	}
}

// What another delivery changes doesn't make another message.
func TestRedeliveryIsTheSameMessage(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.SQS, w.message)
	for i := range 3 {
		m := message("1", "body")
		m.ReceiptHandle = fmt.Sprint("handle-", i)
		m.Md5OfBody = fmt.Sprint("md5-", i)
		m.Attributes = map[string]string{
			"ApproximateReceiveCount": fmt.Sprint(i), "ApproximateFirstReceiveTimestamp": fmt.Sprint(i), "SentTimestamp": fmt.Sprint(i),
			"SenderId": fmt.Sprint(i), "AWSTraceHeader": fmt.Sprint(i),
		}
		re, err := h.Handle(t.Context(), batch(m))
		reported(t, re, err)
	}
	w.ran(t, "1")
}

// Equal ids of two sources, or of two subscribers of one source, are two
// operations; a new version of a function goes on with the old one's.
func TestScopes(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	w := &worker{}
	queue := lambda.WrapEach(e, lambda.SQS, w.message)
	topic := lambda.WrapEach(e, lambda.SNS, func(_ context.Context, r events.SNSEventRecord) error { return w.do(r.SNS.MessageID) })
	deliver := func(arn, id string) {
		t.Helper()
		if _, err := topic.Handle(invoked(t.Context(), arn), events.SNSEvent{Records: []events.SNSEventRecord{notification(id)}}); err != nil {
			t.Errorf("%s: %v", arn, err)
		}
	}
	other := message("1", "")
	other.EventSourceARN += "-2"
	re, err := queue.Handle(t.Context(), batch(message("1", ""), other))
	reported(t, re, err)
	w.ran(t, "1", "1")

	deliver(functionARN, "1")
	w.ran(t, "1")
	deliver(functionARN+":$LATEST", "1")
	deliver(functionARN+":41", "1")
	deliver(functionARN+":42", "1")
	w.ran(t)
	deliver(functionARN+":staging", "1")
	w.ran(t, "1")
	deliver(functionARN+"-2", "1")
	w.ran(t, "1")
	deliver("", "1") // outside of Lambda
	w.ran(t, "1")
}

func TestWithKey(t *testing.T) {
	t.Parallel()
	byOrder := quiet(lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) {
		var order struct{ ID *string }
		err := json.Unmarshal([]byte(m.Body), &order)
		return *order.ID, err
	}))
	w := &worker{}
	store := process{&idem.MemoryStore{}}
	h := lambda.WrapEach(idem.New(store, callertest.Anybody), byOrder, w.message)
	re, err := h.Handle(t.Context(), batch(message("1", `{"ID":"o-1"}`), message("2", `{"ID":"o-2"}`), message("3", `{"ID":"o-1"}`)))
	reported(t, re, err)
	w.ran(t, "1", "2")

	for name, tc := range map[string]struct {
		body string
		want error
	}{
		"none":        {`{"ID":""}`, idem.ErrKeyMissing},
		"not visible": {`{"ID":"a b"}`, idem.ErrKeyInvalid},
		"an error":    {`{"ID":"x"`, nil},
		"a panic":     {`{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var why error
			b := byOrder
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) { why = err }
			w := &worker{}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody), b, w.message)
			re, err := h.Handle(t.Context(), batch(message("1", tc.body), message("2", `{"ID":"`+strconv.Itoa(len(name))+`"}`)))
			reported(t, re, err, "1")
			w.ran(t, "2")
			if tc.want != nil && !errors.Is(why, tc.want) || why == nil {
				t.Errorf("failed because %v, want %v", why, tc.want)
			}
		})
	}
	if lambda.SQS.Failed != nil {
		t.Error("the original was changed")
	}
	if key, err := lambda.SQS.Key(message("1", `{"ID":"o-1"}`)); key != "1" || err != nil {
		t.Errorf("the original was changed: its key is %q, %v", key, err)
	}
}

// A key names work within its group: a message with the key and the body of another
// group's is refused, not skipped, since a group may be a tenant. Nor does it wait for
// the other one.
func TestKeyInTwoGroupsIsRefused(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 8} {
		for name, m := range map[string]func(group, id string) events.SQSMessage{
			"FIFO": inGroup,
			"standard": func(group, id string) events.SQSMessage {
				m := inGroup(group, id)
				m.EventSourceARN = queueARN
				return m
			},
		} {
			t.Run(fmt.Sprint(name, ", concurrency ", concurrency), func(t *testing.T) {
				t.Parallel()
				w := &worker{}
				var mu sync.Mutex
				refused := make(map[string]error)
				b := lambda.SQS.WithKey(func(events.SQSMessage) (string, error) { return "order-1", nil })
				b.Concurrency = concurrency
				b.Failed = func(_ context.Context, m events.SQSMessage, err error) {
					mu.Lock()
					defer mu.Unlock()
					refused[m.MessageId] = err
				}
				h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error { return w.do(m.Body) })
				one, other := m("A", "a1"), m("B", "b1")
				one.Body, other.Body = "pay 20", "pay 20"
				for range 2 { // what was refused comes again
					re, err := h.Handle(t.Context(), batch(one, other))
					if failed := failures(re); len(failed) != 1 || err != nil || !errors.Is(refused[failed[0]], idem.ErrMismatch) {
						t.Errorf("reported %v, %v: %v, want one mismatch", failed, err, refused)
					}
				}
				w.ran(t, "pay 20")
			})
		}
	}
}

// A hook that panics doesn't take the report with it: the records that failed come
// again, and no others.
func TestHookThatPanicsKeepsTheReport(t *testing.T) {
	t.Parallel()
	b := lambda.SQS
	b.Failed = func(context.Context, events.SQSMessage, error) { panic("the hook's own") }
	h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
		if m.MessageId != "2" {
			return errors.New("no such address")
		}
		return nil
	})
	re, err := h.Handle(t.Context(), batch(message("1", "a"), message("2", "b"), message("3", "c")))
	reported(t, re, err, "1", "3")
}
