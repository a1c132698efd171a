package otel_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
	"github.com/samekey/samekey/lambda"
)

const patience = 5 * time.Minute

// queue is an SQS queue in this process: each message invokes the handler, after its
// delay or a second, and on its own, until the handler takes it.
type queue struct {
	t       *testing.T
	handler awslambda.Handler
	taken   chan struct{} // a message was taken; nil: nobody waits
	wg      sync.WaitGroup
}

func (q *queue) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		m := events.SQSMessage{
			MessageId: rand.Text(), Body: aws.ToString(e.MessageBody), EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:receipts",
			MessageAttributes: make(map[string]events.SQSMessageAttribute),
		}
		for name, v := range e.MessageAttributes {
			m.MessageAttributes[name] = events.SQSMessageAttribute{DataType: aws.ToString(v.DataType), StringValue: v.StringValue}
		}
		q.wg.Go(func() { q.deliver(m, min(time.Duration(e.DelaySeconds), 1)*time.Second) })
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// ChangeMessageVisibility does nothing: a message comes again after a second.
func (*queue) ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (*queue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

func (q *queue) deliver(m events.SQSMessage, delay time.Duration) {
	payload := encode(q.t, events.SQSEvent{Records: []events.SQSMessage{m}})
	for {
		select {
		case <-q.t.Context().Done():
			return
		case <-time.After(delay):
		}
		out, err := q.handler.Invoke(q.t.Context(), payload)
		if err == nil && strings.Contains(string(out), "[]") {
			break
		}
		delay = time.Second
	}
	select {
	case q.taken <- struct{}{}:
	case <-q.t.Context().Done():
	}
}

// function is Lambda's API in front of a handler.
type function struct {
	handler awslambda.Handler
	resumed chan string // what the handler has answered
}

func (f *function) Invoke(ctx context.Context, in *lambdaclient.InvokeInput, _ ...func(*lambdaclient.Options)) (*lambdaclient.InvokeOutput, error) {
	out, err := f.handler.Invoke(ctx, in.Payload)
	f.resumed <- string(out)
	return &lambdaclient.InvokeOutput{StatusCode: http.StatusOK, Payload: out}, err
}

// stack is an application with its background: the request's function, worker, and
// consumer on one table, each with tracing. All of it is in this process.
type stack struct {
	*recorded
	api       awslambda.Handler
	delivered chan struct{}
	consumed  chan struct{}
	resumed   chan string
}

func newStack(t *testing.T, p *provider) *stack {
	t.Helper()
	db, changes := &fakedynamo.Server{}, make(chan fakedynamo.Change, 1000)
	db.DB.Changed = func(c fakedynamo.Change) { changes <- c }
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: db}, dynamo.Tune)
	store, err := dynamo.New(client, "otel")
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{recorded: record(t), delivered: make(chan struct{}), consumed: make(chan struct{}), resumed: make(chan string, 10)}
	engine := idem.New(store, callertest.Anybody, s.Engine, func(o *idem.Options) { o.Function, o.Resumable = "rides", true })
	s.api = lambda.Wrap(engine, lambda.HTTPAPI, p.ride, func(o *lambda.HandlerOptions) { o.Name = "rides" })

	receipts := &queue{t: t, taken: s.consumed, handler: lambda.WrapEach(
		idem.New(store, callertest.Anybody, s.Engine, func(o *idem.Options) { o.Namespace = "receipts" }), lambda.SQS, mail,
	)}
	tickets := &queue{t: t}
	w := worker.New(client, store, completer.NewQueue(tickets, "https://tickets"), func(o *worker.Options) {
		o.Sink = jobs.Route{"receipt": sink.NewQueue(receipts, "https://receipts")}
		o.Functions = completer.Invoke(&function{s.api, s.resumed}, "rides")
		o.Grace = time.Millisecond
		o.Tickets = func(o *completer.Options) { // a ticket is due when it comes, before the first attempt's lease has ended
			o.Now = func() time.Time { return time.Now().Add(time.Minute) }
		}
		o.Drain = func(o *stream.DrainOptions) {
			o.Hooks.Delivered = func(ctx context.Context, _ jobs.Delivery) {
				select {
				case s.delivered <- struct{}{}:
				case <-ctx.Done():
				}
			}
			o.Tracer, o.Hooks = s.Tracer(), stream.Join(o.Hooks, s.StreamHooks())
		}
	})
	tickets.handler = w
	ends := follow(t, w, changes)
	t.Cleanup(func() {
		ends()
		receipts.wg.Wait()
		tickets.wg.Wait()
	})
	return s
}

// follow invokes the worker with each change of the table, until ends is called. What the
// worker reports comes again.
func follow(t *testing.T, w *worker.Worker, changes <-chan fakedynamo.Change) (ends func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n++ {
			var c fakedynamo.Change
			select {
			case c = <-changes:
			case <-ctx.Done():
				return
			}
			payload := encode(t, events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{streamimage.Record(c.Old, c.New, c.Time, strconv.Itoa(n))}})
			for {
				if report, err := w.Invoke(ctx, payload); ctx.Err() != nil || err == nil && !strings.Contains(string(report), "itemIdentifier") {
					break
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// await waits until a job is delivered and consumed.
func (s *stack) await(t *testing.T) {
	t.Helper()
	late := time.After(patience)
	for _, event := range []struct {
		name string
		ch   chan struct{}
	}{{"delivered", s.delivered}, {"consumed", s.consumed}} {
		select {
		case <-event.ch:
		case <-late:
			t.Fatalf("no job was %s", event.name)
		}
	}
}

// From the client to the consumer of the job, through DynamoDB, stream and queue, a
// request is one trace.
func TestTraceThroughDrainAndConsumer(t *testing.T) {
	t.Parallel()
	s := newStack(t, newProvider(t))
	if re := send(t, s.api, post(t, clientParent, "")); re.StatusCode != http.StatusCreated {
		t.Fatalf("got %+v", re)
	}
	s.await(t)
	all := s.spans()
	all.known(t)
	all.ofTrace(t, all.named(t, "samekey operation").SpanContext.TraceID())
	const want = `samekey operation 201
  samekey claim new
  samekey phase ride_created
    samekey commit
  samekey phase charge_created
    samekey commit
    samekey call charge_created
    samekey commit
  samekey phase finish
    samekey finish
    samekey deliver receipt
    samekey process 200
      samekey claim new
      samekey finish
`
	if diff := cmp.Diff(want, all.tree(clientSpan, 0)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	for name, kind := range map[string]oteltrace.SpanKind{"samekey deliver receipt": oteltrace.SpanKindProducer, "samekey process": oteltrace.SpanKindConsumer} {
		if s := all.named(t, name); s.SpanKind != kind {
			t.Errorf("%s is of kind %s", name, s.SpanKind)
		}
	}
}

// A request that a completer finishes has a second trace, which is linked to the first
// attempt; the job's delivery and consumer belong to the attempt that staged it.
func TestTraceThroughTheCompleter(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.failOnce()
	s := newStack(t, p)
	if re := send(t, s.api, post(t, clientParent, "")); re.StatusCode != http.StatusInternalServerError {
		t.Fatalf("got %+v", re)
	}
	select {
	case out := <-s.resumed:
		if !strings.Contains(out, `"done"`) {
			t.Fatalf("the completer got %s", out)
		}
	case <-time.After(patience):
		t.Fatal("no completer has come")
	}
	s.await(t)
	all := s.spans()
	all.known(t)
	const first = `samekey operation internal_error
  samekey claim new
  samekey phase ride_created
    samekey commit
  samekey phase charge_created internal_error
    samekey commit
    samekey call charge_created internal_error
  samekey release
`
	if diff := cmp.Diff(first, all.tree(clientSpan, 0)); diff != "" {
		t.Errorf("spans of the first attempt (-want +got):\n%s", diff)
	}
	const resumed = `samekey resume 201
  samekey phase charge_created
    samekey commit
    samekey call charge_created
    samekey commit
  samekey phase finish
    samekey finish
    samekey deliver receipt
    samekey process 200
      samekey claim new
      samekey finish
`
	if diff := cmp.Diff(resumed, all.tree(oteltrace.SpanID{}.String(), 0)); diff != "" {
		t.Errorf("spans of the completer's attempt (-want +got):\n%s", diff)
	}
	resume, operation := all.named(t, "samekey resume"), all.named(t, "samekey operation")
	linkedTo(t, resume, "first_attempt", operation.SpanContext)
	if a, b := attributeOf(t, resume, "samekey.operation"), attributeOf(t, operation, "samekey.operation"); a != b {
		t.Errorf("the attempts are of the operations %s and %s", a, b)
	}
	if len(p.parents) != 2 || !strings.Contains(p.parents[0], clientTrace) || !strings.Contains(p.parents[1], resume.SpanContext.TraceID().String()) {
		t.Errorf("the provider got %v", p.parents)
	}
}
