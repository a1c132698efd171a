package stream_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	_ = os.Unsetenv("AWS_REGION")                  // a record tells its Region; fails never
	os.Exit(dynamotest.MainSeparate(m))
}

// table is a fresh table with a store on it.
type table struct{ *tabletest.Table }

// item reads a record's item as it is.
func (tab *table) item(t testing.TB, pk string) map[string]types.AttributeValue {
	t.Helper()
	out, err := tab.Direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// letGo fails the test unless a finished record expires at the end of its
// replay and is kept for nothing.
func (tab *table) letGo(t testing.TB, pk string) {
	t.Helper()
	it := tab.item(t, pk)
	if it["keep"] != nil || it["until_s"] != nil || number(it["exp_s"]) == 0 {
		t.Errorf("keep %v, exp_s %v, until_s %v: the record was not let go", it["keep"], number(it["exp_s"]), number(it["until_s"]))
	}
	if jobs := it["jobs"].(*types.AttributeValueMemberM).Value; len(jobs) != 0 {
		t.Errorf("%d jobs are left", len(jobs))
	}
}

// kept fails the test unless a record is kept for its jobs.
func (tab *table) kept(t testing.TB, pk string, jobs ...string) {
	t.Helper()
	r, err := tab.Store.Load(t.Context(), pk)
	if err != nil || r == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r.Keep != store.KeepJobs || !r.Expires.IsZero() {
		t.Errorf("keep %q, expires %v: the record isn't kept", r.Keep, r.Expires)
	}
	if len(r.Jobs) != len(jobs) {
		t.Errorf("%d jobs are there, want %d", len(r.Jobs), len(jobs))
	}
	for _, name := range jobs {
		if _, there := r.Jobs[name]; !there {
			t.Errorf("job %s is gone", name)
		}
	}
}

// finished writes a record that is done and has jobs, as a finish leaves it.
func (tab *table) finished(t testing.TB, mod func(*store.Record), jobs ...string) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (rand.Text() + rand.Text())[:43], State: store.Done, Owner: rand.Text(), Ver: 2, ID: rand.Text(),
		Keep: store.KeepJobs, Until: now.Add(time.Hour).Truncate(time.Second), Response: &idem.Response{Status: 201, Body: []byte(tabletest.Planted)},
		Jobs: make(map[string]idem.Job), Fingerprint: "f", Created: now, Run: now, Route: "POST /orders",
	}
	for _, name := range jobs {
		r.Jobs[name] = idem.NewJob("job "+name, name+" "+tabletest.Planted)
	}
	if mod != nil {
		mod(r)
	}
	state.WaitFrom(r, now)
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	tab.Transport.Reset()
	return r
}

// edit changes an item by hand, as no store would.
// names are placeholders and what they stand for, in turn.
func (tab *table) edit(t testing.TB, pk, update string, values map[string]types.AttributeValue, names ...string) {
	t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: &update, ExpressionAttributeValues: values,
	}
	for pair := range slices.Chunk(names, 2) {
		in.ExpressionAttributeNames = map[string]string{pair[0]: pair[1]}
	}
	_, err := tab.Direct.UpdateItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
}

// later makes a finished record with jobs, some of which have a time.
func (tab *table) later(t testing.TB, at map[string]time.Duration) *store.Record {
	t.Helper()
	return tab.finished(t, func(r *store.Record) {
		for name, in := range at {
			j := r.Jobs[name]
			j.At = time.Now().Add(in).Truncate(time.Millisecond)
			r.Jobs[name] = j
		}
	}, slices.Sorted(maps.Keys(at))...)
}

// passes has the time of jobs come, as far as any program can see.
func (tab *table) passes(t testing.TB, r *store.Record, ago time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		tab.at(t, r, name, "SET jobs.#j.#at = :at", map[string]types.AttributeValue{":at": tabletest.Num(time.Now().Add(-ago).UnixMilli())})
	}
}

// atOnce takes the time from a job.
func (tab *table) atOnce(t testing.TB, r *store.Record, name string) {
	t.Helper()
	tab.at(t, r, name, "REMOVE jobs.#j.#at", nil)
}

func (tab *table) at(t testing.TB, r *store.Record, name, update string, values map[string]types.AttributeValue) {
	t.Helper()
	_, err := tab.Direct.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)}, UpdateExpression: &update,
		ExpressionAttributeNames: map[string]string{"#j": name, "#at": "at"}, ExpressionAttributeValues: values,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listed is what waits for people, in short.
func (tab *table) listed(t *testing.T) (all []stream.Entry) {
	t.Helper()
	for e, err := range stream.NewWaiting(tab.Client, tab.Store).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stream.Entry{Reason: e.Reason, PK: e.PK, LastErr: e.LastErr})
	}
	return all
}

// newTable is in memory, newLocal on DynamoDB Local.
func newTable(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	return &table{tabletest.New(t, optFns...)}
}

func newLocal(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	return &table{tabletest.Local(t, optFns...)}
}

// tail reads the stream of a table in memory, as Lambda hands it to a function.
type tail struct{ read func() events.DynamoDBEvent }

// tail begins now.
func (tab *table) tail(testing.TB) *tail { return &tail{tab.Feed()} }

// event returns everything that was written since the last one.
func (s *tail) event(testing.TB) events.DynamoDBEvent { return s.read() }

// remove deletes an item, as somebody or TTL does.
func (tab *table) remove(t testing.TB, pk string) {
	t.Helper()
	if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(pk)}}); err != nil {
		t.Fatal(err)
	}
}

// virtual is [tabletest.Virtual].
func virtual(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.Virtual(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

// withRetries runs test with a client that repeats requests, and with one that doesn't.
func withRetries(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.WithRetries(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

type calls = map[string]int

// handle lets h work on an event as the runtime does, and returns the sequence
// number it reports, "" for none.
func handle(t testing.TB, h interface {
	Invoke(context.Context, []byte) ([]byte, error)
}, ev events.DynamoDBEvent,
) string {
	t.Helper()
	payload, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var re events.DynamoDBEventResponse
	if err := json.Unmarshal(out, &re); err != nil {
		t.Fatal(err)
	}
	switch len(re.BatchItemFailures) {
	case 0:
		if !strings.Contains(string(out), "[]") {
			t.Errorf("the report is %s: null is not an empty list everywhere", out)
		}
		return ""
	case 1:
		return re.BatchItemFailures[0].ItemIdentifier
	}
	t.Errorf("%d failures are reported: the source looks at the lowest only", len(re.BatchItemFailures))
	return re.BatchItemFailures[0].ItemIdentifier
}

// pkOf is the record of an event.
func pkOf(rec events.DynamoDBEventRecord) string { return rec.Change.Keys["pk"].String() }

// from is the part of an event that comes again after seq was reported.
func from(t testing.TB, ev events.DynamoDBEvent, seq string) events.DynamoDBEvent {
	t.Helper()
	i := slices.IndexFunc(ev.Records, func(r events.DynamoDBEventRecord) bool { return r.Change.SequenceNumber == seq })
	if i < 0 {
		t.Fatalf("%q is not in the batch", seq)
	}
	return events.DynamoDBEvent{Records: ev.Records[i:]}
}

// staging is a handler with one job in each of its phases and the finish.
func staging(ctx context.Context) (idem.Response, error) {
	for _, name := range []string{"reserved", "charged"} {
		_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob(name, "args of "+name+" "+tabletest.Planted))
			return 1, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Stage(idem.NewJob("receipt", "r"), idem.NewJob("audit", "a"))
		return idem.Response{Status: 201}, nil
	})
}

// one is a handler that stages one job with its answer.
func one(kind string) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob(kind, kind))
	}
}

func run(t testing.TB, e *idem.Engine, fn func(context.Context) (idem.Response, error)) {
	t.Helper()
	if _, err := e.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), fn); err != nil {
		t.Fatal(err)
	}
}

// outbox is a sink that remembers.
type outbox struct {
	fail func(jobs.Delivery) error // nil: never

	mu   sync.Mutex
	all  []jobs.Delivery
	byID map[string]int
}

func (o *outbox) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	return jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		if o.fail != nil {
			if err := o.fail(d); err != nil {
				return err
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.byID == nil {
			o.byID = make(map[string]int)
		}
		o.all = append(o.all, d)
		o.byID[d.JobID]++
		return nil
	}).Deliver(ctx, batch)
}

// kinds are the kinds of what was delivered, in order.
func (o *outbox) kinds() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	kinds := []string{}
	for _, d := range o.all {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

func number(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return -1
	}
	return i
}

// tickets is a queue that remembers.
type tickets struct {
	fail func(jobs.Ticket) error // nil: never

	mu  sync.Mutex
	got []jobs.Ticket
}

func (q *tickets) Put(_ context.Context, batch []jobs.Ticket) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := make([]error, len(batch))
	for i, t := range batch {
		if q.fail != nil {
			errs[i] = q.fail(t)
		}
		if errs[i] == nil {
			q.got = append(q.got, t)
		}
	}
	return errs
}

// all takes out what is in the queue.
func (q *tickets) all() []jobs.Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := q.got
	q.got = nil
	return got
}

// resumable stores requests, so that they can be completed.
func resumable(o *idem.Options) {
	if o.Resumable = true; o.Function == "" {
		o.Function = "f"
	}
}

// crash is the error of a handler whose process dies: nothing of it is written.
var errCrash = errors.New("crash")

// begin runs fn as the handler of a request whose process then dies: the record
// stays as fn left it, lease and all.
func begin(t testing.TB, tab *table, req idem.Request, fn func(context.Context) error, optFns ...func(*idem.Options)) {
	t.Helper()
	dead := &dying{Store: tab.Store}
	_, err := idem.New(dead, append([]func(*idem.Options){callertest.Anybody}, append(optFns, resumable)...)...).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		if err := fn(ctx); err != nil {
			t.Error(err)
		}
		dead.dead = true
		return idem.Response{}, errCrash
	})
	if err == nil {
		t.Fatal("answered, though its process is dead")
	}
}

// dying is a store whose process may be dead: its writes come to nothing.
type dying struct {
	*dynamo.Store
	dead bool
}

func (d *dying) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if d.dead {
		return nil, errCrash
	}
	return d.Store.Commit(ctx, c)
}

func (d *dying) Load(ctx context.Context, pk string) (*store.Record, error) {
	if d.dead {
		return nil, errCrash
	}
	return d.Store.Load(ctx, pk)
}

func nothing(context.Context) error { return nil }

// phase commits a phase with a job in it.
func phase(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Stage(idem.NewJob("receipt", 1))
		return 1, nil
	})
	return err
}

// image is an item of a stream record: m in DynamoDB's JSON.
func image(t testing.TB, m map[string]any) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var it map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal(b, &it); err != nil {
		t.Fatal(err)
	}
	return it
}

func text(v string) map[string]any { return map[string]any{"S": v} }

func digits(v int64) map[string]any { return map[string]any{"N": fmt.Sprint(v)} }

// open is the image of an operation that was claimed a minute ago, and must be
// brought to an end.
func open(change map[string]any) map[string]any {
	ago := time.Now().Add(-time.Minute).UnixMilli()
	m := map[string]any{
		"pk": text("v1##open"), "v": digits(1), "st": text("open"), "owner": text("o"), "ver": digits(1), "lease_ms": digits(ago + 30_000), "keep": text("open"),
		"fp": text("f"), "id": text("i"), "jobs": map[string]any{"M": map[string]any{}}, "created_ms": digits(ago), "run_ms": digits(ago), "route": text("POST /orders"),
		"req": map[string]any{"M": map[string]any{"m": text("POST"), "p": text("/orders"), "h": map[string]any{"M": map[string]any{}}}},
	}
	for name, v := range change {
		if v == nil {
			delete(m, name)
		} else {
			m[name] = v
		}
	}
	return m
}

// staged is the same with a job in it.
func staged(change map[string]any) map[string]any {
	m := open(change)
	if _, other := change["jobs"]; !other {
		m["jobs"] = map[string]any{"M": map[string]any{"0.0": map[string]any{"M": map[string]any{"k": text("mail"), "a": text("1")}}}}
	}
	return m
}

// record is a stream record of these images; nil for none.
func record(t testing.TB, seq int, event string, oldImage, newImage map[string]any) events.DynamoDBEventRecord {
	t.Helper()
	rec := events.DynamoDBEventRecord{EventName: event, EventSource: "aws:dynamodb", Change: events.DynamoDBStreamRecord{
		SequenceNumber: fmt.Sprint(seq), ApproximateCreationDateTime: events.SecondsEpochTime{Time: time.Now()},
	}}
	for _, m := range []map[string]any{oldImage, newImage} {
		if pk, there := m["pk"]; there {
			rec.Change.Keys = image(t, map[string]any{"pk": pk})
		}
	}
	if oldImage != nil {
		rec.Change.OldImage = image(t, oldImage)
	}
	if newImage != nil {
		rec.Change.NewImage = image(t, newImage)
	}
	return rec
}

func item(t testing.TB, m map[string]any) map[string]types.AttributeValue {
	t.Helper()
	out := make(map[string]types.AttributeValue)
	for name, v := range m {
		out[name] = attribute(t, v)
	}
	return out
}

func attribute(t testing.TB, v any) types.AttributeValue {
	t.Helper()
	for kind, content := range v.(map[string]any) {
		switch kind {
		case "S":
			return tabletest.Str(content.(string))
		case "N":
			return &types.AttributeValueMemberN{Value: content.(string)}
		case "M":
			return &types.AttributeValueMemberM{Value: item(t, content.(map[string]any))}
		}
	}
	t.Fatalf("no attribute: %v", v)
	return nil
}

var errPoison = errors.New("poison")

var errInjected = errors.New("injected")

var anyValue = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{})

// noise is text of n bytes that doesn't compress well.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// answer is a handler that completes a request with its own body.
func answer(_ context.Context, req *idem.Request) (idem.Response, error) {
	return idem.Response{Status: 201, Body: req.Body}, nil
}
