package queues_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
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
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/prove"
)

const (
	timeout = 10 * time.Second
	// hidden is for how long a message is hidden that nobody brings back: longer than
	// the lease of what a process has left, and the start of another process.
	hidden = 24 * time.Second
)

const (
	groups  = 50
	loadEnv = "QUEUETEST_LOAD"
	// receives is more than a sound message can lose to kills and to its neighbours.
	receives = 5
	// loadPatience ends a test that fails.
	loadPatience = 20 * time.Minute
)

// few is how many messages a queue gets where nothing is measured.
var few = prove.Some(60, 300)

// Under load each order is charged once, in its group's order, and what is in the
// dead-letter queue was tried at each delivery: with 5 % of the messages failing once,
// 2 % hanging once, a third of them failing until they are redriven, and four to ten
// processes killed. QUEUETEST_LOAD is how many messages each of the queues gets.
func TestLoad(t *testing.T) { //nolint:tparallel // one after the other where it is measured
	t.Parallel()
	n := few
	if s := os.Getenv(loadEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	db, queues := dynamotest.Start(t), elasticmq.Start(t)
	for _, tc := range []struct {
		name  string
		batch int
	}{{"load", 10}, {"load.fifo", 10}, {"load-one.fifo", 1}} {
		t.Run(tc.name, func(t *testing.T) {
			if n == few {
				t.Parallel() // it isn't measured, and mostly waits
			}
			begun := time.Now()
			l := newLoad(t, db, queues.Client(), tc.name, n, tc.batch)
			l.send(t, l.url, "", l.orders)
			l.start(t, l.url, tc.name)
			l.until(t, "all are done or dead", func() bool { return l.left(t, l.url) == 0 })
			l.redrive(t)
			l.until(t, "all are done", func() bool { return l.left(t, l.url)+l.left(t, l.deadURL) == 0 })
			l.check(t)
			l.print(t, time.Since(begun))
		})
	}
}

// load is a queue of orders, with the world around it.
type load struct {
	*testQueue
	fifo   bool
	batch  int
	orders []order

	mu        sync.Mutex
	fates     map[string]string            // what becomes of an order's first try
	healed    bool                         // the sick are well
	tried     map[delivery]bool            // whose handler has begun
	untried   map[delivery]string          // why not
	failed    map[delivery]string          // why
	lost      map[delivery]string          // deliveries whose process died
	keys      map[string]map[string]string // of an order's charges
	sequence  map[int][]int                // a group's charges, in order
	woke      int
	dead      map[string]int // how often each dead letter was delivered, by message
	deadOf    map[int]int    // dead letters of a group
	killed    int
	kills     int
	nextKill  int
	begun     int
	delivered int
	killQueue chan struct{}
}

// delivery is a message and its receive count.
type delivery struct {
	message string
	receive string
}

func newLoad(t *testing.T, db *dynamotest.DB, c *sqs.Client, name string, n, batch int) *load {
	t.Helper()
	l := &load{
		fates: map[string]string{}, tried: map[delivery]bool{}, untried: map[delivery]string{}, failed: map[delivery]string{}, lost: map[delivery]string{},
		keys: map[string]map[string]string{}, sequence: map[int][]int{}, dead: map[string]int{}, deadOf: map[int]int{}, kills: min(10, n/25), killQueue: make(chan struct{}, 10),
	}
	srv := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(srv.Close)
	l.testQueue = makeQueue(t, db, c, name, "orders", receives, timeout, hidden, "WORLD="+srv.URL)
	l.batch, l.fifo = batch, strings.HasSuffix(name, ".fifo")
	// The same load each time.
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for i := range n {
		o := order{ID: fmt.Sprint("order-", i), Group: i % groups, Seq: i / groups}
		o.Sick = o.Group%3 == 1 // groups as a whole: the others are healthy
		if !l.fifo {
			o.Sick = i%3 == 1
		}
		switch chance := random.IntN(200); {
		case chance < 5:
			l.fates[o.ID] = failsBefore
		case chance < 10:
			l.fates[o.ID] = failsAfter
		case chance < 14:
			l.fates[o.ID] = []string{hangsBefore, hangsWithin, ignores, ignoresAfter}[chance-10]
		}
		l.orders = append(l.orders, o)
	}
	go l.killer(t)
	return l
}

// serve is the world.
func (l *load) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	d := delivery{q.Get("message"), q.Get("receive")}
	var o order
	_ = json.Unmarshal([]byte(q.Get("order")), &o)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.URL.Path {
	case "/begin":
		l.tried[d] = true
		if l.begun++; l.begun >= (l.nextKill+1)*len(l.orders)/(l.kills+1) && l.nextKill < l.kills {
			l.nextKill++
			l.killQueue <- struct{}{}
		}
		_, _ = io.WriteString(w, l.fate(o))
	case "/charge":
		if l.keys[o.ID] == nil {
			l.keys[o.ID] = map[string]string{}
			l.sequence[o.Group] = append(l.sequence[o.Group], o.Seq)
		}
		l.keys[o.ID][q.Get("detail")] = d.message
	case "/untried":
		l.untried[d] = q.Get("detail")
	case "/failed":
		l.failed[d] = q.Get("detail")
	case "/woke":
		l.woke++
	}
}

// fate is what becomes of a try. The caller holds mu.
func (l *load) fate(o order) string {
	if fate := l.fates[o.ID]; fate != "" {
		delete(l.fates, o.ID)
		return fate
	}
	if o.Sick && !l.healed {
		return failsAfter
	}
	return works
}

// killer kills a process at work whenever it is told to.
func (l *load) killer(t *testing.T) {
	for range l.killQueue {
		for t.Context().Err() == nil {
			if at := l.fn.Running(); len(at) > 0 && l.fn.Kill(at[len(at)-1].PID) == nil {
				break
			}
		}
		l.mu.Lock()
		l.killed++
		l.mu.Unlock()
	}
}

func (l *load) send(t *testing.T, url, prefix string, orders []order) {
	t.Helper()
	for some := range slices.Chunk(orders, 10) {
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(url)}
		for i, o := range some {
			body, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))}
			if l.fifo {
				e.MessageGroupId, e.MessageDeduplicationId = aws.String(strconv.Itoa(o.Group)), aws.String(prefix+o.ID)
			}
			in.Entries = append(in.Entries, e)
		}
		if out, err := l.client.SendMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
			t.Fatal(out, err)
		}
	}
}

// start maps the queue at url to the function.
func (l *load) start(t *testing.T, url, name string) {
	t.Helper()
	m, err := eventsource.Queue{
		Function: l, API: l.client, URL: url, ARN: queueARN(name), BatchSize: l.batch, MaximumConcurrency: 3, ReportBatchItemFailures: true,
		Hooks: eventsource.Hooks{Error: func(err error) { t.Errorf("told %v", err) }},
	}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
}

// Invoke is the function's, and notes which deliveries its processes took along.
func (l *load) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	out, err := l.fn.Invoke(ctx, payload)
	var ev events.SQSEvent
	if jerr := json.Unmarshal(payload, &ev); jerr != nil {
		return nil, jerr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delivered += len(ev.Records)
	if fe, ok := errors.AsType[*lambdarun.FunctionError](err); ok && (fe.Type == lambdarun.TypeExited || fe.Type == lambdarun.TypeTimedOut) {
		for _, m := range ev.Records {
			l.lost[delivery{m.MessageId, m.Attributes["ApproximateReceiveCount"]}] = fe.Type
		}
	}
	return out, err
}

// redrive brings the dead letters back when their cause is gone: one half to the
// queue, as new messages, the other half by a function that reads them where they are.
func (l *load) redrive(t *testing.T) {
	t.Helper()
	letters := l.left(t, l.deadURL)
	l.mu.Lock()
	l.healed = true
	l.mu.Unlock()
	for moved := 0; moved < letters/2; {
		out, err := l.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(l.deadURL), MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			var o order
			if err := json.Unmarshal([]byte(*m.Body), &o); err != nil {
				t.Fatal(err)
			}
			l.send(t, l.url, "again-", []order{o})
			if _, err := l.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(l.deadURL), ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
			l.note(*m.MessageId, o)
			moved++
		}
	}
	l.start(t, l.deadURL, l.deadName)
}

func (l *load) note(message string, o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[message] = receives
	l.deadOf[o.Group]++
}

func (l *load) charged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

// left counts what is in a queue, hidden or not.
func (l *load) left(t *testing.T, url string) (n int) {
	t.Helper()
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
	out, err := l.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: names})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		one, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

func (l *load) until(t *testing.T, what string, there func() bool) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	end := time.After(loadPatience)
	for !there() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not reached: %s; %d of %d charged, %d in the queue, %d dead", what, l.charged(), len(l.orders), l.left(t, l.url), l.left(t, l.deadURL))
		}
	}
}

func (l *load) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.orders {
		if n := len(l.keys[o.ID]); n != 1 {
			t.Errorf("%s was charged under %d keys, by messages %q", o.ID, n, slices.Collect(maps.Values(l.keys[o.ID])))
		}
	}
	for g, seqs := range l.sequence {
		if healthy := g%3 != 1; l.fifo && healthy && !slices.IsSorted(seqs) {
			t.Errorf("group %d was charged in the order %v, %d of it were dead", g, seqs, l.deadOf[g])
		}
	}
	for message, deliveries := range l.dead {
		for n := 1; n <= deliveries; n++ {
			d := delivery{message, strconv.Itoa(n)}
			heldBack := l.batch > 1 && l.fifo && l.untried[d] == "held back"
			unheard := strings.Contains(l.failed[d], "store is unavailable") // its claim got no answer in its time
			if !l.tried[d] && l.lost[d] == "" && !heldBack && !unheard {
				t.Errorf("dead letter %s was not tried at delivery %d: %q, %q", message, n, l.untried[d], l.failed[d])
			}
		}
	}
	if l.woke != 0 {
		t.Errorf("%d handlers woke up after their report", l.woke)
	}
	if l.killed != l.kills || len(l.dead) < len(l.orders)/8 {
		t.Errorf("%d processes were killed, %d dead letters were moved back", l.killed, len(l.dead))
	}
}

func (l *load) print(t *testing.T, took time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d orders, %d deliveries, %d tries, %d failures reported, %d deliveries not tried, %d lost with %d killed processes, %d dead letters moved back: %v",
		len(l.orders), l.delivered, len(l.tried), len(l.failed), len(l.untried), len(l.lost), l.killed, len(l.dead), took.Round(time.Second))
}
