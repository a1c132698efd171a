package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
	"github.com/samekey/samekey/internal/testkit/ticketqueue"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
)

// step is the interval of reading the stream, polling the queue and counting waiting records.
// In alarms that last for a day, a step is an hour, and a sweep runs every six hours.
const step = 5 * time.Minute

// duty is an application with table, stream, worker, queue and alarms,
// in the virtual time of a bubble, and an operator with the command.
type duty struct {
	*testing.T
	server  *fakedynamo.Server
	account *doctortest.World
	fn      *role // the functions' role
	behind  *role // the worker's role

	handler func(*dutyOptions) handling
	app     handling                                                // stores its requests
	brief   handling                                                // the completer tries its requests only twice
	does    map[string]func(context.Context) (idem.Response, error) // by the request's body
	invoked map[string]handling                                     // functions by name
	known   completer.Functions                                     // functions that the worker knows
	worker  metrics.Handler
	queue   *ticketqueue.Queue

	sink   error // the answer of the sink of mails
	mails  map[string]int
	bucket map[string][]byte
	lost   bool // the bucket refuses every object
	dies   bool // the worker dies at each batch of the stream

	changes []events.DynamoDBEventRecord // records of the stream that the worker has not read
	seen    int                          // number of records so far
	away    bool                         // the worker doesn't read the stream
	counts  bool                         // the worker's schedules are on
	sweeps  bool
	each    func(*duty)   // runs at each step
	pace    time.Duration // length of a step
	keys    int
	logs    *bytes.Buffer // of functions and worker
	emf     *bytes.Buffer
	mu      sync.Mutex // guards data, logs and emf
	data    alarmtest.Data
	alarms  map[string]alarmtest.Alarm
}

type handling interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// dutyOptions are the options of a function.
type dutyOptions struct {
	function string
	engine   func(*idem.Options)
}

// role is the table as a role may use it.
type role struct {
	*fakedynamo.Server
	mu     sync.Mutex
	refuse func(op string) error // nil: refuses nothing
}

func (r *role) set(refuse func(op string) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *role) may(op string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse == nil {
		return nil
	}
	return r.refuse(op)
}

func (r *role) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := r.may("GetItem"); err != nil {
		return nil, err
	}
	return r.Server.GetItem(ctx, in)
}

func (r *role) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := r.may("PutItem"); err != nil {
		return nil, err
	}
	return r.Server.PutItem(ctx, in)
}

func (r *role) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := r.may("UpdateItem"); err != nil {
		return nil, err
	}
	return r.Server.UpdateItem(ctx, in)
}

func (r *role) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if err := r.may("Scan"); err != nil {
		return nil, err
	}
	return r.Server.Scan(ctx, in)
}

func (r *role) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := r.may("Query"); err != nil {
		return nil, err
	}
	return r.Server.Query(ctx, in)
}

// Do answers the command's requests. It implements aws.HTTPClient.
func (r *role) Do(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	err := r.may(op)
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + api.ErrorCode() + `","message":"` + api.ErrorMessage() + `"}`
		return &http.Response{
			StatusCode: http.StatusBadRequest, Request: req, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Server.Do(req)
}

// refusingOps refuses some operations with an error code.
func refusingOps(code string, ops ...string) func(string) error {
	return func(op string) error {
		if len(ops) == 0 || slices.Contains(ops, op) {
			return &smithy.GenericAPIError{Code: code, Message: "not for tests"}
		}
		return nil
	}
}

// locked is a log that goroutines may share.
type locked struct {
	d *duty
	b *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.b.Write(p)
}

// newDuty makes a duty. The caller must be in a bubble, and must have
// set an account ([someAccount]).
func newDuty(t *testing.T) *duty {
	t.Helper()
	d := &duty{
		T: t, server: &fakedynamo.Server{}, account: doctortest.Good(time.Now()), queue: &ticketqueue.Queue{}, counts: true, sweeps: true, pace: step,
		logs: new(bytes.Buffer), emf: new(bytes.Buffer), does: make(map[string]func(context.Context) (idem.Response, error)),
		mails: make(map[string]int), bucket: make(map[string][]byte), invoked: make(map[string]handling), known: make(completer.Functions),
	}
	d.account.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders"
	d.server.DB.Changed = d.changed
	d.fn, d.behind = &role{Server: d.server}, &role{Server: d.server}
	var err error
	if d.alarms, err = alarmtest.Parse(deploy.Nested(), map[string]string{"App": "orders", "AlarmTopicArn": "topic"}); err != nil {
		t.Fatal(err)
	}
	m := metrics.New(locked{d, d.emf}, "orders")
	logger := slog.New(slog.NewJSONHandler(locked{d, d.logs}, nil))
	tableOf := func(r *role) *dynamo.Store {
		s, err := dynamo.New(r, "records", func(o *dynamo.Options) { o.Hooks = m.StoreHooks() })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	functions := tableOf(d.fn)
	d.handler = func(o *dutyOptions) handling {
		e := idem.New(functions, callertest.Anybody, func(eo *idem.Options) {
			eo.Logger, eo.Function, eo.Lease = logger, o.function, time.Minute
			eo.Hooks = idem.Join(m.Hooks(), idem.Log(logger))
			if o.engine != nil {
				o.engine(eo)
			}
		})
		return lambda.Wrap(e, lambda.HTTPAPI, d.serve, func(ho *lambda.HandlerOptions) { ho.Name = "order" })
	}
	d.app = d.handler(&dutyOptions{function: "orders", engine: func(o *idem.Options) { o.Resumable = true }})
	d.deploy("orders", d.app)
	d.brief = d.handler(&dutyOptions{function: "brief", engine: func(o *idem.Options) { o.Resumable, o.MaxTries = true, 2 }})
	d.deploy("brief", d.brief)
	d.worker = m.Wrap(worker.New(d.behind, tableOf(d.behind), completer.NewQueue(d.queue, "https://queue"), func(o *worker.Options) {
		o.Logger, o.Hooks, o.Functions = logger, stream.Join(m.StreamHooks(), stream.Log(logger)), d.known
		o.Sink = jobs.Route{"mail": jobs.SinkFunc(func(_ context.Context, job jobs.Delivery) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.sink == nil {
				d.mails[string(job.Args)]++
			}
			return d.sink
		})}
	}))
	// A deployed schedule runs at once, which ends the alarms on silence.
	d.schedule("count")
	d.schedule("sweep")
	d.take()
	return d
}

// deploy adds a function that the worker knows.
func (d *duty) deploy(name string, h handling) {
	d.invoked[name] = h
	maps.Copy(d.known, completer.Invoke(d, name))
}

// serve is the handler of all functions. The request's body names the work.
func (d *duty) serve(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	resp, err := d.does[strings.TrimRight(ev.Body, "0123456789 ")](ctx)
	return events.APIGatewayV2HTTPResponse{StatusCode: resp.Status, Body: string(resp.Body)}, err
}

// send sends a request with a key, and returns the status that the client gets.
func (d *duty) send(h handling, key, body string) int {
	d.Helper()
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /orders", RawPath: "/orders", Body: body, Headers: map[string]string{"idempotency-key": key},
	}
	ev.RequestContext.HTTP.Method = http.MethodPost
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), 30*time.Second)
	defer cancel()
	raw, err := h.Invoke(ctx, d.json(ev))
	if err != nil {
		return 500
	}
	var re events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(raw, &re); err != nil {
		d.Fatal(err)
	}
	return re.StatusCode
}

// is fails the test unless the statuses are equal.
func (d *duty) is(what string, got, want int) {
	d.Helper()
	if got != want {
		d.Errorf("%s: status %d, want %d", what, got, want)
	}
}

func (d *duty) newKey() string {
	d.keys++
	return fmt.Sprint("key-", d.keys)
}

func (d *duty) json(v any) []byte {
	d.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		d.Fatal(err)
	}
	return b
}

// Invoke invokes a function for the worker, like Lambda.
func (d *duty) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	out, err := d.invoked[*in.FunctionName].Invoke(ctx, in.Payload)
	if err != nil {
		return &awslambda.InvokeOutput{FunctionError: aws.String("Unhandled"), Payload: []byte(err.Error())}, nil //nolint:nilerr // like Lambda
	}
	return &awslambda.InvokeOutput{Payload: out}, nil
}

// Do answers the command's calls of AWS: on the table, of Lambda's Invoke, and of doctor.
func (d *duty) Do(req *http.Request) (*http.Response, error) {
	target, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	switch {
	case strings.HasSuffix(req.URL.Path, "/invocations"):
		return lambdaRuns{func(_ context.Context, payload []byte) ([]byte, error) { return d.invoke(payload) }}.Do(req)
	case target == "DynamoDB_20120810" && !strings.HasPrefix(op, "Describe"):
		return d.fn.Do(req) // the operator has the functions' permissions
	}
	d.account.Now = time.Now()
	return d.account.Do(req)
}

// changed adds a change to the table's stream, if it passes the filters of samekey.yaml.
func (d *duty) changed(c fakedynamo.Change) {
	pk, _ := cmpItem(c)["pk"].(*types.AttributeValueMemberS)
	if pk == nil || !strings.HasPrefix(pk.Value, "v1#") {
		return
	}
	d.seen++
	r := streamimage.Record(c.Old, c.New, c.Time, fmt.Sprint(d.seen))
	if c.New == nil { // only TTL removes records in these tests
		r.UserIdentity = streamimage.ByTTL()
	}
	d.changes = append(d.changes, r)
}

func cmpItem(c fakedynamo.Change) fakedynamo.Item {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// pass moves the time forward, step by step.
func (d *duty) pass(long time.Duration) {
	d.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); {
		at := time.Now().Truncate(d.pace).Add(d.pace)
		<-time.After(time.Until(at))
		if d.each != nil {
			d.each(d)
		}
		if !d.away {
			d.readStream()
			_ = d.queue.Deliver(func(ev events.SQSEvent) ([]byte, error) { return d.invoke(d.json(ev)) }) // a failed batch comes again
		}
		if d.counts {
			d.schedule("count")
		}
		every := time.Hour
		if d.pace > step {
			every = 6 * time.Hour
		}
		if d.sweeps && at.Truncate(every).Equal(at) {
			d.schedule("sweep")
		}
		d.metric("DeadLetters", float64(d.queue.Dead()))
		d.take()
	}
}

// schedule runs the worker like one of its schedules.
func (d *duty) schedule(task string) {
	d.Helper()
	_, _ = d.invoke(d.json(map[string]string{"source": "aws.scheduler", "task": task})) // Lambda counts errors
}

// invoke runs the worker with its timeout, and counts failed invocations, like Lambda.
func (d *duty) invoke(payload []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), 2*time.Minute)
	defer cancel()
	out, err := d.worker.Invoke(ctx, payload)
	failed := 0.0
	if err != nil {
		failed = 1
	}
	d.metric("WorkerErrors", failed)
	return out, err
}

// metric adds a value of an AWS service's metric to the data of an alarm.
func (d *duty) metric(alarm string, value float64) {
	a := d.alarms[alarm+"Alarm"]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data.Add(a.Metrics()[0], time.Now(), value)
}

// readStream hands the stream's records to the worker, and after ten tries to the bucket.
func (d *duty) readStream() {
	d.Helper()
	var batch []events.DynamoDBEventRecord
	d.server.Locked(func(*fakedynamo.DB) { batch, d.changes = d.changes, nil })
	for len(batch) > 0 {
		part := batch[:min(100, len(batch))]
		batch = batch[len(part):]
		for try := 0; len(part) > 0; try++ {
			payload := d.json(events.DynamoDBEvent{Records: part})
			if try == 10 {
				d.giveUp(payload)
				break
			}
			out, err := []byte(nil), errors.New("signal: killed")
			if !d.dies {
				out, err = d.invoke(payload)
			}
			var re events.DynamoDBEventResponse
			switch {
			case err != nil:
				continue
			case json.Unmarshal(out, &re) != nil:
				d.Fatalf("the worker reports %s", out)
			case len(re.BatchItemFailures) == 0:
				part = nil
			default:
				at := slices.IndexFunc(part, func(r events.DynamoDBEventRecord) bool {
					return r.Change.SequenceNumber == re.BatchItemFailures[0].ItemIdentifier
				})
				part = part[max(at, 0):]
			}
		}
	}
}

// giveUp puts a batch into the bucket, like Lambda.
func (d *duty) giveUp(payload []byte) {
	if d.lost {
		d.metric("GivenUpLost", 1)
		return
	}
	d.bucket[fmt.Sprint("aws/lambda/", len(d.bucket))] = eventsource.Failure{Payload: payload}.Object()
	d.metric("GivenUp", 1)
}

// take reads the metrics that were written since the last call.
func (d *duty) take() {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.data.EMF(d.emf.Bytes()); err != nil {
		d.Fatal(err)
	}
	d.emf.Reset()
}

// crowd adds finished records to the table.
func (d *duty) crowd(many int) {
	d.Helper()
	d.is("one of many", d.send(d.app, "one", "pay"), 201)
	d.server.Locked(func(db *fakedynamo.DB) {
		db.Changed = nil
		defer func() { db.Changed = d.changed }()
		like := db.Items("records")[len(db.Items("records"))-1]
		pk := like["pk"].(*types.AttributeValueMemberS).Value
		for i := range many {
			it := maps.Clone(like)
			it["pk"] = &types.AttributeValueMemberS{Value: fmt.Sprintf("%s%07d", pk[:len(pk)-7], i)}
			if _, err := db.PutItem(d.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: it}); err != nil {
				d.Fatal(err)
			}
		}
		d.account.Table["ItemCount"] = many
	})
}

// records returns the unfinished records, those with undelivered jobs,
// and those that wait for people.
func (d *duty) records() (all []*store.Record) {
	d.Helper()
	in := &dynamodb.ScanInput{
		TableName: aws.String("records"), FilterExpression: aws.String("attribute_exists(keep) OR st = :open OR attribute_exists(waits)"),
		ExpressionAttributeValues: fakedynamo.Item{":open": &types.AttributeValueMemberS{Value: "open"}},
	}
	for more := true; more; more = in.ExclusiveStartKey != nil {
		out, err := d.server.Scan(d.Context(), in)
		if err != nil {
			d.Fatal(err)
		}
		for _, it := range out.Items {
			r, err := item.Read(it)
			if err != nil {
				d.Error(err)
			} else if r != nil {
				all = append(all, r)
			}
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
	slices.SortFunc(all, func(a, b *store.Record) int { return a.Created.Compare(b.Created) })
	return all
}

// logged reports whether the log has a line with this text.
func (d *duty) logged(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.logs.String(), line)
}

// call runs a command as a person types it.
func (d *duty) call(typed string, words []string) (code int, out string) {
	d.Helper()
	var stdout, stderr bytes.Buffer
	code = run(d.Context(), environment{
		stdin: strings.NewReader(typed), stdout: &stdout, stderr: &stderr, now: time.Now, http: d,
		getenv: func(name string) string { return map[string]string{"IDEM_TABLE": "records", "USER": "jane"}[name] },
	}, words)
	return code, stdout.String() + stderr.String()
}

// aws imitates the aws command, for the few lines of it on the pages.
func (d *duty) aws(words []string) error {
	switch strings.Join(words, " ") {
	case "s3 sync s3://failed-bucket failed":
		for name, object := range d.bucket {
			write(d.T, filepath.Join("failed", name), object)
		}
		return nil
	case "sqs start-message-move-task --source-arn arn:aws:sqs:us-east-1:123456789012:tickets-dead":
		d.queue.Redrive()
		return nil
	}
	return errors.New("no page has this line")
}
