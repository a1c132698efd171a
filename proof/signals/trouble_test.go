package signals_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
)

// A night of trouble. API, worker and the function that mails are processes, with the
// Runtime API and with a table in DynamoDB Local; stream, queues and time are the test's.
// A sink is away for two hours, the worker for seven, the provider forgets what it was
// asked, a function is renamed without its worker's knowing, an operator errs twice, and
// four processes are killed: behind a charge, behind a job, behind a mail, and behind an
// operation that the worker has completed. In the morning each effect has happened once,
// nothing is open, no alarm is on, and no ticket was sent by who received one: Lambda would
// end such a loop.
func TestNightOfTrouble(t *testing.T) {
	t.Parallel()
	a := newShop(t)
	a.kills["job"], a.kills["mail"] = 1, 1
	for i := range 4 {
		a.is("an order", a.order(fmt.Sprint("calm-", i)), 201)
	}
	a.pass(time.Hour)

	a.down(true)
	for i := range 3 {
		a.is("an order without its mail", a.order(fmt.Sprint("unmailed-", i)), 201)
	}
	a.pass(2 * time.Hour)
	a.mailed(4)
	a.down(false)
	a.pass(3 * time.Hour)
	a.mailed(7)

	a.provider.Next(idemtest.Fate{LoseAnswer: true})
	a.is("an order whose charge nobody heard of", a.order("forgotten"), 500)
	a.kills["charge"] = 1
	a.is("an order whose process dies", a.order("renamed"), 500)
	a.away = true
	a.pass(7 * time.Hour)
	a.provider.Forget()
	a.deploy("orders-v2") // and the worker's list has the new name only
	a.startWorker("")
	a.away = false
	a.pass(2 * time.Hour)

	// The runbook's way out for a renamed function; the provider's memory of the other
	// order is over, so people ask it.
	a.startWorker("orders")
	a.pass(3 * time.Hour)
	forgotten, renamed := a.stuckOrder("forgotten"), a.stuckOrder("renamed")
	seen := state.TicketFor(forgotten)
	if err := a.people.Settle(t.Context(), forgotten.PK, idem.Settlement{Seen: seen, By: "joe", Result: json.RawMessage(`{}`)}); err == nil {
		t.Error("a result that the program can't read was taken")
	}
	seen.Ver--
	if err := a.people.Settle(t.Context(), forgotten.PK, idem.Settlement{Seen: seen, By: "joe", NotMade: true}); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("a decision about another state of the record: %v", err)
	}
	a.kills["completed"] = 1
	for _, r := range []*store.Record{forgotten, renamed} {
		a.settle(a.people, r.PK, idem.Settlement{Seen: state.TicketFor(r), Result: a.asked(string(r.Input.Body))})
	}
	a.pass(6 * time.Hour)

	if n := len(a.provider.Effects("/charges")); n != 9 {
		t.Errorf("%d charges for 9 orders", n)
	}
	a.mailed(9)
	for pk := range a.items() {
		if r, err := a.store.Load(t.Context(), pk); strings.HasPrefix(pk, "v1#") && (err != nil || r.State != store.Done || len(r.Jobs) > 0) {
			t.Errorf("left in the morning: %+v, %v", r, err)
		}
	}
	if n := len(a.tickets.all) + len(a.jobs.all); n != 0 || a.tickets.lineage != 1 {
		t.Errorf("%d messages wait; a ticket has the lineage %d, want 1: of the stream or a schedule", n, a.tickets.lineage)
	}
	if left := slices.Max(slices.Collect(maps.Values(a.kills))); left != 0 || a.killed != 4 {
		t.Errorf("%d processes were killed, want 4; left are %v", a.killed, a.kills)
	}
	a.alarms("DeliveryFailed", "NotMine", "WaitingUnknown", "SweepSilent", "WaitingSilent")
}

// shop is an application of processes, with queues and a stream of the test's.
type shop struct {
	*night
	binary, clockFile string
	services          *httptest.Server // which the processes call, besides the table
	credentials       aws.Credentials
	provider          *idemtest.Provider
	people            *idem.Engine
	tickets, jobs     *line
	before            map[string]map[string]types.AttributeValue // the table, as the stream has told it
	waiting           []events.DynamoDBEventRecord               // of the stream
	away              bool                                       // the worker

	mu                      sync.Mutex // of what the services read
	api, background, mailer *process
	sinkDown                bool
	kills                   map[string]int // processes to be killed, by the call behind which they die
	killed                  int
}

func newShop(t *testing.T) *shop {
	t.Helper()
	dir := t.TempDir()
	a := &shop{
		night: newNight(t), binary: dir + "/bootstrap", clockFile: dir + "/clock", provider: new(idemtest.Provider), kills: make(map[string]int),
	}
	a.counts, a.sweeps, a.each = false, false, func(*night) { a.step() }
	a.people = a.engine(func(o *idem.Options) { o.Namespace, o.Resumable = "orders", true })
	a.tickets, a.jobs = &line{clock: a.clock}, &line{clock: a.clock}
	if err := lambdarun.BuildBootstrap(t.Context(), "github.com/samekey/samekey/proof/signals/cmd/night", a.binary); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.credentials, err = a.client.Options().Credentials.Retrieve(t.Context()); err != nil {
		t.Fatal(err)
	}
	services := http.NewServeMux()
	services.HandleFunc("POST /sqs/", a.serveQueues)
	services.HandleFunc("POST /lambda/2015-03-31/functions/{name}/invocations", a.serveLambda)
	services.HandleFunc("POST /provider/", a.serveProvider)
	a.services = httptest.NewServer(services)
	t.Cleanup(a.services.Close)
	a.tick()
	a.deploy("orders")
	a.mailer = a.start("mails", time.Minute, "NIGHT_ROLE=mails")
	a.startWorker("")
	return a
}

// process is a function whose metrics' lines are there when its invocation ends.
type process struct {
	*lambdarun.Function
	name string
	out  *whole
}

// start starts a function.
func (a *shop) start(name string, timeout time.Duration, env ...string) *process {
	a.Helper()
	p := &process{name: name, out: &whole{to: a.emf}}
	base := a.services.URL
	var err error
	p.Function, err = lambdarun.Start(context.WithoutCancel(a.Context()), lambdarun.Config{
		Name: name, Binary: a.binary, Timeout: timeout, Stdout: p.out, Stderr: a.log,
		Env: append(env, "AWS_ACCESS_KEY_ID="+a.credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+a.credentials.SecretAccessKey, "IDEM_TABLE="+a.table,
			"AWS_ENDPOINT_URL_DYNAMODB="+aws.ToString(a.client.Options().BaseEndpoint), "AWS_ENDPOINT_URL_SQS="+base+"/sqs/", "AWS_ENDPOINT_URL_LAMBDA="+base+"/lambda",
			"PROVIDER_URL="+base+"/provider", "NIGHT_CLOCK="+a.clockFile),
	})
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() {
		if err := p.Close(); err != nil {
			a.Error(err)
		}
	})
	return p
}

// Invoke waits for the lines of the invocation: they come by a pipe of their own.
func (p *process) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	before := p.out.count()
	out, err := p.Function.Invoke(ctx, payload)
	for range 100 {
		if err != nil || p.out.count() > before {
			break
		}
		<-time.After(time.Millisecond)
	}
	return out, err
}

// deploy starts the API as a function of this name, in place of the one before.
func (a *shop) deploy(name string) {
	a.Helper()
	p := a.start(name, time.Minute)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.api = p
}

// startWorker starts the ready worker anew, with the API's function on its list, which has a
// former name or none.
func (a *shop) startWorker(former string) {
	a.Helper()
	const queue = "https://sqs.us-east-1.amazonaws.com/123456789012/"
	p := a.start("worker", 5*time.Minute, "NIGHT_ROLE=worker", "NIGHT_FORMER="+former, "SAMEKEY_APP=shop", "SAMEKEY_NAMESPACES=orders,mails",
		"SAMEKEY_TICKETS_URL="+queue+"tickets", "SAMEKEY_SINKS=mail=sqs:"+queue+"mails", "SAMEKEY_FUNCTIONS="+a.api.name, "SAMEKEY_SWEEP_PAGES=1000")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worker, a.background = p, p
}

// tick tells the processes the time.
func (a *shop) tick() {
	a.Helper()
	next := a.clockFile + ".next"
	if err := os.WriteFile(next, strconv.AppendInt(nil, a.clock.Now().UnixMilli(), 10), 0o600); err != nil {
		a.Fatal(err)
	}
	if err := os.Rename(next, a.clockFile); err != nil {
		a.Fatal(err)
	}
}

// down takes the queue of mails away, or brings it back.
func (a *shop) down(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sinkDown = is
}

// stuckOrder returns the record of an order that waits for people.
func (a *shop) stuckOrder(id string) *store.Record {
	a.Helper()
	return a.of(store.Stuck, func(r *store.Record) bool { return string(r.Input.Body) == id })
}

// asked is what the provider's page says of an order, as the program reads it.
func (a *shop) asked(id string) json.RawMessage {
	a.Helper()
	for _, e := range a.provider.Effects("/charges") {
		if string(e.Body) == id {
			return a.json(map[string]string{"id": e.ID})
		}
	}
	a.Fatalf("the provider knows nothing of %s", id)
	return nil
}

// order sends a request, and returns the status that its client hears.
func (a *shop) order(id string) int {
	a.Helper()
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /orders", RawPath: "/orders", Body: id, Headers: map[string]string{"idempotency-key": id},
	}
	ev.RequestContext.HTTP.Method = http.MethodPost
	raw, err := a.api.Invoke(a.Context(), a.json(ev))
	if err != nil {
		return 500
	}
	var re events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(raw, &re); err != nil {
		a.Fatal(err)
	}
	return min(re.StatusCode, 500)
}

// step is what happens in five minutes: the stream and the queues are read, and the
// schedules come. What a process was killed over comes again.
func (a *shop) step() {
	a.Helper()
	a.tick()
	now := a.items()
	for _, pk := range slices.Sorted(maps.Keys(now)) {
		switch old := a.before[pk]; {
		case !strings.HasPrefix(pk, "v1#"):
		case old == nil:
			a.waiting = append(a.waiting, a.change(nil, now[pk]))
		case !bytes.Equal(a.json(old), a.json(now[pk])):
			a.waiting = append(a.waiting, a.change(old, now[pk]))
		}
	}
	a.before = now
	a.jobs.deliver(a, a.mailer)
	if a.away {
		return
	}
	if len(a.waiting) > 0 {
		if _, err := a.run(a.Context(), a.background, events.DynamoDBEvent{Records: a.waiting}); err == nil {
			a.waiting = nil
		}
	}
	a.tickets.deliver(a, a.background)
	if _, err := a.run(a.Context(), a.background, map[string]string{"source": "aws.scheduler", "task": "count"}); err != nil {
		a.Error(err)
	}
	if a.clock.Now().Sub(a.begun)%time.Hour == 0 {
		a.sweep()
	}
}

// run invokes a function. An error is the test's if no process was killed meanwhile.
func (a *shop) run(ctx context.Context, p *process, ev any) ([]byte, error) {
	a.Helper()
	a.mu.Lock()
	killed := a.killed
	a.mu.Unlock()
	out, err := p.Invoke(ctx, a.json(ev))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && a.killed == killed {
		a.Errorf("%s: %v", p.name, err)
	}
	return out, err
}

// dies kills the processes of a function, if they are to die behind a call. Its caller then
// gives no answer.
func (a *shop) dies(call string, of func() *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kills[call] == 0 {
		return
	}
	a.kills[call]--
	a.killed++
	p := of()
	for _, sandbox := range p.Running() {
		if err := p.Kill(sandbox.PID); err != nil {
			a.Error(err)
		}
	}
	panic(http.ErrAbortHandler)
}

func (a *shop) serveProvider(rw http.ResponseWriter, r *http.Request) {
	http.StripPrefix("/provider", a.provider).ServeHTTP(&late{rw, func() {
		if strings.HasSuffix(r.URL.Path, "/mails") {
			a.dies("mail", func() *process { return a.mailer })
		} else {
			a.dies("charge", func() *process { return a.api })
		}
	}}, r)
}

// late does something before an answer is sent.
type late struct {
	http.ResponseWriter
	before func()
}

// Unwrap is for http.ResponseController.
func (l *late) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (l *late) WriteHeader(status int) {
	l.before()
	l.ResponseWriter.WriteHeader(status)
}

// serveLambda is Lambda's Invoke.
func (a *shop) serveLambda(rw http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	a.mu.Lock()
	p := a.api
	a.mu.Unlock()
	if r.PathValue("name") != p.name {
		rw.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
		http.Error(rw, "{}", http.StatusNotFound)
		return
	}
	out, err := p.Invoke(lambdarun.Traced(r.Context(), r.Header.Get("X-Amzn-Trace-Id")), payload)
	if failed, ok := errors.AsType[*lambdarun.FunctionError](err); ok {
		rw.Header().Set("X-Amz-Function-Error", "Unhandled")
		out, err = failed.Payload, nil
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	a.dies("completed", func() *process { return a.background })
	_, _ = rw.Write(out)
}

// serveQueues is SQS.
func (a *shop) serveQueues(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		QueueUrl, ReceiptHandle string
		VisibilityTimeout       int
		Entries                 []entry
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	q := a.tickets
	if strings.HasSuffix(in.QueueUrl, "/mails") {
		q = a.jobs
	}
	a.mu.Lock()
	down := a.sinkDown && q == a.jobs
	a.mu.Unlock()
	if down {
		http.Error(rw, "{}", http.StatusServiceUnavailable)
		return
	}
	var out any = struct{}{}
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "SendMessageBatch":
		out = q.send(in.Entries, r.Header.Get("X-Amzn-Trace-Id"))
	case "ChangeMessageVisibility":
		q.hide(in.ReceiptHandle, time.Duration(in.VisibilityTimeout)*time.Second)
	}
	if q == a.jobs {
		a.dies("job", func() *process { return a.background })
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(rw).Encode(out)
}

// mailed fails the test unless n orders have had one mail each.
func (a *shop) mailed(n int) {
	a.Helper()
	mails := make(map[string]int)
	for _, e := range a.provider.Effects("/mails") {
		mails[string(e.Body)]++
	}
	if len(mails) != n {
		a.Errorf("%d orders of %d had a mail", len(mails), n)
	}
	for order, n := range mails {
		if n != 1 {
			a.Errorf("%s: %d mails", order, n)
		}
	}
}

// alarms prints when each alarm began and ended, and fails the test if one is on at the
// end, or if one of rang never was.
func (a *shop) alarms(rang ...string) {
	a.Helper()
	all, err := alarmtest.Parse(deploy.Nested(), map[string]string{"App": "shop", "AlarmTopicArn": "topic"})
	if err != nil {
		a.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var since time.Time
		times := 0
		for _, change := range append(all[name].Over(a.data, a.begun, a.clock.Now()), alarmtest.Change{At: a.clock.Now()}) {
			if !since.IsZero() {
				a.Logf("%s: from %v to %v, for %v", name, since.Sub(a.begun), change.At.Sub(a.begun), change.At.Sub(since))
				since = time.Time{}
			}
			if change.State == alarmtest.Firing {
				since, times = change.At, times+1
			}
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
	all     []*message
	lineage int // of a message: how often the worker was invoked in its chain, at most
}

type message struct {
	id, body, trace string
	attributes      map[string]events.SQSMessageAttribute
	sent, visible   time.Time
	receives        int
}

// entry is a message of SendMessageBatch.
type entry struct {
	Id, MessageBody   string
	DelaySeconds      int
	MessageAttributes map[string]struct{ DataType, StringValue string }
}

func (q *line) send(entries []entry, trace string) (out struct {
	Successful []struct{ Id, MessageId, MD5OfMessageBody string }
},
) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lineage = max(q.lineage, lambdarun.Lineage(trace, "worker"))
	now := q.clock.Now()
	for _, e := range entries {
		q.n++
		m := &message{
			id: strconv.Itoa(q.n), body: e.MessageBody, trace: trace, attributes: make(map[string]events.SQSMessageAttribute),
			sent: now, visible: now.Add(time.Duration(e.DelaySeconds) * time.Second),
		}
		for name, v := range e.MessageAttributes {
			m.attributes[name] = events.SQSMessageAttribute{DataType: v.DataType, StringValue: aws.String(v.StringValue)}
		}
		q.all = append(q.all, m)
		sum := md5.Sum([]byte(e.MessageBody))
		out.Successful = append(out.Successful, struct{ Id, MessageId, MD5OfMessageBody string }{e.Id, m.id, hex.EncodeToString(sum[:])})
	}
	return out
}

func (q *line) hide(receipt string, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.all {
		if m.id == receipt {
			m.visible = q.clock.Now().Add(d)
		}
	}
}

// deliver hands the visible messages to a function, as Lambda's mapping does.
func (q *line) deliver(a *shop, to *process) {
	a.Helper()
	const hidden = 30 * time.Minute // the queue's visibility timeout
	var batch []events.SQSMessage
	eldest := ""
	q.mu.Lock()
	for _, m := range q.all {
		if now := q.clock.Now(); !m.visible.After(now) && len(batch) < 10 {
			m.visible = now.Add(hidden)
			m.receives++
			batch = append(batch, events.SQSMessage{
				MessageId: m.id, ReceiptHandle: m.id, Body: m.body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + to.name,
				MessageAttributes: m.attributes, Attributes: map[string]string{
					"SentTimestamp": fmt.Sprint(m.sent.UnixMilli()), "ApproximateReceiveCount": fmt.Sprint(m.receives),
				},
			})
			if lambdarun.Lineage(m.trace, to.name) > lambdarun.Lineage(eldest, to.name) {
				eldest = m.trace
			}
		}
	}
	q.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	out, err := a.run(lambdarun.Traced(a.Context(), eldest), to, events.SQSEvent{Records: batch})
	if err != nil {
		return // they come again
	}
	var re events.SQSEventResponse
	if err := json.Unmarshal(out, &re); err != nil {
		a.Error(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = slices.DeleteFunc(q.all, func(m *message) bool {
		came := slices.ContainsFunc(batch, func(b events.SQSMessage) bool { return b.MessageId == m.id })
		return came && !slices.ContainsFunc(re.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == m.id })
	})
}

// whole passes whole lines on.
type whole struct {
	to io.Writer

	mu    sync.Mutex
	rest  []byte
	lines int
}

// Write implements [io.Writer].
func (w *whole) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	w.lines += bytes.Count(w.rest[:end], []byte("\n"))
	_, err := w.to.Write(w.rest[:end])
	w.rest = slices.Clone(w.rest[end:])
	return len(p), err
}

func (w *whole) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}
