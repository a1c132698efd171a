package stream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/worker"
)

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

// acknowledgements is how many calls a function takes for a record with a job.
func acknowledgements(f invoker) int {
	if _, ok := f.(*worker.Worker); ok {
		return 1
	}
	return 0
}

// Netting: what is finished within one batch makes no ticket, however much was
// written; what is open makes one.
func TestBatchIsNetted(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		tab := newTable(t)
		feed, queue := tab.tail(t), &tickets{}
		completer := newCompleter(tab, queue)
		for range 5 {
			run(t, idem.New(tab.Store, callertest.Anybody, resumable), staging)
		}
		if seq := handle(t, completer, feed.event(t)); seq != "" || len(queue.all()) != 0 {
			t.Errorf("finished requests: reported %q, queued %v", seq, queue.got)
		}

		feed.event(t) // a drain's acknowledgements
		req := tabletest.Post(tabletest.NewKey(), `{"secret":"of the client"}`)
		begin(t, tab, req, phase)
		ev := feed.event(t)
		if len(ev.Records) != 2 {
			t.Fatalf("%d records, want claim and phase", len(ev.Records))
		}
		tab.Transport.Reset()
		if seq := handle(t, completer, ev); seq != "" || tab.Transport.Total() != acknowledgements(completer) {
			t.Errorf("reported %q after calls of the table: %v", seq, tab.Transport.Calls())
		}
		rec, err := tab.Store.Load(t.Context(), pkOf(ev.Records[0]))
		if err != nil {
			t.Fatal(err)
		}
		want := []jobs.Ticket{jobs.TicketFor(rec).From(rec.Lease.Add(jobs.DefaultGrace))}
		if diff := cmp.Diff(want, queue.all(), inQueue); diff != "" || rec.Ver != 2 {
			t.Errorf("tickets (-want +got):\n%s", diff)
		}
		t.Run("split over two batches: its ticket waits already", func(t *testing.T) {
			handle(t, completer, events.DynamoDBEvent{Records: ev.Records[:1]})
			handle(t, completer, events.DynamoDBEvent{Records: ev.Records[1:]})
			if got := queue.all(); len(got) != 1 {
				t.Errorf("got %+v", got)
			}
		})
	})
}

// When a ticket is due, and what gets none.
func TestTickets(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		now := time.Now().Truncate(time.Millisecond)
		at := func(d time.Duration) map[string]any { return digits(now.Add(d).UnixMilli()) }
		const grace = 10 * time.Minute
		for name, test := range map[string]struct {
			image map[string]any
			due   time.Duration // from now; 0: no ticket
		}{
			"held: lease and grace":                    {open(map[string]any{"lease_ms": at(20 * time.Second)}), 20*time.Second + grace},
			"its lease is over: from now on":           {open(map[string]any{"lease_ms": at(-time.Hour)}), grace},
			"given back":                               {open(map[string]any{"lease_ms": digits(0)}), grace},
			"tried once":                               {open(map[string]any{"lease_ms": digits(0), "tries": digits(1)}), 2 * grace},
			"tried twice":                              {open(map[string]any{"lease_ms": digits(0), "tries": digits(2)}), 4 * grace},
			"tried often: an hour":                     {open(map[string]any{"lease_ms": digits(0), "tries": digits(9)}), time.Hour},
			"tried beyond counting":                    {open(map[string]any{"lease_ms": digits(0), "tries": digits(1 << 40)}), time.Hour},
			"held for a day: near enough":              {open(map[string]any{"lease_ms": at(24*time.Hour - time.Minute)}), 24*time.Hour - time.Minute + grace},
			"held for ever: its clock was wrong":       {open(map[string]any{"lease_ms": at(1000 * time.Hour)}), 0},
			"its request isn't stored":                 {open(map[string]any{"req": nil}), 0},
			"nothing is committed, and it will expire": {open(map[string]any{"keep": nil, "exp_s": digits(now.Unix() + 3600), "req": nil}), 0},
			"stuck":    {open(map[string]any{"st": text("stuck")}), 0},
			"finished": {open(map[string]any{"st": text("done"), "keep": text("jobs"), "resp": map[string]any{"M": map[string]any{"s": digits(200)}}, "until_s": digits(1)}), 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				queue := &tickets{}
				completer := newCompleter(nil, queue, func(o *stream.CompleterOptions) {
					o.Grace = grace
					o.Now = func() time.Time { return now }
				})
				rec := record(t, 1, "MODIFY", nil, test.image)
				rec.Change.ApproximateCreationDateTime.Time = now
				if seq := handle(t, completer, events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{rec}}); seq != "" {
					t.Errorf("reported %q", seq)
				}
				var want []jobs.Ticket
				if test.due != 0 {
					want = []jobs.Ticket{{PK: "v1##open", Operation: "i", Due: now.Add(test.due)}}
				}
				got := slices.DeleteFunc(queue.all(), func(t jobs.Ticket) bool { return t.Jobs }) // the drain's
				if diff := cmp.Diff(want, got, inQueue, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("tickets (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// The ticket of an operation is hidden until its lease is over. If people end the lease, the
// operation has one more, which is due after the grace; in a batch with other writes too.
func TestLeaseThatPeopleEndMakesATicket(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		for _, oneBatch := range []bool{false, true} {
			tab := newTable(t)
			feed, queue := tab.tail(t), &tickets{}
			completer := newCompleter(tab, queue)
			req, engine := tabletest.Post(tabletest.NewKey(), `1`), idem.New(tab.Store, callertest.Anybody, resumable)
			begin(t, tab, req, func(ctx context.Context) error {
				handle(t, completer, feed.event(t)) // the claim
				_, err := idem.Atomic(ctx, "booked", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				return err
			}, func(o *idem.Options) { o.Lease = 20 * time.Hour })
			if !oneBatch {
				handle(t, completer, feed.event(t))
			}
			if first := queue.all(); len(first) != 1 || time.Until(first[0].Due) < 19*time.Hour {
				t.Fatalf("queued %+v", first)
			}
			rec := tab.Only(t)
			if err := engine.EndLease(t.Context(), jobs.TicketFor(rec), "jane"); err != nil {
				t.Fatal(err)
			}
			handle(t, completer, feed.event(t))
			if got := queue.all(); len(got) != 1 || got[0].Operation != rec.ID || time.Until(got[0].Due) > jobs.DefaultGrace+time.Minute {
				t.Errorf("in one batch %t: queued %+v after a person ended the lease", oneBatch, got)
			}
			if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errPoison }); err == nil {
				t.Error("answered")
			}
			handle(t, completer, feed.event(t))
			if got := queue.all(); len(got) != 0 {
				t.Errorf("in one batch %t: queued %+v after a retry that failed", oneBatch, got)
			}
		}
	})
}

// The ticket of an operation ends as the operation becomes stuck. If people have it tried
// again, it has another; also if the stream is so late that one batch has both.
func TestRetryOfAStuckOperationMakesATicket(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		for _, oneBatch := range []bool{false, true} {
			tab := newTable(t)
			feed, queue := tab.tail(t), &tickets{}
			completer := newCompleter(tab, queue)
			engine := idem.New(tab.Store, callertest.Anybody, resumable)
			begin(t, tab, tabletest.Post(tabletest.NewKey(), `1`), phase)
			handle(t, completer, feed.event(t))
			if err := engine.EndLease(t.Context(), jobs.TicketFor(tab.Only(t)), "jane"); err != nil {
				t.Fatal(err)
			}
			handle(t, completer, feed.event(t))
			queue.all()
			if err := engine.MarkStuck(t.Context(), jobs.TicketFor(tab.Only(t)), "not completed in 2 tries"); err != nil {
				t.Fatal(err)
			}
			if !oneBatch {
				handle(t, completer, feed.event(t))
			}
			rec := tab.Only(t)
			if err := engine.Settle(t.Context(), rec.PK, idem.Settlement{Seen: jobs.TicketFor(rec), By: "jane"}); err != nil {
				t.Fatal(err)
			}
			handle(t, completer, feed.event(t))
			if got := queue.all(); len(got) != 1 || got[0].Operation != rec.ID {
				t.Errorf("in one batch %t: queued %+v", oneBatch, got)
			}
		}
	})
}

// A queue that refuses some: the first of them comes again, in the order of the
// stream and not of their keys.
func TestQueueFails(t *testing.T) {
	t.Parallel()
	bad := true
	queue := &tickets{fail: func(d jobs.Ticket) error {
		if bad && d.PK != "v1##c" {
			return errors.New("injected")
		}
		return nil
	}}
	var told []jobs.Ticket
	var log bytes.Buffer
	completer := stream.NewCompleter(queue, func(o *stream.CompleterOptions) {
		o.Hooks.Queued = func(_ context.Context, t jobs.Ticket) { told = append(told, t) }
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	var ev events.DynamoDBEvent
	for i, pk := range []string{"v1##c", "v1##b", "v1##a"} {
		ev.Records = append(ev.Records, record(t, i+1, "INSERT", nil, open(map[string]any{"pk": text(pk)})))
	}
	if seq := handle(t, completer, ev); seq != "2" || len(queue.all()) != 1 || len(told) != 1 {
		t.Errorf("reported %q, told %v; want the second", seq, told)
	}
	if seq := handle(t, completer, from(t, ev, "2")); seq != "2" {
		t.Errorf("reported %q", seq)
	}
	if n := strings.Count(log.String(), "takes ReportBatchItemFailures on the event source mapping"); n != 1 {
		t.Errorf("what a report takes is said %d times, want once:\n%s", n, &log)
	}
	bad = false
	if seq := handle(t, completer, from(t, ev, "2")); seq != "" || len(queue.all()) != 2 || len(told) != 3 {
		t.Errorf("the rerun reports %q, told %v", seq, told)
	}
}

// Drain and completer in one function: what fails in one of them is reported.
func TestStreamReportsTheFirstOfBoth(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{
		record(t, 1, "INSERT", nil, open(map[string]any{"pk": text("v1##a")})),
		record(t, 2, "INSERT", nil, staged(map[string]any{"pk": text("v1##b"), "req": nil})),
	}}
	for name, test := range map[string]struct {
		queue, sink error
		want        string
	}{
		"both work":      {nil, nil, ""},
		"the queue":      {errors.New("down"), nil, "1"},
		"the sink":       {nil, jobs.ErrSinkDown, "2"},
		"both are down":  {errors.New("down"), jobs.ErrSinkDown, "1"},
		"sink, unasked":  {nil, jobs.ErrHeldBack, "2"},
		"nothing at all": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			feed := stream.Both{
				Drain:     stream.NewDrain(tab.Store, &outbox{fail: func(jobs.Delivery) error { return test.sink }}),
				Completer: stream.NewCompleter(&tickets{fail: func(jobs.Ticket) error { return test.queue }}),
			}
			if seq := handle(t, feed, ev); seq != test.want {
				t.Errorf("reported %q, want %q", seq, test.want)
			}
		})
	}
}

// Bad input 34, A25: an operation whose record goes away unfinished is told, by
// whatever it went away.
func TestBadInput34UnfinishedRecordIsGone(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		plain := map[string]any{"keep": nil, "req": nil, "exp_s": digits(time.Now().Unix() + 86_400)} // claimed without Resumable
		with := func(more map[string]any) map[string]any {
			m := maps.Clone(plain)
			maps.Copy(m, more)
			return open(m)
		}
		freed := with(map[string]any{"lease_ms": digits(0), "exp_s": digits(time.Now().Unix() + 900), "keep": text("freed"), "ver": digits(2)})
		done := with(map[string]any{"st": text("done"), "lease_ms": digits(0), "resp": map[string]any{"M": map[string]any{"s": digits(200)}}})
		another := func(m map[string]any) map[string]any { m["id"] = text("another"); return m }
		ttl := &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
		for name, test := range map[string]struct {
			old, new map[string]any
			identity *events.DynamoDBUserIdentity
			told     int
		}{
			"expired, a plain request":                  {with(nil), nil, ttl, 1},
			"expired, after a failed try":               {with(map[string]any{"lease_ms": digits(0), "ver": digits(3)}), nil, ttl, 1},
			"deleted by somebody":                       {with(nil), nil, nil, 1},
			"deleted though it was kept":                {open(nil), nil, nil, 1},
			"deleted while stuck":                       {open(map[string]any{"st": text("stuck")}), nil, nil, 1},
			"replaced by another operation":             {with(nil), another(with(nil)), nil, 1},
			"replaced by another one, finished at once": {with(nil), another(with(map[string]any{"st": text("done"), "resp": map[string]any{"M": map[string]any{"s": digits(200)}}})), nil, 1},
			"expired, given back to its client":         {freed, nil, ttl, 0},
			"replaced, given back to its client":        {freed, another(with(nil)), nil, 0},
			"expired, finished":                         {done, nil, ttl, 0},
			"replaced, finished":                        {done, another(with(nil)), nil, 0},
			"taken over by the same operation":          {with(nil), with(map[string]any{"ver": digits(2), "owner": text("p")}), nil, 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var told []stream.Entry
				completer := newCompleter(nil, &tickets{}, func(o *stream.CompleterOptions) {
					o.Hooks.ExpiredOpen = func(_ context.Context, e stream.Entry) { told = append(told, e) }
				})
				event := "MODIFY"
				if test.new == nil {
					event = "REMOVE"
				}
				rec := record(t, 1, event, test.old, test.new)
				rec.UserIdentity = test.identity
				if seq := handle(t, completer, events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{rec}}); seq != "" {
					t.Errorf("reported %q", seq)
				}
				if len(told) != test.told {
					t.Fatalf("told %+v, want %d", told, test.told)
				}
				for _, e := range told {
					if e.Reason != "expired_open" || e.ID != "i" || e.Route != "POST /orders" || e.Record == "" || e.Run.IsZero() {
						t.Errorf("told %+v", e)
					}
				}
			})
		}
	})
}

// A25, with the records that an engine and a table really make: an unfinished
// operation is listed before its record goes, and told of when it does; what its
// phases wrote elsewhere stays.
func TestA25UnfinishedKeyIsReportedBeforeItGoes(t *testing.T) {
	t.Parallel()
	completers(t, func(t *testing.T, newCompleter makeCompleter) {
		for name, test := range map[string]struct {
			begin    func(t *testing.T, tab *table, rides string)
			identity *events.DynamoDBUserIdentity
			why      stream.Reason
			expires  bool
		}{
			"with nothing committed, at the end of its retention": {
				func(t *testing.T, tab *table, _ string) {
					t.Helper()
					tab.Abandon(t, tabletest.Post(tabletest.NewKey(), "{}"))
				},
				&events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}, stream.ReasonExpiring, true,
			},
			"with a ride: it never expires, somebody deletes it": {
				func(t *testing.T, tab *table, rides string) {
					t.Helper()
					begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) error {
						_, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (int, error) {
							tx.Write(dynamo.Put(rides, tabletest.ID("ride")))
							return 1, nil
						})
						return err
					})
				}, nil, stream.ReasonOpen, false,
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t)
				rides := tab.App(t)
				feed := tab.tail(t)
				test.begin(t, tab, rides)
				r := tab.Only(t)
				if r.Expires.IsZero() == test.expires {
					t.Errorf("expires %v", r.Expires)
				}
				if rep := look(t, tab, in(time.Hour)); rep.ByReason[test.why].Count != 1 || len(rep.Entries) != 1 || rep.Entries[0].ID != r.ID {
					t.Errorf("before its removal the sweep lists %+v", rep)
				}
				feed.event(t)
				if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
					TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
				}); err != nil {
					t.Fatal(err)
				}
				ev := feed.event(t)
				ev.Records[0].UserIdentity = test.identity // DynamoDB Local's stream doesn't say who
				var told []stream.Entry
				completer := newCompleter(tab, &tickets{}, func(o *stream.CompleterOptions) {
					o.Hooks.ExpiredOpen = func(_ context.Context, e stream.Entry) { told = append(told, e) }
				})
				if seq := handle(t, completer, ev); seq != "" || len(told) != 1 || told[0].ID != r.ID || told[0].PK != r.PK {
					t.Errorf("reported %q, told %+v", seq, told)
				}
				if _, found := tabletest.Read[map[string]string](t, tab.Table, rides, "ride"); found == test.expires {
					t.Error("the ride is gone")
				}
			})
		}
	})
}
