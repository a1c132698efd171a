package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/base/itemsize"
	layout "github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/seal"
)

// A poison job, a sink that hangs and a function that fails, at once and for ever:
// no batch comes again, and other jobs, completions and the sweep go on.
func TestWorkerGoesOnBesideWhatFails(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		feed := tab.tail(t)
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
			if seq := handle(t, w, feed.event(t)); seq != "" {
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
		want := map[state.Reason]int{state.ReasonParked: 1, state.ReasonUndelivered: rounds + 1, state.ReasonOpen: 2}
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
		feed := tab.tail(t)
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
		if seq := handle(t, w, feed.event(t)); seq != "" {
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

// figures are what a way of deployment takes for some requests.
type figures struct {
	Readers     int // of the stream
	Invocations int // by the stream
	Tickets     int // invocations by the queue
	Records     int // of the stream that functions get
	Calls       calls
}

// Ten requests with a job each in one batch, where all is well, and where the first job is
// refused once: a drain and a completer that read the stream apart, beside the worker.
func TestFiguresOfTheWorker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusals int
		one      bool // worker
		want     figures
	}{
		"drain and completer, all is well": {0, false, figures{2, 2, 0, 40, calls{"UpdateItem": 10}}},
		"a worker, all is well":            {0, true, figures{1, 1, 0, 20, calls{"UpdateItem": 10}}},
		"drain and completer, a refusal":   {1, false, figures{2, 3, 0, 59, calls{"UpdateItem": 20}}},
		"a worker, a refusal":              {1, true, figures{1, 1, 1, 20, calls{"GetItem": 1, "UpdateItem": 11}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			feed, queue, left := tab.tail(t), &mailbox{}, test.refusals
			out := &outbox{fail: func(d jobs.Delivery) error {
				if d.Kind == "job 0" && left > 0 {
					left--
					return errPoison
				}
				return nil
			}}
			for i := range 10 {
				run(t, idem.New(tab.Store, callertest.Anybody), one(fmt.Sprint("job ", i)))
			}
			ev := feed.event(t)
			readers := []invoker{stream.NewDrain(tab.Store, out), stream.NewCompleter(completer.NewQueue(queue, "https://tickets"))}
			w := queue.worker(tab, func(o *worker.Options) { o.Sink = out })
			if test.one {
				readers = []invoker{w}
			}
			tab.Transport.Reset()
			got := figures{Readers: len(readers)}
			for _, r := range readers {
				for batch, seq := ev, "-"; seq != ""; batch = from(t, batch, seq) {
					got.Invocations++
					got.Records += len(batch.Records)
					if seq = handle(t, r, batch); seq == "" {
						break
					}
				}
			}
			for queue.deliver(t, w) {
				got.Tickets++
			}
			got.Calls = tab.Transport.Calls()
			if diff := cmp.Diff(test.want, got); diff != "" || len(out.byID) != 10 {
				t.Errorf("figures (-want +got):\n%s; %d jobs are delivered", diff, len(out.byID))
			}
		})
	}
}

// counted is a provider that counts its calls. pad makes its wrapped data keys longer.
type counted struct {
	seal.Provider
	pad int

	mu                sync.Mutex
	generated, opened int
}

func (k *counted) Generate(ctx context.Context) (seal.DataKey, error) {
	k.mu.Lock()
	k.generated++
	k.mu.Unlock()
	data, err := k.Provider.Generate(ctx)
	data.Wrapped = append(data.Wrapped, make([]byte, k.pad)...)
	return data, err
}

func (k *counted) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	k.mu.Lock()
	k.opened++
	k.mu.Unlock()
	return k.Provider.Open(ctx, id, wrapped[:len(wrapped)-k.pad])
}

// keys are the names of a provider's key, and how much longer its wrapped data keys are
// than those of [seal.NewStatic].
type keys struct {
	name string
	pad  int
}

func (k keys) provider(t testing.TB) *counted {
	t.Helper()
	p, err := seal.NewStatic(k.name, map[string][]byte{k.name: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Provider: p, pad: k.pad}
}

var (
	staticKeys = keys{"2026-11", 0}
	// Those of AWS KMS have 184 bytes.
	kmsKeys = keys{"arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", 184 - 60}
)

// life is a table with the processes of an application, and what each step of its
// records' life has cost.
type life struct {
	*testing.T
	tab       *table
	costs     []string
	providers map[string]*counted

	mu    sync.Mutex
	calls []string
}

// process is the store of a process of its own.
func (l *life) process(name string, sealed *keys) *dynamo.Store {
	l.Helper()
	s, err := dynamo.New(l.tab.Client, l.tab.Name, func(o *dynamo.Options) {
		if sealed != nil {
			l.providers[name] = sealed.provider(l)
			o.Seal = seal.New(l.providers[name])
		}
		o.Hooks.Called = func(_ context.Context, c store.Call) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.calls = append(l.calls, c.Op)
		}
	})
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// cost ends a step: its calls, which may come in any order, and the units of all items then.
func (l *life) cost(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.calls)
	units := 0
	for _, it := range l.tab.Items(l) {
		units += (itemsize.Of(it) + 1023) / 1024
	}
	l.costs = append(l.costs, fmt.Sprintf("%s: %s; %d units", step, strings.Join(l.calls, ", "), units))
	l.calls = nil
}

// do asks an engine, and checks the status.
func (l *life) do(e *idem.Engine, req idem.Request, status int, fn func(context.Context) (idem.Response, error)) {
	l.Helper()
	if re, err := e.Do(l.Context(), req, fn); re.Status != status {
		l.Errorf("the answer is %d, %v; want %d", re.Status, err, status)
	}
}

// paid books, stages a job and charges; the charge's error is fails. size is of the
// answer.
func paid(fails error, size int, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "book", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("mail", "zoë"))
			return "booked", nil
		}); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) { return "charged", fails }, opts...)
		return idem.Response{Status: 201, Body: []byte(noise(size))}, err
	}
}

// live plays the whole life of records: claim, phases, finish, replay, companions, jobs,
// drain, completer and settlement.
func live(t *testing.T, sealed *keys) *life {
	t.Helper()
	l := &life{T: t, tab: newTable(t), providers: make(map[string]*counted)}
	feed, box, queue := l.tab.tail(t), &outbox{}, &mailbox{}
	down := errors.New("down")
	options := func(o *idem.Options) { o.Resumable, o.Function, o.Lease = true, "rides", tabletest.Lease }
	one, two := idem.New(l.process("function one", sealed), callertest.Anybody, options), idem.New(l.process("function two", sealed), callertest.Anybody, options)
	desk := idem.New(l.process("desk", sealed), callertest.Anybody)
	w := worker.New(l.tab.Client, l.process("worker", sealed), completer.NewQueue(queue, "https://tickets"), func(o *worker.Options) {
		o.Sink = box
		o.Functions = completer.InProcess(func(ctx context.Context, ticket jobs.Ticket) error {
			_, err := two.Resume(ctx, ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return paid(nil, 100)(ctx) })
			return err
		})
		o.Sweep = func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }
	})
	request := func(name string) idem.Request {
		return idem.Request{Key: name, Identity: idem.Identity{Kind: "jwt", Subject: "zoë"}, Method: "POST", Path: "/rides", Route: "POST /rides", Body: []byte(`{"amount":2000}`)}
	}

	l.do(one, request("small"), 201, paid(nil, 100))
	l.cost("claim, phases, finish")
	l.do(one, request("small"), 201, nil)
	l.cost("a replay")
	l.do(two, request("small"), 201, nil)
	l.cost("a replay by another process")
	l.do(one, request("large"), 201, paid(nil, 20<<10))
	l.cost("an answer in a companion")
	l.do(two, request("large"), 201, nil)
	l.cost("its replay")
	l.do(one, request("abandoned"), 0, paid(down, 100))
	l.cost("a failed attempt")
	l.do(one, request("retried"), 0, paid(down, 100))
	l.do(two, request("retried"), 201, paid(nil, 100))
	l.cost("a failed attempt, and a retry that takes over")
	l.do(one, request("stuck"), 0, paid(down, 100, idem.NotIdempotent()))
	l.cost("a stuck operation")
	stuck := l.tab.stuck(t)
	if err := desk.Settle(t.Context(), stuck, idem.Settlement{Result: []byte(`"charged"`), By: "jane"}); err != nil {
		t.Fatal(err)
	}
	l.cost("settled")
	l.do(two, request("stuck"), 201, paid(nil, 100, idem.NotIdempotent()))
	l.cost("its retry")
	if seq := handle(t, w, feed.event(t)); seq != "" {
		t.Errorf("reported %q", seq)
	}
	l.cost("the stream, with the jobs of five operations")
	if queue.len() == 0 {
		t.Fatal("no ticket")
	}
	if _, err := w.Invoke(t.Context(), queue.take()); err != nil {
		t.Fatal(err)
	}
	l.cost("the completer's tickets")
	if seq := handle(t, w, feed.event(t)); seq != "" {
		t.Errorf("reported %q", seq)
	}
	l.cost("the stream once more")
	if _, err := w.Invoke(t.Context(), []byte(`{"detail-type":"Scheduled Event","source":"aws.events"}`)); err != nil {
		t.Fatal(err)
	}
	l.cost("a sweep")
	if len(box.all) != 5 {
		t.Errorf("%d jobs were delivered, want 5", len(box.all))
	}
	return l
}

// stuck is the key of the only stuck record.
func (tab *table) stuck(t *testing.T) string {
	t.Helper()
	var found []string
	for _, it := range tab.Items(t) {
		if r, err := layout.Read(it); err == nil && r != nil && r.State == store.Stuck {
			found = append(found, r.PK)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d records are stuck", len(found))
	}
	return found[0]
}

// Encryption adds no call to DynamoDB to the whole life of a record, and no unit as long as
// the record stays within its KB. Each process asks the key service once for a data key
// that it seals with, and once for each data key of another process, however many
// requests, records and jobs it serves.
func TestLifeSealed(t *testing.T) {
	t.Parallel()
	plain := live(t, nil)
	for name, k := range map[string]*keys{"keys of NewStatic": &staticKeys, "keys of KMS": &kmsKeys} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sealed := live(t, k)
			for i, step := range sealed.costs {
				t.Log(step)
				if diff := cmp.Diff(plain.costs[i], step); diff != "" {
					t.Errorf("calls and units (-plain +sealed):\n%s", diff)
				}
			}
			got := make(map[string]string)
			for name, p := range sealed.providers {
				got[name] = fmt.Sprintf("%d made, %d opened", p.generated, p.opened)
			}
			want := map[string]string{
				"function one": "1 made, 0 opened",
				"function two": "1 made, 1 opened",
				"worker":       "0 made, 1 opened",
				"desk":         "0 made, 1 opened",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("data keys (-want +got):\n%s", diff)
			}
		})
	}
}
