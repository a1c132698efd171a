package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
)

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

// A22: the client is gone after ride_created. Once lease and grace are over the
// completer finishes the ride; a later retry of the client replays the 201.
func TestA22CompleterFinishesWithoutTheClient(t *testing.T) {
	t.Parallel()
	completions(t, func(t *testing.T, newCompletion makeCompletion) {
		tab := newTable(t)
		req := tabletest.Post(tabletest.NewKey(), `{"ride":1}`)
		var ran int
		ride := func(ctx context.Context, got *idem.Request) (idem.Response, error) {
			ran++
			if op, _ := idem.FromContext(ctx); !op.Resumed() || string(got.Body) != string(req.Body) {
				t.Errorf("resumed %v with %s", op.Resumed(), got.Body)
			}
			err := phase(ctx)
			return idem.Response{Status: 201, Body: []byte("ride")}, err
		}
		c := newCompletion(t, tab, ride)
		begin(t, tab, req, phase)

		if left := c.round(t); left != 1 || ran != 0 {
			t.Fatalf("at once: %d tickets are left, ran %d times", left, ran)
		}
		c.clock.advance(defaults.Lease + defaults.LeaseMargin + jobs.DefaultGrace + time.Second)
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

// A23: the completer touches nothing that is finished, younger than the grace, at
// work, or was tried just now.
func TestA23CompleterTouchesNothingElse(t *testing.T) {
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
			}, jobs.DefaultGrace, 1},
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

// A24: of ten abandoned operations one has a handler that panics. Nine finish;
// the tenth is tried as often as may be, and is then on the list, with its last
// error.
func TestA24OneFailingTicketStopsNothing(t *testing.T) {
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
		c.clock.advance(jobs.DefaultGrace)
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
		if diff := cmp.Diff(map[stream.Reason]int{stream.ReasonStuck: 1}, counts(rep)); diff != "" {
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
