//go:build unix

package killsweep_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/internal/tap"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/local/elasticmq"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/ids"
	"github.com/samekey/samekey/internal/local/lambdarun"
)

// background is a backstage whose background functions are processes of their
// own, with real queues. What they would read from the stream is kept, and the
// test delivers it.
type background struct {
	*backstage
	stream string
	queues *elasticmq.Server
	sqs    *sqs.Client
}

func openBackground(t *testing.T) *background {
	t.Helper()
	b, stream := newBackstage(t)
	server := elasticmq.Start(t)
	return &background{backstage: b, stream: stream, queues: server, sqs: server.Client()}
}

// build builds the bootstrap of a function.
func build(t *testing.T, pkg string) (bootstrap string) {
	t.Helper()
	bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdarun.BuildBootstrap(t.Context(), pkg, bootstrap); err != nil {
		t.Fatal(err)
	}
	return bootstrap
}

// collect keeps what the worker would get from the stream.
func (bg *background) collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	bg.startStream(t, bg.stream, c)
	return c
}

// collector keeps what a function would get from the stream, by the keys of the
// records.
type collector struct {
	mu      sync.Mutex
	records map[string][]json.RawMessage
}

// Invoke takes a batch from the stream.
func (c *collector) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var raw struct{ Records []json.RawMessage }
	var ev events.DynamoDBEvent
	if err := errors.Join(json.Unmarshal(payload, &raw), json.Unmarshal(payload, &ev)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		c.records = make(map[string][]json.RawMessage)
	}
	for i, r := range raw.Records {
		pk := ev.Records[i].Change.Keys["pk"].String()
		c.records[pk] = append(c.records[pk], r)
	}
	return []byte(`{"batchItemFailures":[]}`), nil
}

// of returns the event that has a record's changes from the nth on, and how many
// changes there are now; nil if there are no more.
func (c *collector) of(pk string, n int) (payload []byte, now int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	records := c.records[pk]
	if len(records) <= n {
		return nil, n, nil
	}
	payload, err = json.Marshal(map[string]any{"Records": records[n:]})
	return payload, len(records), err
}

// ended waits until the stream has shown the end of an operation.
func (c *collector) ended(t *testing.T, pk string) {
	t.Helper()
	for deadline := time.Now().Add(2 * patience); ; sleep(t.Context(), 50*time.Millisecond) {
		payload, _, err := c.of(pk, 0)
		var ev events.DynamoDBEvent
		if err == nil && payload != nil {
			err = json.Unmarshal(payload, &ev)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(ev.Records); n > 0 {
			if st := ev.Records[n-1].Change.NewImage["st"]; !st.IsNull() && st.String() == string(store.Done) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the stream doesn't show the end of the ride")
		}
	}
}

// newSQS makes a queue and starts what reads it. The queue is the run's own.
func (bg *background) newSQS(t *testing.T, name string, reader lambdarun.Invoker) (url string) {
	t.Helper()
	name += "-" + rand.Text()
	out, err := bg.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": strconv.Itoa(int(visibility / time.Second))},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := eventsource.Queue{
		Function: reader, API: bg.sqs, URL: aws.ToString(out.QueueUrl),
		ARN:                     "arn:aws:sqs:" + ids.Region + ":" + ids.AccountID + ":" + name,
		ReportBatchItemFailures: true,
	}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return aws.ToString(out.QueueUrl)
}

// program is the worker's.
const program = "github.com/samekey/samekey/cmd/samekey-worker"

// workerProcess is a process of the worker, and the calls it makes.
type workerProcess struct {
	tap      tap.Tap
	function *lambdarun.Function
}

// start starts the process, which calls what it calls through the tap. mails takes its
// jobs.
func (w *workerProcess) start(t *testing.T, bg *background, bootstrap string, mails lambdarun.Invoker, env ...string) {
	t.Helper()
	var err error
	tickets := bg.newSQS(t, "tickets", lazily(func() lambdarun.Invoker { return w.function }))
	w.function, err = lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "worker", Binary: bootstrap, Timeout: workTime, Overtime: 2 * patience, Stderr: t.Output(),
		Env: append([]string{
			"AWS_ENDPOINT_URL_DYNAMODB=" + through(t, &w.tap, bg.db.Endpoint, tap.DynamoDB),
			"AWS_ENDPOINT_URL_SQS=" + through(t, &w.tap, bg.queues.Endpoint, tap.DynamoDB),
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "IDEM_TABLE=" + bg.records,
			"SAMEKEY_TICKETS_URL=" + tickets, "SAMEKEY_SINKS=" + rides.ReceiptJob + "=sqs:" + bg.newSQS(t, "receipts", mails),
			"SAMEKEY_FUNCTIONS=rides", "SAMEKEY_NAMESPACES=" + rides.RidesNamespace, "SAMEKEY_GRACE=" + grace.String(),
		}, env...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.function.Close() })
}

// calls are the names of the calls so far.
func (w *workerProcess) calls() (names []string) {
	for _, c := range w.tap.Calls() {
		names = append(names, c.Name)
	}
	return names
}

// follow delivers the changes of a record as a stream does, each until it is
// taken, until the ride is at its end.
func (w *workerProcess) follow(ctx context.Context, c *collector, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for taken := 0; ; sleep(ctx, 50*time.Millisecond) {
		payload, now, err := c.of(r.pk, taken)
		if err == nil && payload != nil && w.takes(ctx, payload) {
			taken = now
		}
		if err == nil && taken > 0 {
			var rec *store.Record
			if rec, err = r.store.Load(ctx, r.pk); atEnd(rec) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// takes reports whether the process took all of an event.
func (w *workerProcess) takes(ctx context.Context, payload []byte) bool {
	out, err := w.function.Invoke(ctx, payload)
	var re events.DynamoDBEventResponse
	return err == nil && json.Unmarshal(out, &re) == nil && len(re.BatchItemFailures) == 0
}

// harmed runs act, which has the process do its work, harms the process at p, and
// has the work done again. It returns when the process that was woken, if it was,
// has ended.
func (w *workerProcess) harmed(t *testing.T, p point, act func() error) {
	t.Helper()
	held := w.tap.Hold(p.nth, nil, p.side)
	defer held.Drop()
	first := make(chan error, 1)
	go func() { first <- act() }()
	pid := reached(t, held, w.function)
	if p.harm == killed {
		kill(t, w.function, pid, held)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		return
	}
	signal(t, pid, syscall.SIGSTOP)
	if err := act(); err != nil {
		t.Fatal(err)
	}
	held.GoOn() // what was on its way arrives
	signal(t, pid, syscall.SIGCONT)
	select {
	case err := <-first:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the process that was woken doesn't come to its end")
	}
}

// TestKillSweepOfTheWorkersJobs harms the process of the Worker at every call it makes
// for a ride's receipt. The stream delivers the batch again until it is taken.
func TestKillSweepOfTheWorkersJobs(t *testing.T) { //nolint:tparallel // alone: its runs are as many processes as the machine takes
	bg := openBackground(t)
	bootstrap, stream, mails := build(t, program), bg.collect(t), lambdarun.InProcess(bg.receipts(t), patience)
	sweepOf(t, stream, []string{"SendMessageBatch", "UpdateItem"}, func(t *testing.T) (*run, *workerProcess) {
		t.Helper()
		r := newRun(t, bg.backstage, modes[0], retried)
		r.retry(t)
		r.named(t)
		stream.ended(t, r.pk) // a ticket for a ride under way would be a call as well
		w := &workerProcess{}
		w.start(t, bg, bootstrap, mails)
		return r, w
	})
}

// TestKillSweepOfTheWorkersTickets harms the process of the Worker at every call it
// makes for a ride whose process died after its claim and whose client has gone:
// when it puts the ticket into its queue, and when it has the ride resumed.
func TestKillSweepOfTheWorkersTickets(t *testing.T) { //nolint:tparallel // alone: its runs are as many processes as the machine takes
	bg := openBackground(t)
	bootstrap, stream, mails := build(t, program), bg.collect(t), lambdarun.InProcess(bg.receipts(t), patience)
	const resume = "/2015-03-31/functions/rides/invocations"
	sweepOf(t, stream, []string{"SendMessageBatch", resume}, func(t *testing.T) (*run, *workerProcess) {
		t.Helper()
		r := newRun(t, bg.backstage, modes[0], completes)
		held := r.tap.Hold(1, nil, tap.After)
		first := r.inBackground(t)
		kill(t, r.function, r.reached(t, held), held)
		<-first
		api := httptest.NewServer(invokeAPI{r.function})
		t.Cleanup(api.Close)
		w := &workerProcess{}
		w.start(t, bg, bootstrap, mails, "AWS_ENDPOINT_URL_LAMBDA="+through(t, &w.tap, api.URL, tap.Path))
		return r, w
	})
}

// sweepOf harms a process at each of calls, which are those that it makes
// unharmed: it is killed there, or stopped until its work was done by another.
func sweepOf(t *testing.T, stream *collector, calls []string, begin func(*testing.T) (*run, *workerProcess)) {
	t.Helper()
	t.Run("unharmed", func(t *testing.T) {
		t.Parallel()
		r, w := begin(t)
		for range 2 { // a stream may deliver all of it again
			if err := w.follow(t.Context(), stream, r); err != nil {
				t.Fatal(err)
			}
			r.finish(t)
		}
		if got := w.calls(); len(got) < len(calls) || !cmp.Equal(calls, got[:len(calls)]) {
			t.Errorf("the process calls %v, want %v first", got, calls)
		}
	})
	for _, p := range points(calls) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r, w := begin(t)
			w.harmed(t, p, func() error { return w.follow(t.Context(), stream, r) })
			r.finish(t)
		})
	}
}

// lazily is an invoker that is there when it is called.
type lazily func() lambdarun.Invoker

// Invoke calls the invoker.
func (f lazily) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f().Invoke(ctx, payload)
}

// invokeAPI is Lambda's Invoke API for one function.
type invokeAPI struct{ *lambdarun.Function }

// ServeHTTP invokes the function.
func (a invokeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	out, err := a.Invoke(context.WithoutCancel(r.Context()), payload)
	if failed, ok := errors.AsType[*lambdarun.FunctionError](err); ok {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		out, err = failed.Payload, nil
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(w, bytes.NewReader(out))
}
