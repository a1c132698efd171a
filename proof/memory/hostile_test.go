package memory_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
	"github.com/samekey/samekey/seal"
)

// mostHeap is what all of the parts below take together, in bytes, with their bounds: 10,000
// callers, 1,000 data keys with their names, 4,096 jobs, 1,000 functions, and 4 MB of answers.
const mostHeap = 16 * mb

// Hostile callers, names, keys, routes, data keys, jobs and functions, each new, take no more
// memory in the second half of a process's life than in the first: MEMORY_KEYS of each, 20,000
// by default. Every map, slice and channel that a part holds is counted, whatever its name.
func TestHostileNamesTakeNoMemory(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("MEMORY_KEYS"), "20000"))
	if err != nil {
		t.Fatal(err)
	}
	p := newParts(t)
	empty := heap()
	var before census
	for i := range n {
		if i == n/2 {
			before = p.weigh(t)
		}
		p.meet(t, i)
	}
	after := p.weigh(t)
	taken := func(c census) uint64 { return c.heap - min(empty, c.heap) }
	t.Logf("%d of each: %d KB after the first half, %d KB after the second", n, taken(before)>>10, taken(after)>>10)
	if taken(after) > taken(before)+taken(before)/10+mb/2 {
		t.Errorf("memory grows from %d KB to %d KB", taken(before)>>10, taken(after)>>10)
	}
	if taken(after) > mostHeap {
		t.Errorf("%d KB are taken, want at most %d", taken(after)>>10, mostHeap>>10)
	}
	for _, path := range slices.Sorted(maps.Keys(after.lengths)) {
		was, is := before.lengths[path], after.lengths[path]
		if is > 100 {
			t.Logf("%s: %d", path, is)
		}
		if is > was+was/10+16 {
			t.Errorf("%s grows from %d to %d entries", path, was, is)
		}
	}
	for path, least := range map[string]int{ // the census sees what it is for
		"engine.core.opt.Quota.known.entry": callers, "metrics.routes": 10, "sealer.opened": 1000,
		"drain.recent.ids.entry": 4096, "tickets.breakers.all.entry": 1000,
	} {
		if after.lengths[path] < least {
			t.Errorf("%s has %d entries, want %d: its bound isn't met", path, after.lengths[path], least)
		}
	}
	runtime.KeepAlive(p)
}

// parts are those of this module that live as long as a process and meet names of others.
type parts struct {
	roots    map[string]any
	db       *fakedynamo.Server
	function *lambda.Handler[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]
	sealer   *seal.Sealer
	drain    *stream.Drain
	tickets  *completer.Handler
	client   *http.Client
	asked    *store.Record // of the next ticket
}

const (
	table   = "records"
	callers = 10_000 // of the quota, which remembers as many
)

func newParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{db: new(fakedynamo.Server)}
	records, err := dynamo.New(p.db, table)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	buckets := quota.New(quota.Limits{PerMinute: 60, Open: 2, Bytes: mb})
	m := metrics.New(io.Discard, "app", func(o *metrics.Options) { o.Routes = 10 })
	engine := idem.New(records, func(o *idem.Options) {
		o.Quota, o.Hooks, o.Logger = buckets, m.Hooks(), quiet
	})
	p.function = lambda.Wrap(engine, lambda.HTTPAPI, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (events.APIGatewayV2HTTPResponse, error) {
			tx.Stage(idem.NewJob("mail", 1))
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: ev.RawPath}, nil
		})
	})
	p.sealer = seal.New(opens{})
	p.drain = stream.NewDrain(records, jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil }), func(o *stream.DrainOptions) { o.Logger = quiet })
	queue := completer.NewQueue(noQueue{}, "https://tickets")
	p.tickets = completer.New(oneRecord{parts: p}, queue, nobody{}, func(o *completer.Options) { o.Logger = quiet })
	transport := client.New(answers{}, func(o *client.Options) { o.MaxRetries = -1 })
	p.client = &http.Client{Transport: transport}
	p.roots = map[string]any{
		"engine": engine, "store": records, "quota": buckets, "metrics": m, "sealer": p.sealer, "drain": p.drain, "queue": queue, "tickets": p.tickets,
		"client": transport, "function": p.function,
	}
	return p
}

// meet has each part meet names that it has never met.
func (p *parts) meet(t *testing.T, i int) {
	t.Helper()
	name := strconv.Itoa(i)
	long := name + strings.Repeat("x", 8000) // as long as the claims of a token may be
	_, err := p.function.Handle(t.Context(), events.APIGatewayV2HTTPRequest{
		RouteKey: "POST /" + name, RawPath: "/" + name, Headers: map[string]string{"idempotency-key": "key-of-someone-" + name},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: http.MethodPost},
			Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
				Claims: map[string]string{"iss": "https://issuer.example.com", "sub": long},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if i%500 == 499 {
		p.drains(t)
	}
	if _, err := p.sealer.Open(t.Context(), "key", seal.Algorithm, []byte(long[:1000])); err != nil {
		t.Fatal(err)
	}
	p.asked = &store.Record{
		PK: "v1##" + name, ID: name, State: store.Open, Keep: store.KeepOpen, Handler: store.HandlerID{Function: "function-" + name}, Input: &store.Input{},
		Run: time.Now().Add(-time.Hour),
	}
	if _, err := p.tickets.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message(p.asked)}}); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+name+".example.com/"+name, strings.NewReader(name))
	if err != nil {
		t.Fatal(err)
	}
	re, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = re.Body.Close()
}

// drains delivers the jobs of all records, and forgets the records: the database is no part.
func (p *parts) drains(t *testing.T) {
	t.Helper()
	var ev events.DynamoDBEvent
	p.db.Locked(func(db *fakedynamo.DB) {
		for i, it := range db.Items(table) {
			image := streamimage.Of(it)
			ev.Records = append(ev.Records, events.DynamoDBEventRecord{
				EventName: "INSERT", EventSource: "aws:dynamodb",
				Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
			})
		}
	})
	if re, err := p.drain.Handle(t.Context(), ev); err != nil || len(re.BatchItemFailures) > 0 || len(ev.Records) != 500 {
		t.Fatalf("%d records: %v, %v", len(ev.Records), re, err)
	}
	p.db.Locked(func(db *fakedynamo.DB) { *db = fakedynamo.DB{} })
}

func message(r *store.Record) events.SQSMessage {
	return events.SQSMessage{MessageId: r.ID, ReceiptHandle: r.ID, EventSource: "aws:sqs", Body: `{"pk":"` + r.PK + `","id":"` + r.ID + `"}`}
}

// opens opens every data key.
type opens struct{}

func (opens) Generate(context.Context) (seal.DataKey, error) { return seal.DataKey{}, errors.New("no") }

func (opens) Open(context.Context, string, []byte) ([]byte, error) { return make([]byte, 32), nil }

// oneRecord has the record of the next ticket.
type oneRecord struct {
	store.Store
	*parts
}

func (o oneRecord) Load(context.Context, string) (*store.Record, error) { return o.asked, nil }

// nobody is a function that gives no answer.
type nobody struct{}

func (nobody) Resume(context.Context, jobs.Ticket) completer.TicketOutcome {
	return completer.TicketOutcome{Kind: completer.TicketFailed, Error: "down", Unanswered: true}
}

type noQueue struct{ completer.QueueAPI }

func (noQueue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return new(sqs.GetQueueAttributesOutput), nil
}

func (noQueue) ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return new(sqs.ChangeMessageVisibilityOutput), nil
}

// answers is a server.
type answers struct{}

func (answers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(new(bytes.Buffer)), Request: req}, nil
}

// census is the memory that is in use, and how many entries each map, slice and channel of
// the parts has, by its path.
type census struct {
	heap    uint64
	lengths map[string]int
}

func (p *parts) weigh(t *testing.T) census {
	t.Helper()
	p.db.Locked(func(db *fakedynamo.DB) {
		if len(db.Items(table)) > 500 {
			t.Fatal("the database is weighed, too")
		}
	})
	c := census{heap: heap(), lengths: make(map[string]int)}
	seen := make(map[uintptr]bool)
	for _, name := range slices.Sorted(maps.Keys(p.roots)) {
		c.count(name, reflect.ValueOf(p.roots[name]), seen)
	}
	return c
}

func heap() uint64 {
	for range 2 { // the first leaves what pools hold
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// count adds the lengths of all that v holds, as far as it is this module's.
func (c *census) count(path string, v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		c.count(path, v.Elem(), seen)
	case reflect.Interface:
		if !v.IsNil() {
			c.count(path, v.Elem(), seen)
		}
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), "github.com/samekey/samekey/") || strings.Contains(v.Type().PkgPath(), "/testkit/") || strings.Contains(v.Type().PkgPath(), "/proof/") {
			return
		}
		for i := range v.NumField() {
			c.count(path+"."+v.Type().Field(i).Name, v.Field(i), seen)
		}
	case reflect.Map:
		c.lengths[path] += v.Len()
		for it := v.MapRange(); it.Next(); {
			c.count(path+"[]", it.Value(), seen)
		}
	case reflect.Slice:
		c.lengths[path] += v.Len()
		for i := range v.Len() {
			c.count(path+"[]", v.Index(i), seen)
		}
	case reflect.Chan:
		c.lengths[path] += v.Len()
	default:
		// Strings and numbers don't hold others' names; closures show in the heap
	}
}
