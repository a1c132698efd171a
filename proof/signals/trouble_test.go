package signals_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
)

// A night of trouble, on the real table, function, worker, stream readers and queue half,
// in virtual time: a sink is away for two hours, a worker for seven, the provider forgets
// what it was asked, a function is renamed without its worker's knowing, and an operator
// errs twice. In the morning each effect has happened once, nothing is open, no alarm is
// on, and no message was sent by who received one: Lambda would end such a loop.
func TestNightOfTrouble(t *testing.T) {
	t.Parallel()
	a := newShop(t)
	for i := range 4 {
		a.is("an order", a.order(fmt.Sprint("calm-", i)), 201)
	}
	a.pass(time.Hour)

	a.sinkDown = true
	for i := range 3 {
		a.is("an order without its mail", a.order(fmt.Sprint("unmailed-", i)), 201)
	}
	a.pass(2 * time.Hour)
	a.sinkDown = false
	a.pass(3 * time.Hour)
	a.mailed(7)

	a.provider.Next(idemtest.Fate{LoseAnswer: true})
	a.is("an order whose charge nobody heard of", a.order("forgotten"), 500)
	a.dies = true
	a.is("an order whose process dies", a.order("renamed"), 500)
	a.dies = false
	a.away = true
	a.pass(7 * time.Hour)
	a.provider.Forget()
	a.deploy("orders-v2") // and the worker's list has the new name only
	a.away = false
	a.pass(2 * time.Hour)

	// The runbook's way out for a renamed function; the provider's memory of the other
	// order is over, so people ask it.
	a.functions["orders"] = a.functions["orders-v2"]
	a.pass(3 * time.Hour)
	forgotten, renamed := a.stuckOrder("forgotten"), a.stuckOrder("renamed")
	seen := jobs.TicketFor(forgotten)
	if err := a.program.Settle(t.Context(), forgotten.PK, idem.Settlement{Seen: seen, By: "joe", Result: json.RawMessage(`{}`)}); err == nil {
		t.Error("a result that the program can't read was taken")
	}
	seen.Ver--
	if err := a.program.Settle(t.Context(), forgotten.PK, idem.Settlement{Seen: seen, By: "joe", NotMade: true}); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("a decision about another state of the record: %v", err)
	}
	for _, r := range []*store.Record{forgotten, renamed} {
		a.settle(a.program, r.PK, idem.Settlement{Seen: jobs.TicketFor(r), Result: a.json(a.asked(string(r.Input.Body)))})
	}
	a.pass(6 * time.Hour)

	if n := len(a.provider.Effects("charge")); n != 9 {
		t.Errorf("%d charges for 9 orders", n)
	}
	a.mailed(9)
	for pk := range a.items() {
		if r, err := a.store.Load(t.Context(), pk); strings.HasPrefix(pk, "v1#") && (err != nil || r.State != store.Done || len(r.Jobs) > 0) {
			t.Errorf("left in the morning: %+v, %v", r, err)
		}
	}
	if n := a.line.waiting(); n != 0 || a.line.chained != 0 {
		t.Errorf("%d tickets wait, and %d were sent by who received one", n, a.line.chained)
	}
	a.alarms("NotMine", "WaitingUnknown", "SweepSilent", "WaitingSilent")
}

// shop is an application with a worker, a queue and a stream of its own.
type shop struct {
	*night
	provider  *idemtest.Provider
	function  string
	program   *idem.Engine
	functions completer.Functions
	invoked   map[string]awslambdaHandler
	line      *line
	before    map[string]map[string]types.AttributeValue // the table, as the stream has told it
	waiting   []events.DynamoDBEventRecord               // of the stream
	mails     map[string]int
	sinkDown  bool
	away      bool // the worker
	dies      bool // the process of the next request, after its call
}

type awslambdaHandler interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// charge is the provider's answer, as the program reads it.
type charge struct {
	ID string `json:"id"`
}

func newShop(t *testing.T) *shop {
	t.Helper()
	a := &shop{night: newNight(t), provider: new(idemtest.Provider), mails: make(map[string]int), invoked: make(map[string]awslambdaHandler), functions: make(completer.Functions)}
	a.counts, a.sweeps, a.each = false, false, func(*night) { a.step() }
	a.line = &line{clock: a.clock}
	a.deploy("orders")
	var mu sync.Mutex
	route := jobs.Route{"mail": jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if a.sinkDown {
			return jobs.ErrSinkDown
		}
		a.mails[string(d.Args)]++
		return nil
	})}
	hooks := stream.Join(a.m.StreamHooks(), stream.Log(a.logger))
	a.worker = a.m.Wrap(worker.New(a.client, a.store, completer.NewQueue(a.line, "https://queue"), func(o *worker.Options) {
		o.Logger, o.Hooks, o.Sink, o.Functions = a.logger, hooks, route, a.functions
		o.Completer = func(o *stream.CompleterOptions) { o.Now = a.clock.Now }
		o.Tickets = func(o *completer.Options) { o.Now = a.clock.Now }
		o.Sweep = func(o *stream.SweepOptions) { o.PagesPerSecond, o.Now = 1e6, a.clock.Now }
	}))
	return a
}

// deploy starts the program as a function, which the worker's list has under its new name
// only.
func (a *shop) deploy(function string) {
	a.function = function
	a.program = a.engine(func(o *idem.Options) { o.Function, o.Resumable, o.Lease = function, true, time.Minute })
	h := lambda.Wrap(a.program, lambda.HTTPAPI, a.serve, func(o *lambda.HandlerOptions) {
		o.Name, o.Accepts = "order", []store.HandlerID{{Function: "orders", Name: "order"}}
	})
	a.invoked[function] = h
	clear(a.functions)
	maps.Copy(a.functions, completer.Invoke(a, function))
}

// stuckOrder returns the record of an order that waits for people.
func (a *shop) stuckOrder(id string) *store.Record {
	a.Helper()
	return a.of(store.Stuck, func(r *store.Record) bool { return string(r.Input.Body) == id })
}

// asked is what the provider's page says of an order.
func (a *shop) asked(id string) charge {
	a.Helper()
	for _, e := range a.provider.Effects("charge") {
		if string(e.Body) == string(a.json(id)) {
			return charge{e.ID}
		}
	}
	a.Fatalf("the provider knows nothing of %s", id)
	return charge{}
}

// Invoke is Lambda's.
func (a *shop) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	out, err := a.invoked[*in.FunctionName].Invoke(ctx, in.Payload)
	if err != nil {
		return &awslambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(err.Error())}, nil //nolint:nilerr // as Lambda tells it
	}
	return &awslambda.InvokeOutput{Payload: out}, nil
}

func (a *shop) serve(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	type re = events.APIGatewayV2HTTPResponse
	made, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (charge, error) {
		e, err := a.provider.Call(ctx, "charge", tx.Key("provider"), ev.Body)
		if a.dies {
			a.api.fail(errors.New("the process has died"), 1000)
		}
		return charge{e.ID}, err
	}, idem.Remembers(3*time.Hour))
	if err != nil {
		return re{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (re, error) {
		tx.Stage(idem.NewJob("mail", ev.Body))
		return re{StatusCode: 201, Body: made.ID}, nil
	})
}

// order sends a request, and returns the status that its client hears.
func (a *shop) order(id string) int {
	a.Helper()
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /orders", RawPath: "/orders", Body: id, Headers: map[string]string{"idempotency-key": id},
	}
	ev.RequestContext.HTTP.Method = http.MethodPost
	raw, err := a.invoked[a.function].Invoke(context.WithoutCancel(a.Context()), a.json(ev))
	a.api.fail(nil, 0)
	if err != nil {
		return 500
	}
	var re events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(raw, &re); err != nil {
		a.Fatal(err)
	}
	return min(re.StatusCode, 500)
}

// step is what happens in five minutes: the stream and the queue are read, and the
// schedules come.
func (a *shop) step() {
	a.Helper()
	now := a.items()
	for _, pk := range slices.Sorted(maps.Keys(now)) {
		switch old := a.before[pk]; {
		case !strings.HasPrefix(pk, "v1#"):
		case old == nil:
			a.waiting = append(a.waiting, a.change("INSERT", nil, now[pk]))
		case !bytes.Equal(a.json(old), a.json(now[pk])):
			a.waiting = append(a.waiting, a.change("MODIFY", old, now[pk]))
		}
	}
	a.before = now
	if a.away {
		return
	}
	if len(a.waiting) > 0 {
		a.invoke(events.DynamoDBEvent{Records: a.waiting})
		a.waiting = nil
	}
	a.line.deliver(a)
	a.invoke(map[string]string{"source": "aws.scheduler", "task": "count"})
	if a.clock.Now().Sub(a.begun)%time.Hour == 0 {
		a.sweep()
	}
}

// mailed fails the test unless n orders have had one mail each.
func (a *shop) mailed(n int) {
	a.Helper()
	if len(a.mails) != n {
		a.Errorf("%d orders of %d had a mail", len(a.mails), n)
	}
	for order, mails := range a.mails {
		if mails != 1 {
			a.Errorf("%s: %d mails", order, mails)
		}
	}
}

// alarms prints how long each alarm was on, and fails the test if one is on at the end, or
// if one of rang never was.
func (a *shop) alarms(rang ...string) {
	a.Helper()
	all, err := alarmtest.Parse(deploy.Nested(), map[string]string{"App": "shop", "AlarmTopicArn": "topic"})
	if err != nil {
		a.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var since time.Time
		on, times := time.Duration(0), 0
		for _, change := range append(all[name].Over(a.data, a.begun, a.clock.Now()), alarmtest.Change{At: a.clock.Now()}) {
			if !since.IsZero() {
				on += change.At.Sub(since)
				since = time.Time{}
			}
			if change.State == alarmtest.Firing {
				since, times = change.At, times+1
			}
		}
		if times > 0 {
			a.Logf("%s: on for %v, %d times", name, on, times)
		}
		if s := all[name].At(a.data, a.clock.Now()); s == alarmtest.Firing {
			a.Errorf("%s is on in the morning", name)
		}
		if i := slices.Index(rang, strings.TrimSuffix(name, "Alarm")); i >= 0 {
			if rang = slices.Delete(rang, i, i+1); times == 0 {
				a.Errorf("%s never rang", name)
			}
		}
	}
	if len(rang) > 0 {
		a.Errorf("there are no alarms %q", rang)
	}
}

// line is a standard queue in virtual time.
type line struct {
	clock   *idemtest.Clock
	mu      sync.Mutex
	n       int
	all     []*ticket
	serving bool // its reader is at work
	chained int  // messages that its reader has sent
}

type ticket struct {
	id, body      string
	sent, visible time.Time
	receives      int
}

func (q *line) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		q.n++
		now := q.clock.Now()
		q.all = append(q.all, &ticket{id: fmt.Sprint("m", q.n), body: *e.MessageBody, sent: now, visible: now.Add(time.Duration(e.DelaySeconds) * time.Second)})
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id})
		if q.serving {
			q.chained++
		}
	}
	return out, nil
}

func (q *line) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.all {
		if m.id == *in.ReceiptHandle {
			m.visible = q.clock.Now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
		}
	}
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (q *line) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

// deliver hands the visible messages to the worker, as Lambda's mapping does.
func (q *line) deliver(a *shop) {
	a.Helper()
	const hidden = 30 * time.Minute // the queue's visibility timeout
	var batch []events.SQSMessage
	q.mu.Lock()
	for _, m := range q.all {
		if now := q.clock.Now(); !m.visible.After(now) && len(batch) < 10 {
			m.visible = now.Add(hidden)
			m.receives++
			batch = append(batch, events.SQSMessage{MessageId: m.id, ReceiptHandle: m.id, Body: m.body, EventSource: "aws:sqs", Attributes: map[string]string{
				"SentTimestamp": fmt.Sprint(m.sent.UnixMilli()), "ApproximateReceiveCount": fmt.Sprint(m.receives),
			}})
		}
	}
	q.serving = true
	q.mu.Unlock()
	if len(batch) == 0 {
		q.serving = false
		return
	}
	ctx, cancel := context.WithTimeout(a.Context(), 10*time.Minute)
	defer cancel()
	out, err := a.worker.Invoke(ctx, a.json(events.SQSEvent{Records: batch}))
	var re events.SQSEventResponse
	if err = errors.Join(err, json.Unmarshal(out, &re)); err != nil {
		a.Error(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serving = false
	q.all = slices.DeleteFunc(q.all, func(m *ticket) bool {
		came := slices.ContainsFunc(batch, func(b events.SQSMessage) bool { return b.MessageId == m.id })
		return came && !slices.ContainsFunc(re.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == m.id })
	})
}

func (q *line) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}
