package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
)

// deliver hands the queue's messages to a worker, and fails the test unless those that wait on
// are reported as failed. It reports whether there were any.
func (m *mailbox) deliver(t testing.TB, w *worker.Worker) bool {
	t.Helper()
	payload := m.take()
	if payload == nil {
		return false
	}
	out, err := w.Invoke(t.Context(), payload)
	var re events.SQSEventResponse
	if err != nil || json.Unmarshal(out, &re) != nil || len(re.BatchItemFailures) != m.len() {
		t.Fatalf("the worker answers %s, %v for tickets, of which %d wait", out, err, m.len())
	}
	return true
}

// scheduled has a worker run its sweep.
func scheduled(t testing.TB, w *worker.Worker) (rep stream.Report) {
	t.Helper()
	out, err := w.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","detail-type":"Scheduled Event"}`))
	if err == nil {
		err = json.Unmarshal(out, &rep)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// fast is a sweep by a clock that is ahead, which doesn't wait.
func fast(ahead time.Duration) func(*stream.SweepOptions) {
	return func(o *stream.SweepOptions) {
		in(ahead)(o)
		o.PagesPerSecond = 1e6
	}
}

// ticketsIn is a clock of tickets that is ahead.
func ticketsIn(ahead time.Duration) func(*completer.Options) {
	return func(o *completer.Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } }
}

// hanging is a sink that never answers.
var hanging = jobs.SinkFunc(func(ctx context.Context, _ jobs.Delivery) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", jobs.ErrSinkDown, context.Cause(ctx))
})

// answer is a handler that completes a request with its own body.
func answer(_ context.Context, req *idem.Request) (idem.Response, error) {
	return idem.Response{Status: 201, Body: req.Body}, nil
}

// A poison job, a sink that hangs and a function that fails, at once and for ever:
// no batch comes again, and other jobs, completions and the sweep go on.
func TestWorkerGoesOnBesideWhatFails(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		queue, fine := &mailbox{}, &outbox{}
		function := func(name string) func(*idem.Options) { return func(o *idem.Options) { o.Function = name } }
		good := idem.New(tab.Store, callertest.Anybody, resumable, function("good"), tabletest.Ahead(time.Hour))
		var parked []stream.Entry
		asked := 0
		w := queue.worker(tab, func(o *worker.Options) {
			o.Share = 400 * time.Millisecond // three of them for a batch with its requests to the table
			o.Sink = jobs.Route{
				"dead": hanging, "fine": fine, "poison": &outbox{fail: func(jobs.Delivery) error { return errPoison }},
			}
			o.Functions = completer.Functions{
				"good": completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
					_, err := good.Resume(ctx, t, answer)
					return err
				}),
				"bad": completer.InProcess(func(context.Context, jobs.Ticket) error { asked++; return errors.New("the function fails") }),
			}
			o.Hooks.Parked = func(_ context.Context, e stream.Entry) { parked = append(parked, e) }
			o.Sweep = fast(2 * time.Hour)
			o.Tickets = func(o *completer.Options) {
				o.Concurrency = 1
				ticketsIn(time.Hour)(o)
			}
		})
		engine := idem.New(tab.Store, callertest.Anybody)
		run(t, engine, one("poison"))
		begin(t, tab, tabletest.Post(tabletest.NewKey(), `"bad"`), nothing, function("bad"))
		const rounds = 6
		for round := range rounds {
			run(t, engine, one("dead"))
			run(t, engine, one("fine"))
			req := tabletest.Post(tabletest.NewKey(), strconv.Itoa(round))
			begin(t, tab, req, nothing, function("good"))
			if seq := handle(t, w, tab.Event()); seq != "" {
				t.Fatalf("the stream is held up at %s", seq)
			}
			if n := len(fine.byID); n != round+1 {
				t.Errorf("%d jobs are delivered in round %d", n, round+1)
			}
			if !queue.deliver(t, w) {
				t.Fatal("there are no tickets")
			}
			tabletest.Replays(t, good, req, strconv.Itoa(round))
		}
		if len(parked) != 1 || parked[0].Kind != "poison" || parked[0].Tries != 5 {
			t.Errorf("parked %+v, want the poison job", parked)
		}
		if asked != rounds {
			t.Errorf("the function that fails was asked %d times, want %d: its own back-off alone", asked, rounds)
		}

		// Nobody has seen these in the stream.
		run(t, engine, one("fine"))
		missed := tabletest.Post(tabletest.NewKey(), `"missed"`)
		begin(t, tab, missed, nothing, function("good"))
		rep := scheduled(t, w)
		want := map[stream.Reason]int{stream.ReasonParked: 1, stream.ReasonUndelivered: rounds + 1, stream.ReasonOpen: 2}
		if diff := cmp.Diff(want, counts(&rep)); diff != "" || !rep.Complete || rep.Delivered != 1 || rep.Queued != 2 {
			t.Errorf("the sweep found (-want +got):\n%s and reports %+v", diff, rep)
		}
		queue.deliver(t, w)
		tabletest.Replays(t, good, missed, `"missed"`)
		for id, n := range fine.byID {
			if n != 1 {
				t.Errorf("job %s was delivered %d times", id, n)
			}
		}
		if len(fine.byID) != rounds+1 {
			t.Errorf("%d jobs are delivered", len(fine.byID))
		}
	})
}

// The other way round: a queue that takes no ticket holds up no job. The sweep finds
// what was left.
func TestWorkerGoesOnWithoutItsQueue(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		queue, fine := &mailbox{fail: errInjected}, &outbox{}
		later := &outbox{fail: func(jobs.Delivery) error { return jobs.ErrSinkDown }}
		engine := idem.New(tab.Store, callertest.Anybody, resumable, tabletest.Ahead(time.Hour))
		w := queue.worker(tab, func(o *worker.Options) {
			o.Sink = jobs.Route{"fine": fine, "later": later}
			o.Functions = completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
				_, err := engine.Resume(ctx, t, answer)
				return err
			})
			o.Sweep, o.Tickets = fast(2*time.Hour), ticketsIn(time.Hour)
		})
		req := tabletest.Post(tabletest.NewKey(), `1`)
		begin(t, tab, req, nothing)
		run(t, engine, one("later"))
		run(t, engine, one("fine"))
		if seq := handle(t, w, tab.Event()); seq != "" {
			t.Errorf("the stream is held up at %s", seq)
		}
		if diff := cmp.Diff([]string{"fine"}, fine.kinds()); diff != "" || queue.len() != 0 {
			t.Errorf("delivered (-want +got):\n%s; %d tickets", diff, queue.len())
		}
		queue.fail, later.fail = nil, nil
		if rep := scheduled(t, w); rep.Delivered != 1 || rep.Queued != 1 {
			t.Errorf("the sweep reports %+v", rep)
		}
		queue.deliver(t, w)
		tabletest.Replays(t, engine, req, `1`)
		if len(later.byID) != 1 {
			t.Errorf("delivered %v", later.byID)
		}
	})
}

// stages stages a job in a phase of its own.
func stages(ctx context.Context, kind string) error {
	_, err := idem.Atomic(ctx, kind, func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Stage(idem.NewJob(kind, 1))
		return 1, nil
	})
	return err
}

// The jobs of an operation keep their order, also if the first can't be delivered
// while the others are staged. A job for another sink doesn't wait.
func TestJobsThatWereDelayedKeepTheirOrder(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, queue, other := tab.tail(t), &mailbox{}, &outbox{}
	down := true
	out := &outbox{fail: func(d jobs.Delivery) error {
		if down && d.Kind == "first" {
			return jobs.ErrSinkDown
		}
		return nil
	}}
	var delayed []jobs.Ticket
	w := queue.worker(tab, func(o *worker.Options) {
		o.Sink = jobs.Route{"first": out, "second": out, "other": other}
		o.Hooks.Delayed = func(_ context.Context, t jobs.Ticket) { delayed = append(delayed, t) }
		o.Tickets = func(o *completer.Options) { o.Concurrency = 1 }
	})
	var pk string
	run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		var errs []error
		for _, kind := range []string{"first", "second", "other"} {
			errs = append(errs, stages(ctx, kind))
			ev := feed.event(t)
			pk = pkOf(ev.Records[0])
			if seq := handle(t, w, ev); seq != "" {
				t.Errorf("%s: the stream is held up at %s", kind, seq)
			}
		}
		return idem.Response{Status: 201}, errors.Join(errs...)
	})
	if seq := handle(t, w, feed.event(t)); seq != "" || len(out.kinds()) != 0 || len(other.kinds()) != 1 || len(delayed) != 2 {
		t.Errorf("reported %q, delivered %v and %v, delayed %v", seq, out.kinds(), other.kinds(), delayed)
	} else if later := delayed[1].Due.Sub(delayed[0].Due); later < time.Minute {
		t.Errorf("the ticket of the job that was held back is due only %v after that of the first, which delivers both", later)
	}
	queue.deliver(t, w)
	if len(out.kinds()) != 0 || queue.len() != 2 {
		t.Errorf("delivered %v, %d tickets wait: the sink is down", out.kinds(), queue.len())
	}
	down = false
	queue.deliver(t, w)
	if diff := cmp.Diff([]string{"first", "second"}, out.kinds()); diff != "" || queue.len() != 0 {
		t.Errorf("delivered (-want +got):\n%s; %d tickets wait", diff, queue.len())
	}
	tab.letGo(t, pk)
}

// A job whose predecessors were delivered since its image was made goes on at once:
// for nothing if this process delivered them, for one read otherwise. If that read
// fails, the job is delayed.
func TestJobBehindThoseThatWereDelivered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		same    bool
		broken  bool // the record, by hand
		fault   dynamotest.Fault
		calls   calls
		delayed int
	}{
		"by this process":    {true, false, nil, calls{"UpdateItem": 2}, 0}, // it acknowledges, and lets go of the record
		"by another process": {false, false, nil, calls{"GetItem": 1, "UpdateItem": 2}, 0},
		"by another, and the record can't be read any more": {false, true, nil, calls{"GetItem": 1, "UpdateItem": 1}, 0},
		"by another, which nobody can see":                  {false, false, dynamotest.AnswerError(400, "AccessDeniedException", "injected"), calls{"GetItem": 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			feed, queue, out := tab.tail(t), &mailbox{}, &outbox{}
			open := func() *worker.Worker { return queue.worker(tab, func(o *worker.Options) { o.Sink = out }) }
			w := open()
			run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, errors.Join(stages(ctx, "first"), stages(ctx, "second"))
			})
			ev := feed.event(t)
			second := slices.IndexFunc(ev.Records, func(r events.DynamoDBEventRecord) bool {
				staged, any := r.Change.NewImage["jobs"]
				return any && len(staged.Map()) == 2
			})
			handle(t, w, events.DynamoDBEvent{Records: ev.Records[:second]})
			if !test.same {
				w = open()
			}
			if test.broken {
				tab.edit(t, pkOf(ev.Records[second]), "SET resp = :x", map[string]types.AttributeValue{":x": tabletest.Str("broken by hand")})
			}
			tab.Transport.Reset()
			if test.fault != nil {
				tab.Transport.Fault = tabletest.On("GetItem", 1, test.fault)
			}
			if seq := handle(t, w, events.DynamoDBEvent{Records: ev.Records[second : second+1]}); seq != "" || queue.len() != test.delayed {
				t.Errorf("reported %q, %d tickets, want %d", seq, queue.len(), test.delayed)
			}
			if diff := cmp.Diff(test.calls, tab.Transport.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			tab.Transport.Fault = nil
			queue.deliver(t, w)
			if diff := cmp.Diff([]string{"first", "second"}, out.kinds()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})
	}
}

// Tickets for jobs that nobody has to deliver any more end.
func TestTicketsForJobsThatAreOver(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	out := &outbox{}
	drain := stream.NewDrain(tab.Store, out)
	r := tab.finished(t, nil, "0.0")
	parked := tab.finished(t, func(r *store.Record) {
		r.Jobs["0.0"] = idem.Job{Kind: "poison", Args: []byte("1"), Tries: 5, Failed: "bad"}
	})
	for name, ticket := range map[string]jobs.Ticket{
		"no record":           {PK: "v1##none", Operation: "i", Jobs: true},
		"another operation's": {PK: r.PK, Operation: "another", Jobs: true},
		"parked":              {PK: parked.PK, Operation: parked.ID, Jobs: true},
	} {
		if err := drain.Retry(t.Context(), ticket); err != nil || len(out.kinds()) != 0 {
			t.Errorf("%s: %v, delivered %v", name, err, out.kinds())
		}
	}
	if err := drain.Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err != nil || len(out.kinds()) != 1 {
		t.Errorf("%v, delivered %v", err, out.kinds())
	}
	tab.letGo(t, r.PK)
	unsettled := tab.finished(t, nil)
	if err := drain.Retry(t.Context(), jobs.Ticket{PK: unsettled.PK, Operation: unsettled.ID, Jobs: true}); err != nil {
		t.Error(err)
	}
	tab.letGo(t, unsettled.PK)
	tab.Transport.Reset()
	tab.Transport.Fault = tabletest.On("GetItem", 1, dynamotest.AnswerError(400, "AccessDeniedException", "injected"))
	if err := drain.Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err == nil {
		t.Error("a record that can't be read ends its ticket")
	}
}
