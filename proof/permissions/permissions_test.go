package permissions_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

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
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// place is a table with a stream and a queue.
type place struct {
	*testing.T
	db     *dynamotest.DB
	table  string
	free   *dynamodb.Client // may do everything
	clock  *idemtest.Clock
	before map[string]map[string]types.AttributeValue
	seq    int

	mu   sync.Mutex
	sent []string // tickets
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, db: dynamotest.Start(t), table: "t-" + rand.Text(), clock: idemtest.NewClock()}
	p.free = p.db.Client(dynamo.Tune)
	if _, err := p.free.CreateTable(t.Context(), dynamo.CreateTableInput(p.table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(p.free, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &p.table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	return p
}

// store is the table as a role sees it. A call that is told as denied raises DeniedAlarm.
func (p *place) store(client *dynamodb.Client) *dynamo.Store {
	p.Helper()
	s, err := dynamo.New(client, p.table, func(o *dynamo.Options) {
		o.Hooks.Called = func(_ context.Context, c store.Call) {
			if c.Fault == store.Denied {
				p.Errorf("%s is told as denied", c.Op)
			}
		}
	})
	if err != nil {
		p.Fatal(err)
	}
	return s
}

func (p *place) as(r *role) *dynamodb.Client { return p.db.Client(dynamo.Tune, r.held) }

func (p *place) engine(s *dynamo.Store, optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append([]func(*idem.Options){idem.OneScope, func(o *idem.Options) {
		o.MinKey, o.Namespace, o.Function, o.Now, o.MaxBody, o.MaxRequest, o.Logger = 1, "orders", "orders", p.clock.Now, defaults.MaxMaxBody, 1<<20, slog.New(slog.DiscardHandler)
	}}, optFns...)...)
}

func resumable(o *idem.Options) { o.Resumable, o.CallerFromOp = true, true }

var errDown = errors.New("the provider is down")

// large is more than an item can have, and can't be compressed.
var large = func() []byte {
	b := make([]byte, 600_000)
	_, _ = rand.Read(b) // never fails
	return b
}()

func post(key string, body []byte) idem.Request {
	return idem.Request{Key: key, Method: "POST", Path: "/orders", Route: "POST /orders", Body: body}
}

func created(body []byte) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) { return idem.Response{Status: 201, Body: body}, nil }
}

// booked commits a phase with jobs, and ends with err.
func booked(err error, kinds ...string) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		_, err1 := idem.Atomic(ctx, "booked", func(_ context.Context, tx *idem.Tx) (int, error) {
			for _, kind := range kinds {
				tx.Stage(idem.NewJob(kind, 1))
			}
			return 1, nil
		})
		return idem.Response{Status: 201}, errors.Join(err1, err)
	}
}

// doubtful makes a call whose outcome nobody knows.
func doubtful(ctx context.Context) (idem.Response, error) {
	_, err := idem.Foreign(ctx, "charged", func(context.Context, *idem.Tx) (int, error) { return 0, errDown }, idem.NotIdempotent())
	return idem.Response{}, err
}

// ends sends a request, and fails the test unless it ends with want.
func (p *place) ends(e *idem.Engine, req idem.Request, want error, fn func(context.Context) (idem.Response, error)) {
	p.Helper()
	if _, err := e.Do(p.Context(), req, fn); !errors.Is(err, want) || want == nil && err != nil {
		p.Errorf("%s: %v, want %v", req.Key, err, want)
	}
}

func (p *place) items() map[string]map[string]types.AttributeValue {
	p.Helper()
	all := make(map[string]map[string]types.AttributeValue)
	pages := dynamodb.NewScanPaginator(p.free, &dynamodb.ScanInput{TableName: &p.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		for _, it := range page.Items {
			all[it["pk"].(*types.AttributeValueMemberS).Value] = it
		}
	}
	return all
}

// changes are the stream's records since the last time, dated at.
func (p *place) changes(at time.Time) (ev events.DynamoDBEvent) {
	p.Helper()
	now := p.items()
	for _, pk := range slices.Sorted(maps.Keys(now)) {
		old := p.before[pk]
		if reflect.DeepEqual(old, now[pk]) {
			continue
		}
		p.seq++
		ev.Records = append(ev.Records, streamimage.Record(old, now[pk], at, strconv.Itoa(p.seq)))
	}
	p.before = now
	return ev
}

// record returns the record that fits.
func (p *place) record(fits func(*store.Record) bool) *store.Record {
	p.Helper()
	s := p.store(p.free)
	for pk := range p.items() {
		if r, err := s.Load(p.Context(), pk); err == nil && r != nil && fits(r) {
			return r
		}
	}
	p.Fatal("no record fits")
	return nil
}

// invoked is a handler of Lambda.
type invoked interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

func (p *place) invoke(h invoked, ev any) {
	p.Helper()
	payload, err := json.Marshal(ev)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Minute)
	defer cancel()
	if _, err := h.Invoke(ctx, payload); err != nil {
		p.Error(err)
	}
}

// tickets are the messages in the queue, received n times.
func (p *place) tickets(n int) (ev events.SQSEvent) {
	for i, body := range p.sent {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: fmt.Sprint(i), ReceiptHandle: fmt.Sprint(i), Body: body, EventSource: "aws:sqs",
			Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(n)},
		})
	}
	return ev
}

// queue is SQS, as a role sees it.
type queue struct {
	*place
	of *role
}

func (q queue) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	if !q.of.may("sqs:SendMessage") {
		return nil, q.of.refusal("sqs:SendMessage")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		q.sent = append(q.sent, *e.MessageBody)
		out.Successful = append(out.Successful, sqstypes.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (q queue) ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	if !q.of.may("sqs:ChangeMessageVisibility") {
		return nil, q.of.refusal("sqs:ChangeMessageVisibility")
	}
	return new(sqs.ChangeMessageVisibilityOutput), nil
}

func (q queue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if !q.of.may("sqs:GetQueueAttributes") {
		return nil, q.of.refusal("sqs:GetQueueAttributes")
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:123456789012:tickets"}}, nil
}

// CreateSchedule is Scheduler's, which also asks whether the caller may hand on the role.
func (q queue) CreateSchedule(context.Context, *scheduler.CreateScheduleInput, ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	for _, action := range []string{"scheduler:CreateSchedule", "iam:PassRole"} {
		if !q.of.may(action) {
			return nil, q.of.refusal(action)
		}
	}
	return new(scheduler.CreateScheduleOutput), nil
}

// Invoke is Lambda's: the function fails.
func (q queue) Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	if !q.of.may("lambda:InvokeFunction") {
		return nil, q.of.refusal("lambda:InvokeFunction")
	}
	return &awslambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(`{"errorMessage":"down"}`)}, nil
}

var sinks = jobs.Route{
	"mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil }),
	"bad":  jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return errors.New("refused") }),
	"down": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return jobs.ErrSinkDown }),
}

// troubles leaves everything that background work is for.
func (p *place) troubles() {
	p.Helper()
	s := p.store(p.free)
	open, plain := p.engine(s, resumable), p.engine(s)
	p.ends(open, post("jobs", nil), nil, booked(nil, "mail", "bad", "down"))
	p.ends(open, post("left", nil), errDown, booked(errDown))
	p.ends(open, post("left-large", large), errDown, booked(errDown))
	p.ends(p.engine(s, resumable, func(o *idem.Options) { o.Function = "gone" }), post("nobodys", nil), errDown, booked(errDown))
	p.ends(plain, post("no-request", nil), errDown, booked(errDown))
	p.ends(open, post("stuck", large), idem.ErrStuck, doubtful)
	unreadable := maps.Clone(p.items()[p.record(func(r *store.Record) bool { return r.State == store.Done }).PK])
	unreadable["pk"] = &types.AttributeValueMemberS{Value: "v1#orders#" + strings.Repeat("x", 43)}
	unreadable["v"] = &types.AttributeValueMemberN{Value: "99"}
	if _, err := p.free.PutItem(p.Context(), &dynamodb.PutItemInput{TableName: &p.table, Item: unreadable}); err != nil {
		p.Fatal(err)
	}
}

// emptied is what is tried first where the parts of a large request are emptied. The right
// to it is one to delete: without it they are emptied one by one.
var emptied = []string{"dynamodb:BatchWriteItem"}

// holds fails the test if a role was refused anything but those calls, or has a right for
// no call but those.
func (p *place) holds(r *role, refused, unused []string) {
	p.Helper()
	if diff := cmp.Diff(refused, r.refused()); diff != "" && len(refused)+len(r.refused()) > 0 {
		p.Errorf("%s, refused (-want +got):\n%s", r.name, diff)
	}
	if diff := cmp.Diff(unused, r.unused()); diff != "" && len(unused)+len(r.unused()) > 0 {
		p.Errorf("%s, rights for nothing (-want +got):\n%s", r.name, diff)
	}
}

// A function may make each of its calls, on each of its keys. The store tries a batch of
// writes first, which is a right to delete: it goes on without.
func TestFunctionOfOneNamespace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := newRole("FunctionPolicy", deployed(t, "orders", "FunctionPolicy")...)
	s := p.store(p.as(r))
	var e *idem.Engine
	options := func(o *idem.Options) {
		o.Resumable, o.CallerFromOp = true, true
		o.Quota = quota.New(quota.Limits{PerMinute: 1000, Bytes: 1 << 30}, func(o *quota.Options) { o.Shared = allowed{s.Buckets(), t} })
	}
	for range 2 { // and its replay
		e = p.engine(s, options)
		p.ends(e, post("plain", nil), nil, created(nil))
		p.ends(e, post("middling", nil), nil, created(large[:200_000]))
		p.ends(e, post("large", nil), nil, created(large))
		p.ends(e, post("large-request", large), nil, booked(nil, "mail"))
	}
	p.ends(e, post("plain", []byte("another")), idem.ErrMismatch, created(nil))
	p.ends(e, post("fails", large), errDown, booked(errDown))
	p.ends(e, post("fails", large), nil, booked(nil))
	p.ends(e, post("stuck", nil), idem.ErrStuck, doubtful)
	p.ends(p.engine(s, func(o *idem.Options) {
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "account", nil }
		o.Former = &idem.Former{OneScope: true}
	}), post("moved", nil), nil, created(nil))
	p.ends(e, post("resumed", large), errDown, booked(errDown))
	left := p.record(func(r *store.Record) bool { return r.State == store.Open })
	p.clock.Advance(time.Hour)
	if _, err := e.Resume(t.Context(), state.TicketFor(left), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return booked(nil)(ctx) },
		func(o *idem.ResumeOptions) { o.Handlers = []store.HandlerID{left.Handler} }); err != nil {
		t.Error(err)
	}
	p.holds(r, emptied, nil)
	if r.may("dynamodb:UpdateItem", "v1#refunds#x") || r.may("dynamodb:GetItem", "samekey#quota#x") || !r.may("dynamodb:UpdateItem", "samekey#quota#x") {
		t.Error("keys of others are allowed, or the buckets of quotas are not")
	}
}

// The worker may make each of its calls.
func TestDeployedWorker(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := newRole("worker", deployed(t, "orders", "WorkerPolicy", "ResumePolicy")...)
	client := p.as(r)
	tickets := completer.NewQueue(queue{p, r}, "https://queue", func(o *completer.QueueOptions) { o.Schedule, o.Role = queue{p, r}.CreateSchedule, "arn:later" })
	w := worker.New(client, p.store(client), tickets, func(o *worker.Options) {
		o.Sink, o.Functions, o.Namespaces, o.Logger = sinks, completer.Invoke(queue{p, r}, "orders"), []string{"orders"}, slog.New(slog.DiscardHandler)
		o.Drain = func(o *stream.DrainOptions) { o.MaxTries = 1 }
		o.Completer = func(o *stream.CompleterOptions) { o.Now = p.clock.Now }
		o.Tickets = func(o *completer.Options) { o.Now = p.clock.Now }
		o.Sweep = func(o *stream.SweepOptions) { o.PagesPerSecond, o.Now = 1e6, p.clock.Now }
	})
	p.troubles()
	p.ends(p.engine(p.store(p.free)), post("later", nil), nil, func(ctx context.Context) (idem.Response, error) {
		later := idem.NewJob("mail", 1)
		later.At = time.Now().Add(2 * time.Hour)
		return idem.Response{Status: 201}, idem.Stage(ctx, later)
	})
	p.invoke(w, p.changes(time.Now()))
	p.troublesOfOldChanges(w)
	p.clock.Advance(time.Hour)
	p.invoke(w, p.tickets(1))
	p.sweeps(func() { p.invoke(w, map[string]string{"source": "aws.scheduler"}) })
	p.invoke(w, map[string]string{"source": "aws.scheduler", "task": "count"})
	p.holds(r, emptied, nil)
}

// troublesOfOldChanges hands changes to a reader that are older than five minutes.
func (p *place) troublesOfOldChanges(h invoked) {
	p.Helper()
	p.ends(p.engine(p.store(p.free)), post("late", nil), nil, booked(nil, "mail"))
	p.invoke(h, p.changes(time.Now().Add(-time.Hour)))
}

// sweeps sweeps while operations are late, after their retention, and when their requests
// are to go.
func (p *place) sweeps(sweep func()) {
	p.Helper()
	for _, d := range []time.Duration{2 * time.Hour, 25 * time.Hour, 40 * 24 * time.Hour} {
		p.clock.Advance(d)
		sweep()
	}
	p.record(func(r *store.Record) bool {
		return r.State == store.Stuck && r.Input == nil && len(r.Phases) == 1 && r.Phases[0].Name == "booked"
	})
	p.record(func(r *store.Record) bool {
		return r.State == store.Stuck && r.Input == nil && len(r.Phases) == 1 && r.Phases[0].Name == "charged"
	})
}

// People may make each call of their commands by the rights that the pages print.
func TestPeoplesRights(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.troubles()
	_, text, ok := strings.Cut(page(t, "background.md"), "\n- The commands need ")
	text, _, _ = strings.Cut(text, "\n")
	_, erases, ok2 := strings.Cut(page(t, "item.md"), "needs `dynamodb:Scan`")
	erases, _, _ = strings.Cut("`dynamodb:Scan`"+erases, "\n\n")
	if !ok || !ok2 {
		t.Fatal("the pages don't say what people need")
	}
	r := newRole("people", named(text, "dynamodb:"))
	client := p.as(r)
	s := p.store(client)
	e := p.engine(s)
	ctx := t.Context()
	for _, err := range stream.NewWaiting(client, s).All(ctx) {
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := stream.NewSweep(client, s, func(o *stream.SweepOptions) {
		o.Now, o.PagesPerSecond, o.Logger = p.clock.Now, 1e6, slog.New(slog.DiscardHandler)
	}).List(ctx); err != nil {
		t.Error(err)
	}
	stuck := p.record(func(r *store.Record) bool { return r.State == store.Stuck })
	if err := e.Settle(ctx, stuck.PK, idem.Settlement{Seen: state.TicketFor(stuck), By: "jane", NotMade: true}); err != nil {
		t.Error(err)
	}
	for _, r := range []*store.Record{p.record(func(r *store.Record) bool { return r.State == store.Open && r.Input != nil && r.Input.Overflow != nil })} {
		if _, err := e.Forget(ctx, state.TicketFor(r), "jane", idem.Loss{Held: true, Work: true, Jobs: true}); err != nil {
			t.Error(err)
		}
	}
	done := p.record(func(r *store.Record) bool { return r.State == store.Done })
	if _, err := stream.Redrive(ctx, s, done.PK, done.ID, "jane"); err != nil {
		t.Error(err)
	}
	p.holds(r, emptied, nil)

	free := p.store(p.free)
	p.ends(p.engine(free), post("erased", nil), nil, created(large))
	r = newRole("who erases", named(erases, "dynamodb:"))
	answered := p.record(func(r *store.Record) bool { return r.State == store.Done && len(r.Jobs) == 0 && r.Overflow != nil })
	if err := p.engine(p.store(p.as(r))).Erase(ctx, state.TicketFor(answered), "jane"); err != nil {
		t.Error(err)
	}
	p.holds(r, nil, []string{"dynamodb:DescribeTable", "dynamodb:Scan"}) // for the search
}

// allowed holds leases to the rights of their role: the quota goes on without them.
type allowed struct {
	quota.Shared
	t *testing.T
}

func (a allowed) Lease(ctx context.Context, l quota.Lot) (quota.Leased, error) {
	got, err := a.Shared.Lease(ctx, l)
	if err != nil {
		a.t.Errorf("a lease got %v, want no error", err)
	}
	return got, err
}
