package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/base/errlist"
)

// invoker is a background function.
type invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// makeDrain makes what drains a table into a sink.
type makeDrain func(t testing.TB, tab *table, sink jobs.Sink, optFns ...func(*stream.DrainOptions)) invoker

// drains runs a test of a drain against a drain, and against a worker: what the
// drain reports, the worker delays.
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
				o.Drain = all(optFns)
				o.Tickets = func(o *completer.Options) { o.Concurrency = 1 } // some sinks count
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

// ChangeMessageVisibility implements it as well: the message, which is its own receipt here, comes
// again.
func (m *mailbox) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, *in.ReceiptHandle)
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

// GetQueueAttributes has no answer: nothing waits.
func (*mailbox) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return nil, errInjected
}

// take takes out all messages, each of which is due, as the event of their queue; nil
// if there are none.
func (m *mailbox) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ev events.SQSEvent
	for i, body := range m.messages {
		var fields map[string]any
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			panic(err)
		}
		fields["due_ms"] = 1
		due, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		ev.Records = append(ev.Records, events.SQSMessage{MessageId: strconv.Itoa(i), ReceiptHandle: body, EventSource: "aws:sqs", Body: string(due)})
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

// operations are those whose jobs were delayed.
func (m *mailbox) operations() (operations []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.messages {
		if t := ticketOf(body); t.Jobs {
			operations = append(operations, t.Operation)
		}
	}
	return operations
}

func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.messages)
}

// worker is a worker whose tickets go to the mailbox.
func (m *mailbox) worker(tab *table, optFns ...func(*worker.Options)) *worker.Worker {
	return worker.New(tab.Client, tab.Store, completer.NewQueue(m, "https://tickets"), optFns...)
}

// deliver hands the queue's messages to a worker, and fails the test unless those that wait on
// are reported as failed. It reports whether there were any.
func (m *mailbox) deliver(t testing.TB, w *worker.Worker) bool {
	t.Helper()
	payload := m.take()
	if payload == nil {
		return false
	}
	out, err := w.Invoke(t.Context(), payload)
	var re events.SQSEventResponse
	if err != nil || json.Unmarshal(out, &re) != nil || len(re.BatchItemFailures) != m.len() {
		t.Fatalf("the worker answers %s, %v for tickets, of which %d wait", out, err, m.len())
	}
	return true
}

// sqsOf is a queue of tickets that the tests look into, as SQS has it.
type sqsOf struct {
	*mailbox
	stream.TicketQueue
}

func (s sqsOf) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	all := make([]jobs.Ticket, len(in.Entries))
	for i, e := range in.Entries {
		all[i] = ticketOf(*e.MessageBody)
	}
	out := &sqs.SendMessageBatchOutput{}
	for i, err := range errlist.Pad(s.Put(ctx, all), len(all)) {
		if err != nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: in.Entries[i].Id, Message: aws.String(err.Error())})
			continue
		}
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: in.Entries[i].Id})
	}
	return out, nil
}

func (s sqsOf) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return &sqs.ChangeMessageVisibilityOutput{}, errors.Join(s.Put(ctx, []jobs.Ticket{ticketOf(*in.ReceiptHandle)})...)
}

func asSQS(q stream.TicketQueue) *completer.Queue {
	if queue, ok := q.(*completer.Queue); ok {
		return queue
	}
	return completer.NewQueue(sqsOf{TicketQueue: q}, "https://tickets")
}

func ticketOf(body string) jobs.Ticket {
	var m struct {
		PK    string `json:"pk"`
		ID    string `json:"id"`
		Jobs  bool   `json:"jobs"`
		DueMS int64  `json:"due_ms"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		panic(err)
	}
	return jobs.Ticket{PK: m.PK, Operation: m.ID, Jobs: m.Jobs, Due: time.UnixMilli(m.DueMS)}
}

func bodyOf(t jobs.Ticket) string {
	return fmt.Sprintf(`{"pk":%q,"id":%q,"jobs":%t,"due_ms":%d}`, t.PK, t.Operation, t.Jobs, t.Due.UnixMilli())
}

// inQueue compares tickets as far as a queue keeps them.
var inQueue = cmp.Options{cmpopts.IgnoreFields(jobs.Ticket{}, "Owner", "Ver", "Released", "Function", "Tenant"), cmpopts.EquateApproxTime(time.Millisecond)}

// draining is a worker seen as a drain: an operation that was delayed counts as
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
	for _, operation := range d.queue.operations() {
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
		if jobs, any := r.Change.NewImage["jobs"]; any && len(jobs.Map()) > 0 {
			break
		}
	}
	return at
}

// all is the options functions as one.
func all[O any](fns []func(*O)) func(*O) {
	return func(o *O) {
		for _, fn := range fns {
			fn(o)
		}
	}
}

// makeCompleter makes what hands the open records of a stream to a queue.
type makeCompleter func(tab *table, queue stream.TicketQueue, optFns ...func(*stream.CompleterOptions)) invoker

// completers runs a test of a completer against a completer, and against a worker,
// which delivers jobs besides. tab is nil where no job is staged.
func completers(t *testing.T, test func(t *testing.T, newCompleter makeCompleter)) {
	t.Helper()
	t.Run("completer", func(t *testing.T) {
		t.Parallel()
		test(t, func(_ *table, queue stream.TicketQueue, optFns ...func(*stream.CompleterOptions)) invoker {
			return stream.NewCompleter(queue, optFns...)
		})
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		test(t, func(tab *table, queue stream.TicketQueue, optFns ...func(*stream.CompleterOptions)) invoker {
			none := dynamodb.New(dynamodb.Options{})
			store, err := dynamo.New(none, "table")
			if err != nil {
				t.Fatal(err)
			}
			if tab != nil {
				store = tab.Store
			}
			return worker.New(none, store, asSQS(queue), func(o *worker.Options) {
				o.Sink, o.Completer = &outbox{}, all(optFns)
			})
		})
	})
}

// sweeper is a sweep that runs.
type sweeper interface {
	Run(ctx context.Context) (*stream.Report, error)
}

// makeSweep makes a sweep that doesn't wait, with a sink and a queue.
type makeSweep func(tab *table, sink jobs.Sink, queue stream.TicketQueue, optFns ...func(*stream.SweepOptions)) sweeper

// sweeps runs a test of a sweep against a sweep, and against a worker.
func sweeps(t *testing.T, test func(t *testing.T, newSweep makeSweep)) {
	t.Helper()
	t.Run("sweep", func(t *testing.T) {
		t.Parallel()
		test(t, func(tab *table, sink jobs.Sink, queue stream.TicketQueue, optFns ...func(*stream.SweepOptions)) sweeper {
			return tab.sweep(func(o *stream.SweepOptions) {
				o.Drain, o.Queue = stream.NewDrain(tab.Store, sink), queue
				all(optFns)(o)
			})
		})
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		test(t, func(tab *table, sink jobs.Sink, queue stream.TicketQueue, optFns ...func(*stream.SweepOptions)) sweeper {
			s := &sweeping{}
			s.Worker = worker.New(tab.Client, tab.Store, asSQS(queue), func(o *worker.Options) {
				o.Sink, o.Hooks.Swept = sink, func(_ context.Context, r *stream.Report, _ error) { s.report = r }
				o.Sweep = func(o *stream.SweepOptions) {
					o.PagesPerSecond = 1e6
					all(optFns)(o)
				}
			})
			return s
		})
	})
}

// sweeping is a worker seen as a sweep.
type sweeping struct {
	*worker.Worker
	report *stream.Report
}

// Run has the schedule invoke the worker. The report is what it was told, and what
// it answers where there is no error.
func (s *sweeping) Run(ctx context.Context) (*stream.Report, error) {
	s.report = nil
	out, err := s.Invoke(ctx, []byte(`{"source":"aws.events"}`))
	if err == nil {
		var answered stream.Report
		if err := json.Unmarshal(out, &answered); err != nil || answered.Scanned != s.report.Scanned {
			return nil, errors.New("the worker answers " + string(out))
		}
	}
	return s.report, err
}

// scheduled has a worker run its sweep.
func scheduled(t testing.TB, w *worker.Worker) (rep stream.Report) {
	t.Helper()
	out, err := w.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","detail-type":"Scheduled Event"}`))
	if err == nil {
		err = json.Unmarshal(out, &rep)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// fast is a sweep by a clock that is ahead, which doesn't wait.
func fast(ahead time.Duration) func(*stream.SweepOptions) {
	return func(o *stream.SweepOptions) {
		in(ahead)(o)
		o.PagesPerSecond = 1e6
	}
}

// ticketsIn is a clock of tickets that is ahead.
func ticketsIn(ahead time.Duration) func(*completer.Options) {
	return func(o *completer.Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } }
}

// hanging is a sink that never answers.
var hanging = jobs.SinkFunc(func(ctx context.Context, _ jobs.Delivery) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", jobs.ErrSinkDown, context.Cause(ctx))
})
