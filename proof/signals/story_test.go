package signals_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/internal/testkit/streamimage"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

// secrets are planted wherever a caller or a handler may have them.
var secrets = map[string]string{
	"key": "SECRETKEY", "body": leaktest.Card, "answer": "SECRETANSWER", "query": leaktest.Token, "header": "SECRETHEADER", "job": leaktest.Mail,
	"result": "SECRETRESULT",
}

const route = "POST /orders"

// story is an application on a table whose every part emits all of its signals.
type story struct {
	*testing.T
	client *dynamodb.Client
	api    *troubled
	store  *dynamo.Store
	table  string
	clock  *idemtest.Clock
	emf    *buffer
	log    *buffer
	m      *metrics.Metrics
	logger *slog.Logger
	own    []string // names of the events that a hook of the application's own was told of
	keys   int
	queue  *tickets
	worker metrics.Handler
	bad    error // of the sink of that name
	down   error

	resumable *idem.Engine // whose operations a completer can finish
	handlers  map[*idem.Engine]metrics.Handler
}

func begin(t *testing.T) *story {
	t.Helper()
	s := &story{T: t, clock: idemtest.NewClock(), emf: new(buffer), log: new(buffer), table: "t-" + rand.Text(), queue: new(tickets), bad: errors.New("refused"), down: jobs.ErrSinkDown}
	s.client = dynamotest.Start(t).Client(dynamo.Tune)
	if _, err := s.client.CreateTable(t.Context(), dynamo.CreateTableInput(s.table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(s.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	s.api = &troubled{API: s.client}
	s.m = metrics.New(s.emf, "shop", func(o *metrics.Options) { o.Routes = 2 })
	s.logger = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if s.store, err = dynamo.New(s.api, s.table, func(o *dynamo.Options) { o.Units, o.Hooks = true, s.m.StoreHooks() }); err != nil {
		t.Fatal(err)
	}
	s.worker = s.m.Wrap(worker.New(s.client, s.store, completer.NewQueue(s.queue, "https://queue"), func(o *worker.Options) {
		o.Logger, o.Hooks = s.logger, stream.Join(s.m.StreamHooks(), stream.Log(s.logger))
		o.Sink = jobs.Route{"mail": sink(nil), "bad": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return s.bad }), "down": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return s.down })}
		o.Drain = func(o *stream.DrainOptions) { o.MaxTries = 1 }
		o.Completer = func(o *stream.CompleterOptions) { o.Now = s.clock.Now }
		o.Tickets = func(o *completer.Options) { o.Now = func() time.Time { return s.clock.Now().Add(24 * time.Hour) } }
		o.Sweep = func(o *stream.SweepOptions) { o.PagesPerSecond, o.Now = 1e6, s.clock.Now }
	}))
	s.handlers = make(map[*idem.Engine]metrics.Handler)
	s.resumable = s.engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
	return s
}

func sink(err error) jobs.SinkFunc {
	return func(context.Context, jobs.Delivery) error { return err }
}

// engine returns an engine with metrics, logs and a hook of the application's own.
func (s *story) engine(optFns ...func(*idem.Options)) *idem.Engine {
	own := idem.Hooks{Claimed: func(_ context.Context, ev idem.Event) { s.own = append(s.own, ev.Name) }}
	return idem.New(s.store, append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) {
		o.Now, o.Logger, o.Function, o.Lease = s.clock.Now, s.logger, "orders", 10*time.Minute
		o.Hooks = idem.Join(s.m.Hooks(), idem.Log(s.logger), own)
	}}, optFns...)...)
}

type (
	handler    = func(context.Context) (idem.Response, error)
	handlerKey struct{} // of the context's handler
)

// newKey returns a key that no request has had.
func (s *story) newKey() string {
	s.keys++
	return fmt.Sprint(secrets["key"], "-", s.keys)
}

// post sends a request through the adapter of the HTTP API, as another client's
// invocation, and returns the answer's status.
func (s *story) post(e *idem.Engine, key, body string, fn handler) int {
	s.Helper()
	h := s.handlers[e]
	if h == nil {
		h = lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			resp, err := ctx.Value(handlerKey{}).(handler)(ctx)
			return events.APIGatewayV2HTTPResponse{StatusCode: resp.Status, Body: string(resp.Body)}, err
		}, func(o *lambda.HandlerOptions) { o.Name = "story" })
		s.handlers[e] = h
	}
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: route, RawPath: "/orders", RawQueryString: "card=" + secrets["query"], Body: `{"note":"` + secrets["body"] + body + `"}`,
		Headers: map[string]string{"content-type": "application/json", "authorization": secrets["header"], "x-note": secrets["header"]},
	}
	if key != "" {
		ev.Headers["idempotency-key"] = key
	}
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path = http.MethodPost, "/orders"
	raw, err := h.Invoke(context.WithValue(context.WithoutCancel(s.Context()), handlerKey{}, fn), s.json(ev))
	if err != nil {
		s.Fatal(err)
	}
	var re events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(raw, &re); err != nil {
		s.Fatal(err)
	}
	return re.StatusCode
}

func (s *story) json(v any) []byte {
	s.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// is fails the test unless a request had this status.
func (s *story) is(what string, got, want int) {
	s.Helper()
	if got != want {
		s.Errorf("%s: status %d, want %d", what, got, want)
	}
}

func created(context.Context) (idem.Response, error) {
	return idem.Response{Status: 201, Body: []byte(secrets["answer"])}, nil
}

var errDown = errors.New("the provider is down")

// phases books, charges and stages a job of each kind. It fails at the charge with err.
func phases(err error, kinds ...string) handler {
	return func(ctx context.Context) (idem.Response, error) {
		_, err1 := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (string, error) {
			for _, kind := range kinds {
				tx.Stage(idem.NewJob(kind, secrets["job"]))
			}
			return secrets["result"], nil
		})
		if err1 != nil {
			return idem.Response{}, err1
		}
		if _, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) { return secrets["result"], err }); err != nil {
			return idem.Response{}, err
		}
		return created(ctx)
	}
}

// requests plays everything that may happen to a request.
func (s *story) requests() {
	plain := s.engine()
	key := s.newKey()
	s.is("new", s.post(plain, key, "", phases(nil, "mail")), 201)
	s.is("replay", s.post(plain, key, "", created), 201)
	s.is("mismatch", s.post(plain, key, "other", created), 422)
	s.is("no key", s.post(plain, "", "", created), 400)

	limited := s.engine(func(o *idem.Options) {
		o.Quota = quota.New(quota.Limits{PerMinute: 1}, func(o *quota.Options) { o.Now = s.clock.Now })
	})
	s.is("below the quota", s.post(limited, s.newKey(), "", created), 201)
	s.is("over the quota", s.post(limited, s.newKey(), "", created), 429)

	key = s.newKey() // overtaken while it runs
	s.is("overtaken", s.post(plain, key, "", func(ctx context.Context) (idem.Response, error) {
		s.is("in flight", s.post(plain, key, "", created), 409)
		s.clock.Advance(time.Hour)
		s.is("take-over", s.post(plain, key, "", created), 201)
		return created(ctx)
	}), 201)

	key = s.newKey() // an outcome that nobody knows
	s.is("stuck", s.post(plain, key, "", func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, errDown }, idem.NotIdempotent())
		return idem.Response{}, err
	}), 409)

	key = s.newKey() // another version of the handler
	s.is("its first phase", s.post(plain, key, "", phases(errDown)), 500)
	s.is("blocked", s.post(plain, key, "", func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "other", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, err
	}), 500)

	denied := &smithy.GenericAPIError{Code: "AccessDeniedException"}
	s.is("unstored", s.post(plain, s.newKey(), "", func(ctx context.Context) (idem.Response, error) {
		s.api.fail(denied, 3)
		return created(ctx)
	}), 201)
	for _, err := range []error{
		&retry.MaxAttemptsError{Attempt: 6, Err: &types.ThrottlingException{}}, &types.ResourceNotFoundException{}, errors.New("no connection"),
	} {
		s.api.fail(err, 100)
		s.is(err.Error(), s.post(plain, s.newKey(), "", created), 503)
	}
	s.api.fail(errors.New("no connection"), 100)
	s.is("unprotected", s.post(s.engine(func(o *idem.Options) { o.Mode = idem.ModeOpen }), s.newKey(), "", created), 201)
	s.api.fail(&types.TransactionConflictException{}, 1)
	s.is("after a conflict", s.post(plain, s.newKey(), "", created), 201)
	s.is("observed", s.post(s.engine(func(o *idem.Options) { o.Mode = idem.ModeObserve }), "", "", created), 201)

	s.is("abandoned", s.post(s.resumable, s.newKey(), "", phases(errDown)), 500)
	rec := s.record(func(r *store.Record) bool { return r.State == store.Open && r.Input != nil })
	s.clock.Advance(time.Hour)
	if _, err := s.resumable.Resume(s.Context(), state.TicketFor(rec), func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
		return phases(nil)(ctx)
	}, func(o *idem.ResumeOptions) { o.Handlers = []store.HandlerID{rec.Handler} }); err != nil {
		s.Error(err)
	}
}

// background plays everything that may happen to jobs and abandoned operations.
func (s *story) background() {
	before := s.items()
	s.is("jobs", s.post(s.resumable, s.newKey(), "", phases(nil, "mail", "bad", "down")), 201)
	s.is("abandoned", s.post(s.resumable, s.newKey(), "", phases(errDown)), 500)
	abandoned := s.record(func(r *store.Record) bool { return r.State == store.Open && r.Input != nil && len(r.Jobs) == 0 })
	var records []events.DynamoDBEventRecord
	for pk, it := range s.items() {
		if before[pk] == nil {
			records = append(records, s.change(nil, it))
		}
		if pk == abandoned.PK { // as if it had gone
			records = append(records, s.change(it, nil))
			future := maps.Clone(it)
			future["v"] = &types.AttributeValueMemberN{Value: "99"}
			records = append(records, s.change(nil, future))
		}
	}
	slices.SortStableFunc(records, func(a, b events.DynamoDBEventRecord) int { return strings.Compare(b.EventName, a.EventName) })
	s.invoke(events.DynamoDBEvent{Records: records})
	s.invoke(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{s.change(nil, s.items()[abandoned.PK])}})
	var messages []events.SQSMessage
	for i, body := range s.queue.take() {
		messages = append(messages, events.SQSMessage{MessageId: fmt.Sprint(i), ReceiptHandle: body, Body: body, EventSource: "aws:sqs"})
	}
	s.invoke(events.SQSEvent{Records: messages})
	s.clock.Advance(2 * time.Hour)
	s.invoke(map[string]string{"source": "aws.scheduler"})
	s.invoke(map[string]string{"source": "aws.scheduler", "task": "count"})
}

func (s *story) invoke(ev any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Minute)
	defer cancel()
	if _, err := s.worker.Invoke(ctx, s.json(ev)); err != nil {
		s.Error(err)
	}
}

// record returns the record that fits.
func (s *story) record(fits func(*store.Record) bool) *store.Record {
	s.Helper()
	for pk := range s.items() {
		if r, err := s.store.Load(s.Context(), pk); err == nil && r != nil && fits(r) {
			return r
		}
	}
	s.Fatal("no record fits")
	return nil
}

func (s *story) items() map[string]map[string]types.AttributeValue {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string]map[string]types.AttributeValue)
	for _, it := range out.Items {
		all[it["pk"].(*types.AttributeValueMemberS).Value] = it
	}
	return all
}

// change is a record of the table's stream.
func (s *story) change(old, now map[string]types.AttributeValue) events.DynamoDBEventRecord {
	s.keys++
	return streamimage.Record(old, now, s.clock.Now(), fmt.Sprint(s.keys))
}

// troubled is a table some of whose calls fail.
type troubled struct {
	dynamo.API
	mu   sync.Mutex
	err  error
	left int
}

// fail lets the next n calls fail.
func (a *troubled) fail(err error, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.left = err, n
}

func (a *troubled) next() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left--; a.left >= 0 {
		return a.err
	}
	return nil
}

func (a *troubled) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := a.next(); err != nil {
		return nil, err
	}
	return a.API.GetItem(ctx, in, optFns...)
}

func (a *troubled) PutItem(ctx context.Context, in *dynamodb.PutItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := a.next(); err != nil {
		return nil, err
	}
	return a.API.PutItem(ctx, in, optFns...)
}

func (a *troubled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := a.next(); err != nil {
		return nil, err
	}
	return a.API.UpdateItem(ctx, in, optFns...)
}

// tickets is a queue that keeps the messages' bodies.
type tickets struct {
	mu     sync.Mutex
	bodies []string
	all    [][]byte      // also those that were taken
	hidden time.Duration // the message that last came again
}

func (q *tickets) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		q.bodies, q.all = append(q.bodies, *e.MessageBody), append(q.all, []byte(*e.MessageBody))
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// ChangeMessageVisibility has the message, which is its own receipt here, come again.
func (q *tickets) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bodies, q.hidden = append(q.bodies, *in.ReceiptHandle), time.Duration(in.VisibilityTimeout)*time.Second
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (*tickets) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

func (q *tickets) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer func() { q.bodies = nil }()
	return q.bodies
}

// buffer is a log that many goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.b.Bytes())
}
