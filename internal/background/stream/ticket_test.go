package stream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/seal"
)

// Who receives a due ticket reads its record, once. What has ended costs no more than that,
// nor an invocation; a take-over is one update besides.
func TestCallsOfAReceivedTicket(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ended bool
		want  calls
	}{
		"taken up, and finished": {false, calls{"GetItem": 1, "UpdateItem": 2}},
		"ended meanwhile":        {true, calls{"GetItem": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			feed, queue := tab.tail(t), &mailbox{}
			engine := idem.New(tab.Store, callertest.Anybody, resumable, tabletest.Ahead(time.Hour))
			w := queue.worker(tab, func(o *worker.Options) {
				o.Tickets = ticketsIn(time.Hour)
				o.Functions = completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
					_, err := engine.Resume(ctx, t, answer)
					return err
				})
			})
			req := tabletest.Post(tabletest.NewKey(), `1`)
			begin(t, tab, req, nothing)
			handle(t, w, feed.event(t))
			if test.ended {
				if _, err := engine.Do(t.Context(), req, tabletest.Created("1")); err != nil {
					t.Fatal(err)
				}
			}
			tab.Transport.Reset()
			if queue.deliver(t, w); queue.len() != 0 {
				t.Errorf("%d tickets wait", queue.len())
			}
			if diff := cmp.Diff(test.want, tab.Transport.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			tabletest.Replays(t, engine, req, "1")
		})
	}
}

// An operation has one ticket, whatever its attempts write: neither a client's retry nor a try
// of the completer that fails makes another. One that people have decided about gets a new one.
func TestOneTicketForAnOperation(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, queue := tab.tail(t), &mailbox{}
	ahead := time.Hour
	engine := idem.New(tab.Store, callertest.Anybody, resumable, func(o *idem.Options) {
		o.MaxTries, o.Now = 2, func() time.Time { return time.Now().Add(ahead) }
	})
	w := queue.worker(tab, func(o *worker.Options) {
		o.Tickets = func(o *completer.Options) { o.Now = func() time.Time { return time.Now().Add(ahead) } }
		o.Functions = completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
			_, err := engine.Resume(ctx, t, func(context.Context, *idem.Request) (idem.Response, error) { return idem.Response{}, errPoison })
			return err
		})
	})
	req := tabletest.Post(tabletest.NewKey(), `1`)
	begin(t, tab, req, func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "booked", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return err
	})
	waits := func(after string, want int) {
		t.Helper()
		if seq := handle(t, w, feed.event(t)); seq != "" || queue.len() != want {
			t.Errorf("%s: reported %q, %d tickets wait, want %d", after, seq, queue.len(), want)
		}
	}
	waits("the claim", 1)
	if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errPoison }); err == nil {
		t.Fatal("answered")
	}
	waits("a client's retry that fails", 1)
	for try := range 2 {
		ahead += 2 * time.Hour
		queue.deliver(t, w)
		if r := tab.Only(t); r.Tries != try+1 {
			t.Errorf("%d tries are counted after %d", r.Tries, try+1)
		}
		waits("a try that fails", 1)
	}
	ahead += 2 * time.Hour
	queue.deliver(t, w)
	waits("the last", 0)
	if err := engine.Settle(t.Context(), tab.Only(t).PK, idem.Settlement{By: "jane"}); err != nil {
		t.Fatal(err)
	}
	waits("a person's retry", 1)
}

// A ticket without a handler ends, since each sweep makes another; its operation is on the list
// of people until it goes on. What is no ticket at all is there too.
func TestTicketsThatEndAreListed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, queue := tab.tail(t), &mailbox{}
	engine := idem.New(tab.Store, callertest.Anybody, resumable, tabletest.Ahead(time.Hour))
	functions := completer.Functions{}
	w := queue.worker(tab, func(o *worker.Options) {
		o.Tickets, o.Sweep, o.Functions = ticketsIn(time.Hour), fast(2*time.Hour), functions
	})
	req := tabletest.Post(tabletest.NewKey(), `1`)
	begin(t, tab, req, nothing)
	handle(t, w, feed.event(t))
	pk := tab.Only(t).PK
	listed := func(when string, want ...stream.Entry) {
		t.Helper()
		if diff := cmp.Diff(want, tab.listed(t)); diff != "" {
			t.Errorf("%s: listed (-want +got):\n%s", when, diff)
		}
	}
	mine := stream.Entry{Reason: state.ReasonBlocked, PK: pk, LastErr: `no handler: the function "f" is not on the completer's list`}
	for range 3 {
		if queue.deliver(t, w); queue.len() != 0 {
			t.Fatalf("%d tickets wait", queue.len())
		}
		listed("its ticket has ended", mine)
		if rep := scheduled(t, w); rep.Queued != 1 || queue.len() != 1 {
			t.Fatalf("the sweep has queued %d, %d tickets wait", rep.Queued, queue.len())
		}
		listed("a sweep later", mine)
	}
	functions["f"] = completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
		_, err := engine.Resume(ctx, t, answer)
		return err
	})
	queue.deliver(t, w)
	tabletest.Replays(t, engine, req, `1`)
	if rep := scheduled(t, w); rep.Queued != 0 {
		t.Errorf("the sweep has queued %d", rep.Queued)
	}
	listed("it is done")

	out, err := w.Invoke(t.Context(), []byte(`{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{"}]}`))
	if err != nil || string(out) != `{"batchItemFailures":[]}` {
		t.Errorf("answered %s, %v", out, err)
	}
	none := stream.Entry{Reason: state.ReasonUnreadable, PK: "samekey#ticket#1", LastErr: "completer: not a ticket: unexpected end of JSON input"}
	listed("no ticket", none)
	scheduled(t, w)
	listed("a sweep later", none)
	for _, pk := range []string{pk, "samekey#ticket#2"} {
		if done, err := stream.Dismiss(t.Context(), tab.Store, pk); done || err != nil {
			t.Errorf("dismissed %s: %v, %v", pk, done, err)
		}
	}
	if done, err := stream.Dismiss(t.Context(), tab.Store, none.PK); !done || err != nil {
		t.Errorf("dismissed: %v, %v", done, err)
	}
	listed("dismissed")
}

// What nobody goes on with is on the list after a while, and leaves it once somebody does: jobs
// whose sink is down or that have none, and operations of a namespace that no worker covers.
func TestWhatNobodyGoesOnWithIsListed(t *testing.T) {
	t.Parallel()
	ownSink := func(o *worker.Options) { o.Sink = &outbox{} }
	mail := func(t *testing.T, tab *table) {
		run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1), idem.NewJob("audit", 1))
		})
	}
	fails := func(err error) func(*worker.Options) {
		return func(o *worker.Options) {
			o.Sink = jobs.Route{"audit": &outbox{}, "mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return err })}
		}
	}
	waits := func(kind, why string) stream.Entry {
		return stream.Entry{Reason: state.ReasonBlocked, LastErr: fmt.Sprintf("jobs of kind %q wait: %s", kind, why)}
	}
	const none = `sink is unavailable: there is none for jobs of kind "mail" (the worker's Sinks)`
	for name, tt := range map[string]struct {
		make    func(*testing.T, *table)
		without func(*worker.Options)
		unseen  []time.Duration // sweeps after which nothing is listed
		later   time.Duration
		want    []stream.Entry
		with    func(*worker.Options)
	}{
		"kinds without a sink": {
			mail, func(*worker.Options) {},
			[]time.Duration{50 * time.Minute, 61 * time.Minute},
			122 * time.Minute,
			[]stream.Entry{waits("audit", strings.ReplaceAll(none, "mail", "audit")), waits("mail", none)},
			ownSink,
		},
		"a sink that is down": {
			mail, fails(jobs.ErrSinkDown),
			[]time.Duration{2 * time.Hour},
			3 * time.Hour,
			[]stream.Entry{waits("mail", "sink is unavailable")},
			ownSink,
		},
		"a sink that was out of time": {
			mail, fails(fmt.Errorf("%w: its time is up: %w", jobs.ErrSinkDown, context.DeadlineExceeded)), []time.Duration{2 * time.Hour, 4 * time.Hour}, 6 * time.Hour, nil, ownSink,
		},
		"a sink that was down yesterday": {
			mail, fails(jobs.ErrSinkDown), []time.Duration{2 * time.Hour, 27 * time.Hour}, 27*time.Hour + time.Minute, nil, ownSink,
		},
		"a namespace that no worker covers": {
			func(t *testing.T, tab *table) {
				begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), phase, func(o *idem.Options) { o.Namespace, o.Retention = "b", 2*time.Hour })
				tab.edit(t, tab.Only(t).PK, "REMOVE req, jobs", nil) // as without Resumable
			},
			func(o *worker.Options) { o.Namespaces = []string{"a"} },
			[]time.Duration{25 * time.Hour},
			27 * time.Hour,
			[]stream.Entry{{Reason: state.ReasonBlocked, LastErr: `nobody has ended it within 24h0m0s: the operation is another handler's: this worker's Namespaces lack "b"`}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, queue := newTable(t), &mailbox{}
			tt.make(t, tab)
			for i := range tt.want {
				tt.want[i].PK = tab.Only(t).PK
			}
			sweep := func(after time.Duration, with func(*worker.Options)) {
				t.Helper()
				w := queue.worker(tab, with, func(o *worker.Options) { o.Sweep = fast(after) })
				_, _ = w.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","task":"sweep"}`)) // an error says that work is left
			}
			byErr := func(all []stream.Entry) []stream.Entry {
				slices.SortFunc(all, func(a, b stream.Entry) int { return strings.Compare(a.LastErr, b.LastErr) })
				return all
			}
			for _, after := range tt.unseen {
				if sweep(after, tt.without); len(tab.listed(t)) != 0 {
					t.Errorf("after %v: listed %+v, want nothing", after, tab.listed(t))
				}
			}
			for range 2 {
				sweep(tt.later, tt.without)
				if diff := cmp.Diff(tt.want, byErr(tab.listed(t))); diff != "" {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
			}
			r := tab.Only(t)
			got, err := stream.Listed(t.Context(), tab.Store, r)
			if err != nil || len(got) != len(tt.want) {
				t.Errorf("beside the record: %+v, %v; want %d entries", got, err, len(tt.want))
			}
			if tt.with == nil { // its own worker, or people
				if err := idem.New(tab.Store, callertest.Anybody, tabletest.Ahead(tt.later), func(o *idem.Options) { o.Namespace = "b" }).
					Settle(t.Context(), r.PK, idem.Settlement{By: "jane", Answer: &idem.Response{Status: 410}}); err != nil {
					t.Fatal(err)
				}
				tt.with = tt.without
			}
			sweep(tt.later, tt.with)
			sweep(tt.later+time.Minute, tt.with)
			if got, err := stream.Listed(t.Context(), tab.Store, r); len(got) != 0 || err != nil || len(tab.listed(t)) != 0 {
				t.Errorf("still listed: %+v, %v", got, err)
			}
		})
	}
}

// The ticket of an operation whose sealed request was altered ends, and people hear of it:
// from a worker that opens it itself, and from the function.
func TestAlteredRequest(t *testing.T) {
	t.Parallel()
	for name, opens := range map[string]bool{"a worker with the key": true, "a worker without it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) { o.Seal = seal.New(static(t)) })
			feed, queue := tab.tail(t), &mailbox{}
			engine := idem.New(tab.Store, callertest.Anybody, resumable, tabletest.Ahead(time.Hour))
			begin(t, tab, tabletest.Post(tabletest.NewKey(), `1`), nothing)
			ev := feed.event(t)
			it := tab.item(t, tab.Only(t).PK)
			x := it["req"].(*types.AttributeValueMemberM).Value["x"].(*types.AttributeValueMemberB)
			x.Value[13] ^= 1
			tab.Put(t, it)
			pk := it["pk"].(*types.AttributeValueMemberS).Value
			if !opens {
				var err error
				if tab.Store, err = dynamo.New(tab.Client, tab.Name); err != nil {
					t.Fatal(err)
				}
			}
			w := queue.worker(tab, func(o *worker.Options) {
				o.Tickets = ticketsIn(time.Hour)
				o.Functions = completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
					_, err := engine.Resume(ctx, t, answer)
					return err
				})
			})
			handle(t, w, ev)
			if queue.deliver(t, w); queue.len() != 0 {
				t.Errorf("%d tickets wait", queue.len())
			}
			got := tab.listed(t)
			if len(got) != 1 || got[0].Reason != state.ReasonBlocked || got[0].PK != pk || !strings.Contains(got[0].LastErr, store.ErrCorrupt.Error()) {
				t.Errorf("listed %+v", got)
			}
		})
	}
}
