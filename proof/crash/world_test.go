//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/sam/ridestest"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/servers/mendstream"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/statestest"
)

const (
	template = "../../template.yaml"
	secret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	grace    = 100 * time.Millisecond
	// sweepEvery is the schedule of the sweep.
	sweepEvery = 2 * time.Second
	// overtime is for how long a process may be stopped.
	overtime = time.Hour
)

// timeout is the time of the API's and the consumer's invocations. A process is
// believed dead timeout and a margin after it got its work.
const timeout = 4 * time.Second

// programs are the bootstraps of the functions.
type programs struct{ function, worker string }

func build(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	p := programs{dir + "/function", dir + "/worker"}
	for pkg, out := range map[string]string{"proof/crash/cmd/function": p.function, "cmd/samekey-worker": p.worker} {
		if err := lambdarun.BuildBootstrap(t.Context(), "github.com/samekey/samekey/"+pkg, out); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// world is an application with all its functions as processes, on a database of its own.
type world struct {
	ctx             context.Context // ends all that works in the world
	base            string          // URL of the proxy
	client          *dynamodb.Client
	records, ledger string
	store           *dynamo.Store
	services        map[string]http.RoundTripper
	provider        provider
	queues          *queues
	states          statestest.States
	api, worker     *pool
	second          *pool // of the API: see release
	consumer        *pool
	front, newFront http.Handler
	history         history
	killed, stopped atomic.Int64
	posts, passed   atomic.Int64

	mu    sync.Mutex
	slots map[string]*slot
	runs  map[string]*run // by their ids
	byPK  map[string]*run
}

func newWorld(t *testing.T, db *dynamotest.DB, bin programs) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	name := rand.Text()
	// The database is the world's own: one gets slower with each table that has a stream.
	key := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: name, SecretAccessKey: name}, nil
	})
	own := func(o *dynamodb.Options) { o.Credentials = key }
	w := &world{
		ctx: ctx, client: db.Client(own), records: "records-" + name, ledger: "ledger-" + name,
		provider: provider{seen: map[string]*asked{}},
		slots:    map[string]*slot{}, runs: map[string]*run{}, byPK: map[string]*run{},
	}
	w.history = history{w: w, last: map[string]*image{}}
	arn := w.createTable(t, dynamo.CreateTableInput(w.records))
	w.createTable(t, &dynamodb.CreateTableInput{
		TableName: &w.ledger, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("run"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("run"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeRange},
		},
	})
	var err error
	if w.store, err = dynamo.New(db.Client(dynamo.Tune, own), w.records); err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.base = "http://" + ln.Addr().String()
	proxy := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = proxy.Serve(ln) }()

	endpoint, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	env := []string{
		"AWS_ACCESS_KEY_ID=" + name, "AWS_SECRET_ACCESS_KEY=" + name, "IDEM_TABLE=" + w.records, "LEDGER_TABLE=" + w.ledger,
		"WEBHOOK_SECRET=" + secret, "AWS_LAMBDA_FUNCTION_NAME=crash", "GOMAXPROCS=2",
	}
	function := func(name, binary string, timeout time.Duration, active int, stage func([]byte) string, more ...string) *pool {
		return &pool{
			w: w, stage: stage, active: make(chan struct{}, active),
			config: lambdarun.Config{Name: name, Binary: binary, Timeout: timeout, Overtime: overtime, Stderr: logs(t), Env: append(more, env...)},
			env: func(base string) []string {
				return []string{
					"AWS_ENDPOINT_URL_DYNAMODB=" + base + "/dynamodb", "AWS_ENDPOINT_URL_SQS=" + base + "/sqs",
					"AWS_ENDPOINT_URL_LAMBDA=" + base + "/lambda", "AWS_ENDPOINT_URL_SFN=" + base + "/states", "AWS_ENDPOINT_URL_SCHEDULER=" + base + "/scheduler",
					"PROVIDER_URL=" + base + "/provider",
				}
			},
		}
	}
	const queue = "https://sqs.us-east-1.amazonaws.com/123456789012/"
	w.api = function("crash", bin.function, timeout, 12, stageOfAPI)
	w.second = function("second", bin.function, timeout, 6, stageOfAPI, "CRASH_RELEASE=second")
	w.consumer = function("consumer", bin.function, timeout, 6, func([]byte) string { return atConsumer }, "CRASH_ROLE=consumer")
	w.worker = function("worker", bin.worker, 5*timeout, 6, func([]byte) string { return atWorker },
		"SAMEKEY_TICKETS_URL="+queue+"tickets", "SAMEKEY_SCHEDULE_ROLE=arn:aws:iam::123456789012:role/later", "SAMEKEY_SINKS=receipt=sqs:"+queue+"receipts,remind=sqs:"+queue+"receipts,ship=states:"+shipping,
		"SAMEKEY_FUNCTIONS=crash", "SAMEKEY_NAMESPACES=crash", "SAMEKEY_GRACE="+grace.String(), "SAMEKEY_SWEEP_LATE=1s", "SAMEKEY_SWEEP_PAGES=1000")
	w.states.Types = map[string]string{shipping: "STANDARD"}
	w.queues = &queues{ctx: ctx, w: w, readers: map[string]lambdarun.Invoker{"tickets": w.worker, "receipts": w.consumer}}
	w.services = map[string]http.RoundTripper{
		"dynamodb": remote{endpoint, transport}, "sqs": inProcess{w.queues}, "lambda": inProcess{invokeAPI{w.api}}, "states": inProcess{ended{&w.states}}, "scheduler": inProcess{&scheduler{queues: w.queues, made: map[string]bool{}}}, "provider": inProcess{&w.provider},
	}
	patient := func(o *apigateway.HTTPAPIOptions) { o.IntegrationTimeout = overtime }
	w.front, w.newFront = apigateway.HTTPAPI(w.api, patient), apigateway.HTTPAPI(w.second, patient)
	w.history.worker, w.history.filters = w.worker, ridestest.Filters(t, template)
	stream, streamTransport := w.startStream(t, db, arn, key)
	var sweeps sync.WaitGroup
	sweeps.Go(func() { // makes the tickets that the queue didn't take
		for sleep(ctx, sweepEvery) {
			_, _ = w.worker.Invoke(ctx, []byte(`{"source":"aws.scheduler"}`)) // the next one goes on
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = stream.Close()
		w.queues.wg.Wait()
		sweeps.Wait()
		for _, p := range []*pool{w.worker, w.consumer, w.api, w.second} {
			p.close(t)
		}
		_ = proxy.Close()
		transport.CloseIdleConnections()
		streamTransport.CloseIdleConnections()
	})
	return w
}

func (w *world) createTable(t *testing.T, in *dynamodb.CreateTableInput) (arn string) {
	t.Helper()
	if _, err := w.client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wait := dynamodb.NewTableExistsWaiter(w.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond })
	out, err := wait.WaitForOutput(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName}, patience)
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.Table.LatestStreamArn)
}

func (w *world) startStream(t *testing.T, db *dynamotest.DB, arn string, key aws.CredentialsProvider) (*eventsource.Mapping, *http.Transport) {
	t.Helper()
	base := &http.Transport{}
	m, err := eventsource.Stream{
		Function: &w.history, ARN: arn, ReportBatchItemFailures: true,
		API: dynamodbstreams.New(dynamodbstreams.Options{
			BaseEndpoint: &db.Endpoint, Region: "us-east-1", HTTPClient: &http.Client{Transport: mendstream.Transport(base)},
			Credentials: key,
		}),
	}.Start(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m, base
}

// operator settles what waits for people.
func (w *world) operator() *idem.Engine {
	return idem.New(w.store, callertest.Anybody, func(o *idem.Options) { o.Namespace, o.Logger = "crash", slog.New(slog.DiscardHandler) })
}

// address is where a slot's calls come in.
func (w *world) address(name string, s *slot) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots[name] = s
	return w.base + "/" + name
}

// begin notes that a slot has got work.
func (w *world) begin(s *slot, inv *invocation, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.at = inv
	if inv.stage != atWorker || bytes.Contains(payload, []byte("aws:sqs")) {
		if runs := w.named(payload); len(runs) == 1 {
			inv.run = runs[0]
		}
	}
}

func (w *world) end(s *slot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := s.at.run; r != nil && time.Since(s.at.began) > timeout/2 && !slices.Contains(r.asleep, s.at) {
		r.slow = true
	}
	s.at = nil
}

// named are the runs that a text names, by their ids or the keys of their records. The
// caller holds mu.
func (w *world) named(text []byte) (runs []*run) {
	have := map[*run]bool{}
	add := func(r *run) {
		if r != nil && !have[r] {
			have[r] = true
			runs = append(runs, r)
		}
	}
	for _, id := range runID.FindAll(text, -1) {
		add(w.runs[string(id)])
	}
	for _, pk := range pkOf.FindAll(text, -1) {
		add(w.byPK[string(pk)])
	}
	return runs
}

// meet counts a call, and returns the fault that it meets; nil if it meets none.
func (w *world) meet(c *call, address string) *fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed.Add(1)
	c.slot = w.slots[address]
	inv := c.slot.at
	if inv == nil {
		return nil // it comes from no invocation
	}
	c.inv = inv
	inv.calls++
	inv.names[c.name]++
	if inv.run != nil {
		places := 1
		if inv.run.path.begins != only {
			places = 2 // in a claim
		}
		for _, pk := range pkOf.FindAll(c.body, places) {
			w.byPK[string(pk)] = inv.run
			if !strings.HasPrefix(string(pk), "v1#receipts#") {
				inv.run.at(string(pk))
			}
		}
	}
	if f := inv.next; f != nil {
		inv.next = nil
		return f
	}
	if next, ok := inv.failing[c.name]; ok && next.times > 0 {
		next.times--
		inv.failing[c.name] = next
		return next.fault
	}
	runs := []*run{inv.run}
	if inv.run == nil {
		runs = w.named(c.body)
	}
	for _, r := range runs {
		if f := r.meets(c); f != nil {
			c.run = r
			return f
		}
	}
	return nil
}

// then has the next call of an invocation meet a fault.
func (w *world) then(c *call, f *fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.inv.next = f
}

// fails has the next calls of that name meet a fault.
func (w *world) fails(c *call, f *fault, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.inv.failing[c.name] = fate{f, times}
}

// late keeps a packet until its run is over, or until a later attempt has its key. It
// is lost to its own attempt.
func (w *world) late(c *call, inNextAttempt bool) {
	if inNextAttempt {
		w.fails(c, &fault{apply: answer500}, 1<<30)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.run.packet, c.run.packetOf, c.run.early = func() { _, _ = c.send() }, c.inv, inNextAttempt
}

// leave has the caller of an invocation lose its patience.
func (w *world) leave(r *run, inv *invocation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-inv.left:
	default:
		close(inv.left)
	}
	r.asleep = append(r.asleep, inv)
}

// effects are the kinds of a run's entries in the users' table.
func (w *world) effects(ctx context.Context, run string) (map[string]int, error) {
	out, err := w.client.Query(ctx, &dynamodb.QueryInput{
		TableName: &w.ledger, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#r = :r"),
		ExpressionAttributeNames:  map[string]string{"#r": "run"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":r": &types.AttributeValueMemberS{Value: run}},
	})
	if err != nil {
		return nil, err
	}
	kinds := map[string]int{}
	for _, item := range out.Items {
		if kind, ok := item["kind"].(*types.AttributeValueMemberS); ok {
			kinds[kind.Value]++
		}
	}
	return kinds, nil
}

// drained waits until the queues are empty, and checks that every item of the table
// may expire: no request is left open, and none waits for people.
func (w *world) drained(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for w.queues.waiting.Load() > 0 {
		if !sleep(ctx, 50*time.Millisecond) {
			t.Fatalf("%d messages are left in the queues", w.queues.waiting.Load())
		}
	}
	items := 0
	pages := dynamodb.NewScanPaginator(w.client, &dynamodb.ScanInput{
		TableName: &w.records, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("pk, st, exp_s, keep, waits"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if pk, ok := item["pk"].(*types.AttributeValueMemberS); !ok || !strings.HasPrefix(pk.Value, "v1#") {
				continue // the sweep's own
			}
			items++
			state, record := item["st"].(*types.AttributeValueMemberS)
			if item["exp_s"] == nil || item["waits"] != nil || record && state.Value != "done" && !over(item) {
				t.Errorf("left in the table: %+v, %+v, %+v", item["pk"], item["st"], item["waits"])
			}
		}
	}
	if items == 0 {
		t.Error("the table is empty")
	}
}

// expire deletes what may expire of a run that is open, as TTL does once its key's time is
// over.
func (w *world) expire(ctx context.Context, r *run) {
	w.mu.Lock()
	pks := slices.Clone(r.pks)
	w.mu.Unlock()
	for _, pk := range pks {
		_, _ = w.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{ // if it fails, its time is not over
			TableName: &w.records, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
			ConditionExpression:       aws.String("attribute_exists(exp_s) AND st = :open"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":open": &types.AttributeValueMemberS{Value: "open"}},
		})
	}
}

// over reports whether a record has expired, or its key was freed: it was then claimed in
// its other place.
func over(item map[string]types.AttributeValue) bool {
	if keep, ok := item["keep"].(*types.AttributeValueMemberS); ok && keep.Value == "freed" {
		return true
	}
	n, ok := item["exp_s"].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	seconds, err := strconv.ParseInt(n.Value, 10, 64)
	return err == nil && seconds < time.Now().Unix()
}

// forget forgets a run that is over.
func (w *world) forget(r *run) {
	w.mu.Lock()
	delete(w.runs, r.id)
	for pk, of := range w.byPK {
		if of == r {
			delete(w.byPK, pk)
			defer w.history.forget(pk)
		}
	}
	w.mu.Unlock()
	w.provider.forget(r.id)
}
