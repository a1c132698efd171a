package stream_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
)

// invoker is a background function.
type invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// makeDrain makes what drains a table into a sink.
type makeDrain func(t testing.TB, tab *table, sink jobs.Sink, optFns ...func(*stream.DrainOptions)) invoker

// drains runs a test of a drain against a drain, and against a worker: what the
// drain reports, the worker sets aside.
func drains(t *testing.T, test func(t *testing.T, newDrain makeDrain)) {
	t.Helper()
	t.Run("drain", func(t *testing.T) {
		t.Parallel()
		test(t, func(_ testing.TB, tab *table, sink jobs.Sink, optFns ...func(*stream.DrainOptions)) invoker {
			return stream.NewDrain(tab.Store, sink, optFns...)
		})
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		queue := &mailbox{} // outlives the processes
		test(t, func(t testing.TB, tab *table, sink jobs.Sink, optFns ...func(*stream.DrainOptions)) invoker {
			t.Helper()
			return &draining{queue: queue, Worker: queue.worker(tab, func(o *worker.Options) {
				o.Sink = sink
				o.Drain = func(o *stream.DrainOptions) {
					for _, fn := range optFns {
						fn(o)
					}
				}
			})}
		})
	})
}

// mailbox is a queue of tickets as SQS has it.
type mailbox struct {
	fail error // of the next calls

	mu       sync.Mutex
	messages []string
	reported []string // sequence numbers
}

// SendMessageBatch implements completer.QueueAPI.
func (m *mailbox) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		m.messages = append(m.messages, aws.ToString(e.MessageBody))
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// take takes out all messages, as the event of their queue; nil if there are none.
func (m *mailbox) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ev events.SQSEvent
	for i, body := range m.messages {
		ev.Records = append(ev.Records, events.SQSMessage{MessageId: strconv.Itoa(i), EventSource: "aws:sqs", Body: body})
	}
	m.messages = nil
	if len(ev.Records) == 0 {
		return nil
	}
	payload, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	return payload
}

// jobsOf are the operations whose jobs were set aside in messages from the nth on.
func (m *mailbox) jobsOf(n int) (operations []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.messages[n:] {
		var t jobs.Ticket
		if err := json.Unmarshal([]byte(body), &t); err != nil {
			panic(err)
		}
		if t.Jobs != "" {
			operations = append(operations, t.Jobs)
		}
	}
	return operations
}

func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.messages)
}

// worker is a worker to whom each ticket is due.
func (m *mailbox) worker(tab *table, optFns ...func(*worker.Options)) *worker.Worker {
	return worker.New(tab.Direct, tab.Store, completer.NewQueue(m, "https://tickets"), append(optFns, func(o *worker.Options) {
		o.Tickets = func(o *completer.Options) {
			o.Concurrency = 1
			o.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
		}
	})...)
}

// draining is a worker seen as a drain: an operation that was set aside counts as
// reported, and comes again from the queue.
type draining struct {
	*worker.Worker
	queue *mailbox
}

// Invoke hands a batch to the worker: records that were reported before as tickets,
// others as they are.
func (d *draining) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev events.DynamoDBEvent
	var re events.DynamoDBEventResponse
	if err := json.Unmarshal(payload, &ev); err != nil || len(ev.Records) == 0 {
		return d.Worker.Invoke(ctx, payload)
	}
	if tickets := d.queue.take(); tickets != nil && slices.Contains(d.queue.reported, ev.Records[0].Change.SequenceNumber) {
		if _, err := d.Worker.Invoke(ctx, tickets); err != nil {
			return nil, err
		}
	} else {
		out, err := d.Worker.Invoke(ctx, payload)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(out, &re); err != nil {
			return nil, err
		}
	}
	first := len(ev.Records)
	if len(re.BatchItemFailures) > 0 {
		first = slices.IndexFunc(ev.Records, func(r events.DynamoDBEventRecord) bool {
			return r.Change.SequenceNumber == re.BatchItemFailures[0].ItemIdentifier
		})
	}
	for _, operation := range d.queue.jobsOf(0) {
		first = min(first, recordOf(ev, operation))
	}
	re.BatchItemFailures = []events.DynamoDBBatchItemFailure{}
	if first < len(ev.Records) {
		seq := ev.Records[first].Change.SequenceNumber
		d.queue.reported = append(d.queue.reported, seq)
		re.BatchItemFailures = append(re.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: seq})
	}
	return json.Marshal(re)
}

// recordOf is the first record of a batch with jobs of an operation, or its last one
// if none has jobs.
func recordOf(ev events.DynamoDBEvent, operation string) (at int) {
	for i, r := range ev.Records {
		id := r.Change.NewImage["id"]
		if r.Change.NewImage == nil || id.IsNull() || id.String() != operation {
			continue
		}
		at = i
		if jobs := r.Change.NewImage["jobs"]; len(jobs.Map()) > 0 {
			break
		}
	}
	return at
}
