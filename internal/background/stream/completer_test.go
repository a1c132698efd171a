package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

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

// An operation whose record goes away unfinished is told, by
// whatever it went away.
func TestUnfinishedRecordIsGone(t *testing.T) {
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

// clock is one that tests set forward.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// completion is the completer's two halves over a real stream, and a queue that
// brings everything back at once: whoever gets it looks at its time.
type completion struct {
	clock    clock
	engine   *idem.Engine
	feed     *tail
	dispatch invoker // takes the stream
	queue    *tickets
	handler  invoker // takes the tickets
	more     int     // tickets that a drain's acknowledgement of an open record makes
	outcomes map[completer.TicketOutcomeKind]int
}

// round hands the stream to the first half, and the queue's tickets to the
// second. It returns how many tickets wait on.
func (c *completion) round(t testing.TB) int {
	t.Helper()
	if ev := c.feed.event(t); len(ev.Records) > 0 {
		for i := range ev.Records { // the table's clock is the wall's
			ev.Records[i].Change.ApproximateCreationDateTime.Time = c.clock.now()
		}
		if seq := handle(t, c.dispatch, ev); seq != "" {
			t.Errorf("reported %q", seq)
		}
	}
	var ev events.SQSEvent
	for i, ticket := range c.queue.all() {
		body := bodyOf(ticket)
		ev.Records = append(ev.Records, events.SQSMessage{MessageId: strconv.Itoa(i), ReceiptHandle: body, Body: body, EventSource: "aws:sqs"})
	}
	if len(ev.Records) > 0 {
		payload, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.handler.Invoke(t.Context(), payload)
		var re events.SQSEventResponse
		if err != nil || json.Unmarshal(out, &re) != nil || len(re.BatchItemFailures) != len(c.queue.got) {
			t.Errorf("got %s, %v", out, err)
		}
	}
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return len(c.queue.got)
}

// makeCompletion makes a completion of fn's operations.
type makeCompletion func(t testing.TB, tab *table, fn func(context.Context, *idem.Request) (idem.Response, error), optFns ...func(*idem.Options)) *completion

// completions runs a test against the completer's two halves, and against a worker,
// which is both.
func completions(t *testing.T, test func(t *testing.T, newCompletion makeCompletion)) {
	t.Helper()
	for name, connect := range map[string]func(*completion, *table, completer.Resumer, func(*completer.Options)){
		"completer": func(c *completion, tab *table, resumer completer.Resumer, opt func(*completer.Options)) {
			c.dispatch = stream.NewCompleter(c.queue, func(o *stream.CompleterOptions) { o.Now = c.clock.now })
			c.handler = completer.New(tab.Store, asSQS(c.queue), resumer, opt)
		},
		"worker": func(c *completion, tab *table, resumer completer.Resumer, opt func(*completer.Options)) {
			w := worker.New(tab.Client, tab.Store, asSQS(c.queue), func(o *worker.Options) {
				o.Sink, o.Functions = &outbox{}, resumer
				o.Completer = func(o *stream.CompleterOptions) { o.Now = c.clock.now }
				o.Tickets = func(o *completer.Options) {
					o.Concurrency = 1 // the handlers count
					opt(o)
				}
			})
			c.dispatch, c.handler, c.more = w, w, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(t testing.TB, tab *table, fn func(context.Context, *idem.Request) (idem.Response, error), optFns ...func(*idem.Options)) *completion {
				t.Helper()
				c := &completion{feed: tab.tail(t), queue: &tickets{}, outcomes: make(map[completer.TicketOutcomeKind]int)}
				c.engine = idem.New(tab.Store, append([]func(*idem.Options){callertest.Anybody, resumable, func(o *idem.Options) { o.Now = c.clock.now }}, optFns...)...)
				connect(c, tab, completer.InProcess(func(ctx context.Context, t jobs.Ticket) error {
					_, err := c.engine.Resume(ctx, t, fn)
					return err
				}), func(o *completer.Options) {
					o.Now = c.clock.now
					o.Resumed = func(_ context.Context, _ jobs.Ticket, out completer.TicketOutcome) { c.outcomes[out.Kind]++ }
				})
				return c
			})
		})
	}
}

// The client is gone after ride_created. Once lease and grace are over the
// completer finishes the ride; a later retry of the client replays the 201.
func TestCompleterFinishesWithoutTheClient(t *testing.T) {
	t.Parallel()
	completions(t, func(t *testing.T, newCompletion makeCompletion) {
		tab := newTable(t)
		req := tabletest.Post(tabletest.NewKey(), `{"ride":1}`)
		var ran int
		ride := func(ctx context.Context, got *idem.Request) (idem.Response, error) {
			ran++
			if op, _ := idem.FromContext(ctx); !op.TakenOver() || string(got.Body) != string(req.Body) {
				t.Errorf("resumed %v with %s", op.TakenOver(), got.Body)
			}
			err := phase(ctx)
			return idem.Response{Status: 201, Body: []byte("ride")}, err
		}
		c := newCompletion(t, tab, ride)
		begin(t, tab, req, phase)

		if left := c.round(t); left != 1 || ran != 0 {
			t.Fatalf("at once: %d tickets are left, ran %d times", left, ran)
		}
		c.clock.advance(defaults.Lease + defaults.LeaseMargin + state.DefaultGrace + time.Second)
		if left := c.round(t); left > c.more || ran != 1 {
			t.Fatalf("when it was due: %d tickets are left, ran %d times", left, ran)
		}
		if diff := cmp.Diff(map[completer.TicketOutcomeKind]int{completer.TicketDone: 1}, c.outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		tabletest.Replays(t, c.engine, req, "ride")
		if left := c.round(t); left > c.more || ran != 1 {
			t.Errorf("afterwards: %d tickets are left, ran %d times", left, ran)
		}
	})
}

// The completer touches nothing that is finished, younger than the grace, at
// work, or was tried just now.
func TestCompleterTouchesNothingElse(t *testing.T) {
	t.Parallel()
	completions(t, func(t *testing.T, newCompletion makeCompletion) {
		for name, test := range map[string]struct {
			begin func(t *testing.T, tab *table, c *completion)
			after time.Duration // when the ticket comes
			left  int           // tickets that wait on
		}{
			"finished in the same batch": {func(t *testing.T, _ *table, c *completion) {
				t.Helper()
				run(t, c.engine, tabletest.Created("done"))
			}, time.Hour, 0},
			"finished after its ticket was made": {func(t *testing.T, tab *table, c *completion) {
				t.Helper()
				req := tabletest.Post(tabletest.NewKey(), "{}")
				begin(t, tab, req, nothing)
				c.round(t)
				c.clock.advance(time.Minute)
				if _, err := c.engine.Do(t.Context(), req, tabletest.Created("done")); err != nil { // the client's retry
					t.Fatal(err)
				}
			}, time.Hour, 0},
			"younger than the grace": {func(t *testing.T, tab *table, _ *completion) {
				t.Helper()
				begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), nothing)
			}, state.DefaultGrace, 1},
			"tried a moment ago by its client": {func(t *testing.T, _ *table, c *completion) {
				t.Helper()
				c.clock.advance(time.Hour)
				_, err := c.engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
					return idem.Response{}, errors.Join(phase(ctx), errPoison)
				})
				if err == nil {
					t.Fatal("no error")
				}
			}, time.Minute, 1},
			"at work: taken over since, by its client": {func(t *testing.T, tab *table, c *completion) {
				t.Helper()
				req := tabletest.Post(tabletest.NewKey(), "{}")
				begin(t, tab, req, nothing)
				c.round(t)
				c.clock.advance(6 * time.Minute)
				begin(t, tab, req, nothing, func(o *idem.Options) { o.Now, o.Lease = c.clock.now, time.Hour })
			}, time.Minute, 1},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t)
				c := newCompletion(t, tab, func(context.Context, *idem.Request) (idem.Response, error) {
					t.Error("the completer ran it")
					return idem.Response{Status: 200}, nil
				})
				test.begin(t, tab, c)
				c.clock.advance(test.after)
				before := tab.Only(t)
				left := c.round(t)
				if left != test.left {
					t.Errorf("%d tickets wait on, want %d", left, test.left)
				}
				after := tab.Only(t)
				before.Jobs, after.Jobs = nil, nil // the drain's
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the record was touched (-before +after):\n%s", diff)
				}
			})
		}
	})
}

// Of ten abandoned operations one has a handler that panics. Nine finish;
// the tenth is tried as often as may be, and is then on the list, with its last
// error.
func TestOneFailingTicketStopsNothing(t *testing.T) {
	t.Parallel()
	completions(t, func(t *testing.T, newCompletion makeCompletion) {
		tab := newTable(t)
		tries := 0
		c := newCompletion(t, tab, func(_ context.Context, req *idem.Request) (idem.Response, error) {
			if string(req.Body) == `"bad"` {
				tries++
				panic(fmt.Errorf("broken deploy"))
			}
			return idem.Response{Status: 201, Body: req.Body}, nil
		}, func(o *idem.Options) { o.MaxTries = 3 })
		var good []idem.Request
		for i := range 10 {
			req, does := tabletest.Post(tabletest.NewKey(), strconv.Quote(fmt.Sprint("ride ", i))), nothing
			if i == 4 {
				req.Body, does = []byte(`"bad"`), phase
			} else {
				good = append(good, req)
			}
			begin(t, tab, req, does)
		}
		c.clock.advance(time.Minute)
		c.round(t)
		c.clock.advance(state.DefaultGrace)
		c.round(t)
		want := map[completer.TicketOutcomeKind]int{completer.TicketDone: 9, completer.TicketFailed: 1}
		if diff := cmp.Diff(want, c.outcomes); diff != "" {
			t.Errorf("outcomes of the first round (-want +got):\n%s", diff)
		}
		for _, req := range good {
			tabletest.Replays(t, c.engine, req, string(req.Body))
		}
		for range 10 {
			if c.outcomes[completer.TicketStuck] > 0 {
				break
			}
			c.clock.advance(time.Hour)
			c.round(t)
		}
		if tries != 3 || c.outcomes[completer.TicketStuck] != 1 {
			t.Errorf("tried %d times, outcomes %v", tries, c.outcomes)
		}
		rep := look(t, tab)
		if diff := cmp.Diff(map[state.Reason]int{state.ReasonStuck: 1}, counts(rep)); diff != "" {
			t.Fatalf("listed (-want +got):\n%s", diff)
		}
		if e := rep.Entries[0]; e.Tries != 4 || e.LastErr == "" {
			t.Errorf("listed %+v", e)
		}
		t.Logf("listed with %q", rep.Entries[0].LastErr)
		c.clock.advance(24 * time.Hour)
		if left := c.round(t); left != 0 || tries != 3 {
			t.Errorf("%d tickets are left, tried %d times", left, tries)
		}
	})
}

// An operation goes on: taken over by its client's retry or by a completer, from an
// attempt that gave it back or never came back.
func TestOperationsGoOn(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		for _, byTicket := range []bool{false, true} {
			t.Run(map[bool]string{false: "given back", true: "abandoned"}[dies]+map[bool]string{false: ", to the client", true: ", to a completer"}[byTicket], func(t *testing.T) {
				t.Parallel()
				goesOn(t, dies, byTicket)
			})
		}
	}
}

func goesOn(t *testing.T, dies, byTicket bool) {
	t.Helper()
	tab := newTable(t)
	feed, out := tab.tail(t), &outbox{}
	clock := idemtest.NewClock()
	options := func(o *idem.Options) { o.Resumable, o.CallsOut, o.Function, o.Now = true, dies, "rides", clock.Now }
	takes := calls{"UpdateItem": 1}
	if dies { // one expression can't say that a call may have been made
		takes["UpdateItem"]++
	}
	process := idemtest.Faulty(tab.Store, nil)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	if _, err := idem.New(process, callertest.Anybody, tabletest.Unhurried, options).Do(t.Context(), req, func(context.Context) (idem.Response, error) {
		if dies {
			process.Crash()
		}
		return idem.Response{}, errors.New("down")
	}); err == nil {
		t.Fatal("no error")
	}
	claimed := tab.Only(t)
	clock.Advance(time.Hour)

	handler := func(ctx context.Context) (idem.Response, error) {
		if diff := cmp.Diff(takes, tab.Transport.Calls()); byTicket && diff != "" {
			t.Errorf("calls of the take-over (-want +got):\n%s", diff)
		}
		taken := tab.Only(t)
		if len(taken.Calls) != 0 || taken.Owner == claimed.Owner || taken.Lease.IsZero() {
			t.Errorf("taken over: %+v", taken)
		}
		if dies && (!slices.Equal(taken.Doubts, []string{state.AnyCall}) || !taken.DoubtSince.Equal(claimed.Created)) {
			t.Errorf("in doubt: %v since %v, want any call since the claim at %v", taken.Doubts, taken.DoubtSince, claimed.Created)
		}
		if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { _ = tx.Key("payments"); return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		for _, name := range []string{"first", "second"} {
			if _, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob(name, tabletest.Planted))
				return 1, nil
			}); err != nil {
				return idem.Response{}, err
			}
		}
		if now := tab.Only(t); now.Calls["payments#"] != 1 || len(now.Jobs) != 2 {
			t.Errorf("in the end: calls %v, jobs %v", now.Calls, now.Jobs)
		}
		return idem.Response{Status: 201, Body: []byte("done")}, nil
	}
	engine := tab.Engine(options)
	var err error
	if byTicket {
		ticket := state.TicketFor(tab.Only(t))
		tab.Transport.Reset()
		_, err = engine.Resume(t.Context(), ticket, func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
	} else {
		_, err = engine.Do(t.Context(), req, handler)
	}
	if err != nil {
		t.Fatal(err)
	}
	it := tab.item(t, claimed.PK)
	for _, gone := range []string{"lease_ms", "doubts", "doubt_ms", "req", "exp_s"} {
		if it[gone] != nil {
			t.Errorf("the finish left %s", gone)
		}
	}
	if it["calls"] == nil {
		t.Error("the finish removed the calls")
	}
	tabletest.Replays(t, engine, req, "done")
	if seq := handle(t, stream.NewDrain(tab.Store, out), feed.event(t)); seq != "" {
		t.Errorf("%s is reported", seq)
	}
	if diff := cmp.Diff([]string{"first", "second"}, out.kinds()); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	tab.letGo(t, claimed.PK)
	tabletest.Replays(t, engine, req, "done")
}

// A deploy changes the retention between two attempts. An answer of people holds
// as the later attempt's program has it, whether a client or a completer asked for that
// attempt, and whatever the program is that people decide by.
func TestTheLaterProgramsRetentionHolds(t *testing.T) {
	t.Parallel()
	const short, long = 2 * time.Hour, 720 * time.Hour
	for name, tt := range map[string]struct{ before, later, want time.Duration }{
		"from the default": {0, long, long},
		"shorter":          {long, short, short},
		"to the default":   {long, 0, defaults.Retention},
	} {
		for _, byTicket := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", by a client", true: ", by a completer"}[byTicket], func(t *testing.T) {
				t.Parallel()
				tab, req := newTable(t), tabletest.Post(tabletest.NewKey(), "{}")
				clock := idemtest.NewClock()
				program := func(retention time.Duration) func(*idem.Options) {
					return func(o *idem.Options) { o.Now, o.Retention = clock.Now, retention }
				}
				begin(t, tab, req, func(ctx context.Context) error {
					_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
					return err
				}, program(tt.before))
				clock.Advance(time.Hour)
				handler := func(ctx context.Context) (idem.Response, error) {
					if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
						return idem.Response{}, err
					}
					_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("timeout") }, idem.NotIdempotent())
					return idem.Response{}, err
				}
				engine := tab.Engine(resumable, program(tt.later))
				var err error
				if byTicket {
					_, err = engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
				} else {
					_, err = engine.Do(t.Context(), req, handler)
				}
				if !errors.Is(err, idem.ErrStuck) {
					t.Fatal(err)
				}
				operator := idem.New(tab.Store, callertest.Anybody, program(0))
				if err := operator.Settle(t.Context(), tab.Only(t).PK, idem.Settlement{Answer: &idem.Response{Status: 201}, By: "jane"}); err != nil {
					t.Fatal(err)
				}
				r, now := tab.Only(t), state.Seconds(clock.Now())
				if got := r.Expires.Sub(now); got != tt.want {
					t.Errorf("its answer holds for %v, want %v", got, tt.want)
				}
			})
		}
	}
}
