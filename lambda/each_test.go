package lambda_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
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

func TestFIFOGroupStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{0, 1, 2, 8} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			b := quiet(lambda.SQS)
			b.Concurrency = concurrency
			h := lambda.WrapEach(anEngine(), b, w.message)
			fair1, fair2 := message("d1", ""), message("d2", "") // groups of standard queues are no order
			fair1.Attributes = map[string]string{"MessageGroupId": "tenant"}
			fair2.Attributes = fair1.Attributes
			ev := batch(inGroup("A", "a1"), inGroup("B", "b1"), inGroup("A", "a2"), inGroup("B", "b2"), inGroup("A", "a3"), inGroup("", "c1"), fair1, fair2)

			w.failing("a2", "d1")
			re, err := h.Handle(t.Context(), ev)
			reported(t, re, err, "a2", "a3", "d1")
			w.ran(t, "a1", "a2", "b1", "b2", "c1", "d1", "d2")

			w.failing()
			re, err = h.Handle(t.Context(), batch(inGroup("A", "a2"), inGroup("A", "a3")))
			reported(t, re, err)
			w.ranInOrder(t, "a2", "a3")
		})
	}
}

func TestStreamStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	t.Run("Kinesis", func(t *testing.T) {
		t.Parallel()
		w := &worker{}
		b := quiet(lambda.Kinesis)
		b.Concurrency = 8 // makes no difference within a shard
		h := lambda.WrapEach(anEngine(), b, func(_ context.Context, r events.KinesisEventRecord) error {
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
		h := lambda.WrapEach(anEngine(), quiet(lambda.DynamoDBStream), func(_ context.Context, r events.DynamoDBEventRecord) error {
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

// Where nothing was done at all the invocation itself fails: its error shows in
// the function's metrics, and a mapping that ignores reports loses nothing.
func TestNothingDoneFailsTheInvocation(t *testing.T) {
	t.Parallel()
	w := &worker{}
	h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), w.message)
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
				h := lambda.WrapEach(anEngine(), b, func(ctx context.Context, m events.SQSMessage) error {
					time.Sleep(time.Second) //nolint:forbidigo // virtual
					return w.message(ctx, m)
				})
				var messages []events.SQSMessage
				for i := range 8 {
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
		"a direct debit":   {with("dd-account", "2"), true}, // no trace of Datadog
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
			h := lambda.WrapEach(anEngine(), b, w.message)
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

func TestWithKey(t *testing.T) {
	t.Parallel()
	byOrder := quiet(lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) {
		var order struct{ ID *string }
		err := json.Unmarshal([]byte(m.Body), &order)
		return *order.ID, err
	}))
	w := &worker{}
	h := lambda.WrapEach(anEngine(), byOrder, w.message)
	re, err := h.Handle(t.Context(), batch(message("1", `{"ID":"o-1"}`), message("2", `{"ID":"o-2"}`), message("3", `{"ID":"o-1"}`)))
	reported(t, re, err)
	w.ran(t, "1", "2")

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
				h := lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error { return w.do(m.Body) })
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
	h := lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error {
		if m.MessageId != "2" {
			return errors.New("no such address")
		}
		return nil
	})
	re, err := h.Handle(t.Context(), batch(message("1", "a"), message("2", "b"), message("3", "c")))
	reported(t, re, err, "1", "3")
}

// What the engine says of a record, where it isn't plainly new or a replay.

// A record that comes again is read before it is claimed. A message tells so; a stream's event doesn't:
// its first record, done before, tells it of the next, and so on to the first that is new.
func TestRecordThatComesAgainIsReadFirst(t *testing.T) {
	t.Parallel()
	st := idemtest.Faulty(&idem.MemoryStore{}, nil)
	e, w := idem.New(st, callertest.Anybody), &worker{}
	stream := lambda.WrapEach(e, quiet(lambda.Kinesis), func(_ context.Context, r events.KinesisEventRecord) error { return w.do(r.Kinesis.SequenceNumber) })
	queue := lambda.WrapEach(e, quiet(lambda.SQS), w.message)
	for i, step := range []struct {
		source        string
		received      int // by a queue's count
		records, runs int
		reads, claims int
	}{
		{"Kinesis", 0, 3, 3, 0, 3},
		{"Kinesis", 0, 5, 2, 3, 3},
		{"Kinesis", 0, 5, 0, 4, 1},
		{"SQS", 1, 3, 3, 0, 3},
		{"SQS", 2, 3, 0, 3, 0},
		{"SQS", 0, 3, 0, 0, 3},
		{"SQS", 3, 5, 2, 5, 2},
	} {
		var ev events.KinesisEvent
		var messages []events.SQSMessage
		for n := range step.records {
			ev.Records = append(ev.Records, position(strconv.Itoa(n)))
			m := message(strconv.Itoa(n), "")
			m.Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(step.received)}
			messages = append(messages, m)
		}
		st.Reset(nil)
		var err error
		if step.source == "Kinesis" {
			_, err = stream.Handle(t.Context(), ev)
		} else {
			_, err = queue.Handle(t.Context(), batch(messages...))
		}
		if reads, claims := st.Calls("Load"), st.Calls("Claim"); err != nil || reads != step.reads || claims != step.claims || len(w.did) != step.runs {
			t.Errorf("step %d: %v, %d reads, %d claims, %d runs; want %+v", i, err, reads, claims, len(w.did), step)
		}
		w.did = nil
	}
}

// Work that was done is done, whether or not its answer is still there: a source
// waits for none.
func TestDoneWithoutAnswerIsDone(t *testing.T) {
	t.Parallel()
	w := &worker{}
	m := message("1", "body")
	request := func(t *testing.T) idem.Request {
		req, err := lambda.SQS.Request(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		req.Key = "1"
		return req
	}
	t.Run("not kept", func(t *testing.T) {
		t.Parallel()
		e := anEngine(func(o *idem.Options) { o.MaxBody = 1 })
		if _, err := e.Do(t.Context(), request(t), func(context.Context) (idem.Response, error) {
			return idem.Response{Body: []byte("too large")}, nil
		}); err != nil {
			t.Fatal(err)
		}
		re, err := lambda.WrapEach(e, lambda.SQS, w.message).Handle(t.Context(), batch(m))
		reported(t, re, err)
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		st := &edited{edit: func(r *store.Record) { r.Until = time.Now().Add(-time.Minute) }}
		e := idem.New(st, callertest.Anybody)
		if _, err := e.Do(t.Context(), request(t), func(context.Context) (idem.Response, error) { return idem.Response{}, nil }); err != nil {
			t.Fatal(err)
		}
		re, err := lambda.WrapEach(e, lambda.SQS, w.message).Handle(t.Context(), batch(m))
		reported(t, re, err)
	})
	w.ran(t)
}

// edited is a store that shows finished records otherwise than they are.
type edited struct {
	idem.MemoryStore
	edit func(*store.Record)
}

func (s *edited) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	held, err := s.MemoryStore.Claim(ctx, c)
	if held != nil && held.State == store.Done {
		s.edit(held)
	}
	return held, err
}

// Phases work in a record's handler; what they answer is that it is done.
func TestPhasesInARecord(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context) error{
		"nil":                 func(context.Context) error { return nil },
		"Respond":             func(context.Context) error { return idem.Respond("done") },
		"Respond, a response": func(context.Context) error { return idem.Respond(idem.Response{Status: 402}) },
		"Finish": func(ctx context.Context) error {
			_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (string, error) { return "done", nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, fail := 0, true
			h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error {
				_, err := idem.Atomic(ctx, "counted", func(context.Context, *idem.Tx) (int, error) {
					runs++
					return runs, nil
				})
				if err == nil && fail {
					err = errBad
				}
				if err != nil {
					return err
				}
				return end(ctx)
			})
			if _, err := h.Handle(t.Context(), batch(message("1", ""))); err == nil {
				t.Error("no error")
			}
			fail = false
			for range 2 {
				re, err := h.Handle(t.Context(), batch(message("1", "")))
				reported(t, re, err)
			}
			if runs != 1 {
				t.Errorf("the phase ran %d times", runs)
			}
		})
	}
}

// Each record is an operation: the report names those that failed, and only they run again.
func TestManyRecords(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 16} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			w := &worker{}
			b := quiet(lambda.SQS)
			b.Concurrency = concurrency
			h := lambda.WrapEach(anEngine(), b, w.message)
			var messages []events.SQSMessage
			var all, bad []string
			for i := range 200 {
				id := fmt.Sprintf("%04d", i)
				messages = append(messages, message(id, id))
				all = append(all, id)
				if i%10 == 0 {
					bad = append(bad, id)
				}
			}
			w.failing(bad...)
			re, err := h.Handle(t.Context(), batch(messages...))
			reported(t, re, err, bad...)
			w.ran(t, all...)

			w.failing()
			re, err = h.Handle(t.Context(), batch(messages...))
			reported(t, re, err)
			w.ran(t, bad...)
		})
	}
}

// What can't be begun in time is not begun, not even claimed.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	t.Run("after two of four records", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store := &watched{}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			n := 0
			var why []error
			b := lambda.SQS
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) {
				t.Errorf("told %v of what was not tried", err)
			}
			b.NotRun = func(_ context.Context, m events.SQSMessage, err error) {
				why = append(why, fmt.Errorf("%s: %w", m.MessageId, err))
			}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody), b, func(context.Context, events.SQSMessage) error {
				n++
				time.Sleep(4700 * time.Millisecond) //nolint:forbidigo // virtual
				return nil
			})
			re, err := h.Handle(ctx, batch(inGroup("A", "1"), inGroup("A", "2"), inGroup("A", "3"), inGroup("A", "4")))
			reported(t, re, err, "3", "4")
			if n != 2 || store.claims.Load() != 2 {
				t.Errorf("%d runs, %d claims, want 2 of each", n, store.claims.Load())
			}
			if len(why) != 2 || !strings.HasPrefix(why[0].Error(), "3: ") || !strings.HasPrefix(why[1].Error(), "4: ") {
				t.Errorf("not tried: %q", why)
			}
			for _, err := range why {
				if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, lambda.ErrNotRun) {
					t.Errorf("not tried because %v, want ErrNoTime", err)
				}
			}
		})
	})
	t.Run("from the begin", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			store, w := &watched{}, &worker{}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), w.message)
			ctx, cancel := context.WithTimeout(t.Context(), defaults.Reserve*3/2-time.Millisecond)
			defer cancel()
			_, err := h.Handle(ctx, batch(message("1", ""), message("2", "")))
			if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, lambda.ErrNotRun) {
				t.Errorf("got %v", err)
			}
			store.untouched(t)
			w.ran(t)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		store := &watched{}
		w := &worker{}
		h := lambda.WrapEach(idem.New(store, callertest.Anybody), quiet(lambda.SQS), w.message)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.Handle(ctx, batch(message("1", "")))
		if !errors.Is(err, idem.ErrNoTime) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		store.untouched(t)
		w.ran(t)
	})
}

// A record nobody can work on doesn't keep the others from being done, and its
// content doesn't get out.
func TestPanicIsTheRecordsFailure(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint("concurrency ", concurrency), func(t *testing.T) {
			t.Parallel()
			var why error
			b := lambda.SQS
			b.Concurrency = concurrency
			b.Failed = func(_ context.Context, _ events.SQSMessage, err error) { why = err }
			w := &worker{}
			panicking := true
			h := lambda.WrapEach(anEngine(), b, func(ctx context.Context, m events.SQSMessage) error {
				if m.MessageId == "2" && panicking {
					panic("can't parse " + m.Body)
				}
				return w.message(ctx, m)
			})
			ev := batch(message("1", ""), message("2", "s3cr3t"), message("3", ""))
			re, err := h.Handle(t.Context(), ev)
			reported(t, re, err, "2")
			w.ran(t, "1", "3")
			p, ok := errors.AsType[*lambda.PanicError](why)
			if !ok || p.Value != "can't parse s3cr3t" || !strings.Contains(string(p.Stack), "TestPanicIsTheRecordsFailure") {
				t.Errorf("failed because %#v", why)
			}
			if want := "lambda: handler panicked with a string"; ok && p.Error() != want {
				t.Errorf("got %q, want %q", p.Error(), want)
			}
			panicking = false
			re, err = h.Handle(t.Context(), ev)
			reported(t, re, err)
			w.ran(t, "2")
		})
	}
	t.Run("of the Go runtime", func(t *testing.T) {
		t.Parallel()
		h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), func(_ context.Context, m events.SQSMessage) error {
			_ = m.MessageAttributes["none"].StringListValues[len(m.Body)]
			return nil
		})
		_, err := h.Handle(t.Context(), batch(message("1", "")))
		const want = "lambda: handler panicked: runtime error: index out of range [0] with length 0"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, ok := errors.AsType[runtime.Error](err); !ok {
			t.Errorf("%v is no runtime.Error", err)
		}
	})
}

// runtime.Goexit takes a goroutine away in the middle of its records.
func TestGoexitLeavesNothingDone(t *testing.T) {
	t.Parallel()
	b := quiet(lambda.SQS)
	b.Concurrency = 2
	h := lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error {
		if m.MessageId != "1" {
			runtime.Goexit()
		}
		return nil
	})
	re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", ""), message("4", "")))
	reported(t, re, err, "2", "3", "4")
}

// logged has do write to the default log, and returns what it wrote.
func logged(t *testing.T, do func()) string {
	t.Helper()
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	do()
	return log.String()
}

// An event of one's own may have no records: then all of them are done.
func TestBatchWithoutRecords(t *testing.T) {
	t.Parallel()
	b := lambda.SQS
	b.Records = func(events.SQSEvent) ([]events.SQSMessage, error) { return nil, nil }
	h := lambda.WrapEach(anEngine(), b, func(context.Context, events.SQSMessage) error { return errors.New("ran") })
	re, err := h.Handle(t.Context(), events.SQSEvent{})
	reported(t, re, err)
}

// A message over the quota comes back, and a message that was done is not refused.
func TestMessageOverTheQuotaComesBack(t *testing.T) {
	t.Parallel()
	ran, now := make(map[string]int), time.Now()
	engine := anEngine(func(o *idem.Options) {
		o.Quota = quota.New(quota.Limits{PerMinute: 1}, func(o *quota.Options) { o.Now = func() time.Time { return now } })
	})
	h := lambda.WrapEach(engine, quiet(lambda.SQS), func(_ context.Context, m events.SQSMessage) error {
		ran[m.MessageId]++
		return nil
	})
	failed := func(ids ...string) int {
		t.Helper()
		var ev events.SQSEvent
		for _, id := range ids {
			ev.Records = append(ev.Records, events.SQSMessage{MessageId: id, Body: id, EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders", EventSource: "aws:sqs"})
		}
		out, err := h.Handle(t.Context(), ev)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.BatchItemFailures)
	}
	if n := failed("m1"); n != 0 || ran["m1"] != 1 {
		t.Errorf("the first message: %d failed, ran %v", n, ran)
	}
	if n := failed("m1", "m2"); n != 1 || ran["m1"] != 1 || ran["m2"] != 0 {
		t.Errorf("with a message over the quota: %d failed, ran %v", n, ran)
	}
}

// Sources without partial reports: all records are tried, and the retry of the whole event runs
// the failed ones only.
func TestSourcesWithoutReportFailAfterAllRecords(t *testing.T) {
	t.Parallel()
	w := &worker{}
	noReply := quiet(lambda.SQS)
	noReply.Reply = nil
	topic := lambda.WrapEach(anEngine(), quiet(lambda.SNS), func(_ context.Context, r events.SNSEventRecord) error { return w.do(r.SNS.MessageID) })
	bucket := lambda.WrapEach(anEngine(), quiet(lambda.S3), func(_ context.Context, r events.S3EventRecord) error { return w.do(r.S3.Object.Key) })
	queue := lambda.WrapEach(anEngine(), noReply, w.message)
	for name, deliver := range map[string]func() error{
		"SNS": func() error {
			_, err := topic.Handle(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{notification("1"), notification("2"), notification("3")}})
			return err
		},
		"S3": func() error {
			_, err := bucket.Handle(t.Context(), events.S3Event{Records: []events.S3EventRecord{upload("1"), upload("2"), upload("3")}})
			return err
		},
		"SQS without Reply": func() error {
			_, err := queue.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", "")))
			return err
		},
	} {
		w.failing("2")
		err := deliver()
		failed, ok := errors.AsType[*lambda.BatchError](err)
		const want = "lambda: 1 of 3 records failed: 2: bad record"
		if !ok || failed.Total != 3 || len(failed.Records) != 1 || failed.Records[0].ID != "2" || !errors.Is(err, errBad) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		w.ran(t, "1", "2", "3")
		w.failing()
		if err := deliver(); err != nil {
			t.Errorf("%s, the retry: %v", name, err)
		}
		w.ran(t, "2")
	}
}

// A handler that has seen a phase fail and says nil has not done the record's work: the record
// comes again, also if the phase's error is one that another operation's lost answer would give. An
// answer by Respond is final.
func TestNilAfterAFailedPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range []error{errBad, idem.ErrNotKept, idem.ErrNoTime} {
		for _, end := range []error{nil, idem.Respond(idem.Response{})} {
			runs := 0
			h := lambda.WrapEach(anEngine(), quiet(lambda.SQS), func(ctx context.Context, _ events.SQSMessage) error {
				runs++
				_, _ = idem.Atomic(ctx, "paid", func(context.Context, *idem.Tx) (int, error) { return 0, fmt.Errorf("another operation: %w", phase) })
				return end
			})
			want := 1
			for range 2 {
				re, err := h.Handle(t.Context(), batch(message("1", "")))
				if end != nil {
					reported(t, re, err)
				} else if want = 2; !errors.Is(err, phase) || errors.Is(err, lambda.ErrNotRun) {
					t.Errorf("got %v, want the phase's %v: the message would be gone", err, phase)
				}
			}
			if runs != want {
				t.Errorf("%v, %v: %d runs, want %d", phase, end, runs, want)
			}
		}
	}
}

// A record that can't be read isn't run, also where a key is optional; its key function isn't
// asked, and its neighbours are done. An engine that is switched off hands on records without a key.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	b := quiet(lambda.SQS)
	b.Request = func(ctx context.Context, m events.SQSMessage) (idem.Request, error) {
		req, _ := lambda.SQS.Request(ctx, m)
		if m.Body == "bad" {
			return req, errBad
		}
		return req, nil
	}
	b.Key = func(m events.SQSMessage) (string, error) {
		if m.Body == "bad" {
			t.Error("the key function is asked")
		}
		return "", nil
	}
	w, store := &worker{}, &watched{}
	h := lambda.WrapEach(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyOptional }), b, w.message)
	re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", "bad"), message("3", "bad"), message("4", "")))
	reported(t, re, err, "2", "3")
	w.ran(t, "1", "4")
	if _, err := h.Handle(t.Context(), batch(message("2", "bad"))); !errors.Is(err, errBad) {
		t.Errorf("got %v, want its own error", err)
	}
	off := lambda.WrapEach(idem.New(store, func(o *idem.Options) { o.Mode = idem.ModeOff }), b, w.message)
	w.failing("2")
	for range 2 {
		re, err := off.Handle(t.Context(), batch(message("1", ""), message("2", ""), message("3", "")))
		reported(t, re, err, "2")
		w.ran(t, "1", "2", "3")
	}
	store.untouched(t)
}

// The answer of an invocation that reports failures looks fine, so the log says what went wrong:
// once what the source must do about it, what wasn't tried only if no hook is told, and nothing of
// a record's content.
func TestLogOfABatch(t *testing.T) {
	w := &worker{}
	w.failing("1", "a1")
	work := func(ctx context.Context, m events.SQSMessage) error {
		switch m.MessageId {
		case "2":
			panic(m.Body)
		case "4":
			return &url.Error{Op: "Get", URL: "https://bank.example/?key=" + m.Body, Err: io.EOF}
		}
		return w.message(ctx, m)
	}
	const (
		takes    = `level=WARN msg="records must be delivered again, which needs ReportBatchItemFailures on the event source mapping: `
		first    = `level=ERROR msg="record failed" record=1 error="bad record"` + "\n"
		second   = `level=ERROR msg="record failed" record=2 error="lambda: handler panicked with a string" stack="goroutine `
		notTried = `level=WARN msg="records were not tried and will be delivered again" records=2 of=4 first=a2 error="not tried: an earlier record of its group failed"` + "\n"
	)
	plain, hooked, panics := lambda.SQS, lambda.SQS, lambda.SQS
	hooked.Failed, hooked.NotRun = quiet(hooked).Failed, quiet(hooked).NotRun
	panics.Failed = func(context.Context, events.SQSMessage, error) { panic("a hook") }
	for name, tc := range map[string]struct {
		batch      queueBatch
		messages   []events.SQSMessage
		says, not  []string
		failedLogs int
	}{
		"nothing failed": {plain, []events.SQSMessage{message("3", "")}, nil, []string{takes, "not tried"}, 0},
		"two failed":     {plain, []events.SQSMessage{message("1", "s3cr3t"), message("2", "s3cr3t"), message("3", "s3cr3t")}, []string{takes, first, second}, []string{"not tried", "record=3"}, 2},
		"a URL":          {plain, []events.SQSMessage{message("4", "s3cr3t"), message("3", "")}, []string{`record=4 error="Get \"https://bank.example/?…\": EOF"`}, nil, 1},
		"not tried":      {plain, []events.SQSMessage{inGroup("A", "a1"), inGroup("A", "a2"), inGroup("A", "a3"), inGroup("B", "b1")}, []string{notTried}, nil, 1},
		"a hook is told": {hooked, []events.SQSMessage{inGroup("A", "a1"), inGroup("A", "a2"), message("3", "")}, []string{takes}, []string{"not tried"}, 0},
		"a hook panics":  {panics, []events.SQSMessage{message("1", ""), message("3", "")}, []string{"record=1", "Batch.Failed"}, nil, 1},
	} {
		h := lambda.WrapEach(anEngine(), tc.batch, work)
		for i := range 2 {
			log := logged(t, func() { _, _ = h.Handle(t.Context(), batch(tc.messages...)) })
			for _, want := range tc.says {
				if strings.Contains(log, want) == (i == 1 && want == takes) {
					t.Errorf("%s, delivery %d: the log lacks, or repeats, %q:\n%s", name, i+1, want, log)
				}
			}
			for _, not := range append(tc.not, "s3cr3t") {
				if strings.Contains(log, not) {
					t.Errorf("%s, delivery %d: the log has %q:\n%s", name, i+1, not, log)
				}
			}
			if n := strings.Count(log, "record failed"); n != tc.failedLogs {
				t.Errorf("%s, delivery %d: %d failures in the log, want %d:\n%s", name, i+1, n, tc.failedLogs, log)
			}
		}
	}
}
