package completer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

var now = time.UnixMilli(1_800_000_000_123)

// queue is one that remembers.
type queue struct {
	fail error

	mu  sync.Mutex
	got []jobs.Ticket
}

func (q *queue) Put(_ context.Context, tickets []jobs.Ticket) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return []error{q.fail}
	}
	q.got = append(q.got, tickets...)
	return nil
}

// answers is a Resumer that answers by the ticket's owner, and notes the order.
type answers struct {
	of func(owner string) completer.TicketOutcome

	mu    sync.Mutex
	asked []string
}

func (a *answers) Resume(_ context.Context, t jobs.Ticket) completer.TicketOutcome {
	a.mu.Lock()
	a.asked = append(a.asked, t.Owner)
	a.mu.Unlock()
	return a.of(t.Owner)
}

func always(o completer.TicketOutcome) *answers {
	return &answers{of: func(string) completer.TicketOutcome { return o }}
}

// due is a message with a ticket of that owner, that is due for so long.
func due(owner string, since time.Duration, tries int) events.SQSMessage {
	body, err := json.Marshal(map[string]any{
		"pk": "v1##" + owner, "owner": owner, "ver": 3, "due_ms": now.Add(-since).UnixMilli(), "tries": tries,
	})
	if err != nil {
		panic(err)
	}
	return events.SQSMessage{MessageId: "m-" + owner, Body: string(body), EventSource: "aws:sqs"}
}

func at(o *completer.Options) { o.Now = func() time.Time { return now } }

// handle lets h work on messages as the runtime does. It returns the owners of
// those that must stay.
func handle(t *testing.T, h *completer.Handler, messages ...events.SQSMessage) []string {
	t.Helper()
	payload, err := json.Marshal(events.SQSEvent{Records: messages})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var re events.SQSEventResponse
	if err := json.Unmarshal(out, &re); err != nil || !strings.Contains(string(out), "[") {
		t.Fatalf("%s: %v", out, err)
	}
	var stay []string
	for _, f := range re.BatchItemFailures {
		stay = append(stay, strings.TrimPrefix(f.ItemIdentifier, "m-"))
	}
	return stay
}

func TestTicketNotDueGoesBack(t *testing.T) {
	t.Parallel()
	q, asked := &queue{}, always(completer.TicketOutcome{Kind: completer.TicketDone})
	h := completer.New(q, asked, at)
	if stay := handle(t, h, due("early", -time.Millisecond, 2), due("now", 0, 0)); stay != nil {
		t.Errorf("%v stay", stay)
	}
	want := []jobs.Ticket{{PK: "v1##early", Owner: "early", Ver: 3, Due: now.Add(time.Millisecond), Tries: 2}}
	if diff := cmp.Diff(want, q.got); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	if !slices.Equal(asked.asked, []string{"now"}) {
		t.Errorf("resumed %v", asked.asked)
	}
}

// What comes of a ticket decides whether and when it comes again.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Minute
	for name, test := range map[string]struct {
		outcome completer.TicketOutcome
		tries   int // before
		after   time.Duration
		again   bool
		then    int // its tries after
	}{
		"done":                                    {completer.TicketOutcome{Kind: completer.TicketDone}, 0, 0, false, 0},
		"others went on":                          {completer.TicketOutcome{Kind: completer.TicketMoved}, 0, 0, false, 0},
		"stuck":                                   {completer.TicketOutcome{Kind: completer.TicketStuck, Error: "e"}, 0, 0, false, 0},
		"in flight: its lease and the grace":      {completer.TicketOutcome{Kind: completer.TicketInFlight, RetryAfter: 20 * time.Second}, 0, 20*time.Second + grace, true, 0},
		"in flight, often: it is no failure":      {completer.TicketOutcome{Kind: completer.TicketInFlight}, 19, grace, true, 19},
		"failed":                                  {completer.TicketOutcome{Kind: completer.TicketFailed}, 0, grace, true, 1},
		"failed again":                            {completer.TicketOutcome{Kind: completer.TicketFailed}, 1, 2 * grace, true, 2},
		"failed a third time":                     {completer.TicketOutcome{Kind: completer.TicketFailed}, 2, 4 * grace, true, 3},
		"failed often: an hour":                   {completer.TicketOutcome{Kind: completer.TicketFailed}, 17, time.Hour, true, 18},
		"failed too often: the sweep's":           {completer.TicketOutcome{Kind: completer.TicketFailed}, 19, 0, false, 0},
		"failed far too often":                    {completer.TicketOutcome{Kind: completer.TicketFailed}, 1 << 40, 0, false, 0},
		"no handler for it":                       {completer.TicketOutcome{Kind: completer.TicketNotMine, Error: "e"}, 0, grace, true, 1},
		"no handler for it, however long":         {completer.TicketOutcome{Kind: completer.TicketNotMine, Error: "e"}, 19, time.Hour, true, 19},
		"no handler for it, beyond counting":      {completer.TicketOutcome{Kind: completer.TicketNotMine, Error: "e"}, 1 << 40, time.Hour, true, 19},
		"something that is said by nobody as yet": {completer.TicketOutcome{Kind: "later"}, 0, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &queue{}
			var told []completer.TicketOutcomeKind
			h := completer.New(q, always(test.outcome), at, func(o *completer.Options) {
				o.Grace = grace
				o.Resumed = func(_ context.Context, d jobs.Ticket, out completer.TicketOutcome) {
					told = append(told, out.Kind)
					if d.Tries != test.tries {
						t.Errorf("told of %d tries", d.Tries)
					}
				}
			})
			if stay := handle(t, h, due("o", time.Second, test.tries)); stay != nil {
				t.Errorf("%v stay", stay)
			}
			var want []jobs.Ticket
			if test.again {
				want = []jobs.Ticket{{PK: "v1##o", Owner: "o", Ver: 3, Due: now.Add(test.after), Tries: test.then}}
			}
			if diff := cmp.Diff(want, q.got); diff != "" {
				t.Errorf("put back (-want +got):\n%s", diff)
			}
			if !slices.Equal(told, []completer.TicketOutcomeKind{test.outcome.Kind}) {
				t.Errorf("told %v", told)
			}
		})
	}
}

// A24: whatever becomes of one ticket, the others of its batch go their way.
func TestA24OneTicketDoesNotStopTheBatch(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprint(concurrency, " at once"), func(t *testing.T) {
			t.Parallel()
			q := &queue{}
			var mu sync.Mutex
			outcomes := make(map[completer.TicketOutcomeKind]int)
			asked := &answers{of: func(owner string) completer.TicketOutcome {
				if owner == "panics" {
					panic("secret of a client")
				}
				return completer.TicketOutcome{Kind: completer.TicketDone}
			}}
			h := completer.New(q, asked, at, func(o *completer.Options) {
				o.Concurrency = concurrency
				o.Resumed = func(_ context.Context, _ jobs.Ticket, out completer.TicketOutcome) {
					mu.Lock()
					defer mu.Unlock()
					outcomes[out.Kind]++
					if strings.Contains(out.Error, "secret") {
						t.Errorf("told %q", out.Error)
					}
				}
			})
			batch := []events.SQSMessage{{MessageId: "m-garbage", Body: "{", EventSource: "aws:sqs"}, due("panics", 1, 0)}
			for i := range 9 {
				batch = append(batch, due(fmt.Sprint("good", i), 1, 0))
			}
			if stay := handle(t, h, batch...); !slices.Equal(stay, []string{"garbage"}) {
				t.Errorf("%v stay", stay)
			}
			if diff := cmp.Diff(map[completer.TicketOutcomeKind]int{completer.TicketDone: 9, completer.TicketFailed: 1}, outcomes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if len(q.got) != 1 || q.got[0].Owner != "panics" || q.got[0].Tries != 1 {
				t.Errorf("put back %+v", q.got)
			}
		})
	}
}

// A queue that doesn't take a ticket back: the message stays, and comes again.
func TestTicketThatCannotGoBackStays(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := completer.New(&queue{fail: errors.New("injected")}, always(completer.TicketOutcome{Kind: completer.TicketFailed}), at, func(o *completer.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	if stay := handle(t, h, due("early", -time.Minute, 0), due("fails", time.Minute, 0)); !slices.Equal(stay, []string{"early", "fails"}) {
		t.Errorf("%v stay", stay)
	}
	if n := strings.Count(log.String(), "takes ReportBatchItemFailures on the event source mapping"); n != 1 {
		t.Errorf("what that takes is said %d times, want once:\n%s", n, &log)
	}
}

// What is no ticket stays in the queue, for its redrive policy.
func TestMessagesThatAreNoTickets(t *testing.T) {
	t.Parallel()
	asked := always(completer.TicketOutcome{Kind: completer.TicketDone})
	h := completer.New(&queue{}, asked, at)
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `"pk"`, `{"pk":"p","owner":"o"}`, `{"pk":"p","ver":1}`, `{"owner":"o","ver":1}`, `{"pk":"p","owner":"o","ver":0}`,
		`{"pk":"p","owner":"o","ver":1,"tries":-1}`, `{"pk":"p","owner":"o","ver":"1"}`, `{"pk":"p","owner":"o","ver":1,"identity":"root"}`,
		`{"pk":"p","jobs":"i","owner":"o","ver":1}`, `{"jobs":"i"}`, `{"pk":"p","jobs":"i","ver":1}`,
		`{"pk":"p","owner":"o","ver":1} {"pk":"p","owner":"o","ver":2}`,
		string(envelope.EncodeTicket(jobs.Ticket{PK: "p", Owner: "o", Ver: 1})),
	} {
		if stay := handle(t, h, events.SQSMessage{MessageId: "m-x", Body: body, EventSource: "aws:sqs"}); !slices.Equal(stay, []string{"x"}) {
			t.Errorf("%s does not stay", body)
		}
	}
	if asked.asked != nil {
		t.Errorf("resumed %v", asked.asked)
	}
}

// With no time left nothing is begun. A ticket that another one has kept waiting goes
// back as a new message, as long as there is time for that: it has lost no receive, and
// doesn't end in the dead-letter queue without a try.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := always(completer.TicketOutcome{Kind: completer.TicketDone})
		short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		for name, tc := range map[string]struct {
			ctx   context.Context
			stay  int
			again []string
		}{"less than a second": {short, 0, []string{"a", "b"}}, "none": {over, 2, nil}} {
			q := &queue{}
			re, err := completer.New(q, asked, at).Handle(tc.ctx, events.SQSEvent{Records: []events.SQSMessage{due("a", 1, 3), due("b", 1, 3)}})
			if err != nil || len(re.BatchItemFailures) != tc.stay || asked.asked != nil {
				t.Errorf("%s: got %+v, %v; resumed %v", name, re, err, asked.asked)
			}
			var again []string
			for _, d := range q.got {
				if again = append(again, d.Owner); d.Tries != 3 || !d.Due.Equal(now.Add(jobs.DefaultGrace)) {
					t.Errorf("%s: put back %+v", name, d)
				}
			}
			if slices.Sort(again); !slices.Equal(again, tc.again) {
				t.Errorf("%s: %q go back", name, again)
			}
		}
	})
}

func TestOtherSourcesAreRefused(t *testing.T) {
	t.Parallel()
	h := completer.New(&queue{}, always(completer.TicketOutcome{}), at)
	for _, payload := range []string{``, `{`, `null`, `{}`, `{"Records":[]}`, `{"Records":[{"eventSource":"aws:dynamodb"}]}`, `{"Records":[{"body":"{}"}]}`} {
		if out, err := h.Invoke(t.Context(), []byte(payload)); err == nil {
			t.Errorf("%s: answered %s", payload, out)
		}
	}
}

func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	asked := always(completer.TicketOutcome{})
	for name, fn := range map[string]func(){
		"no queue":              func() { completer.New(nil, asked) },
		"no resumer":            func() { completer.New(&queue{}, nil) },
		"negative grace":        func() { completer.New(&queue{}, asked, func(o *completer.Options) { o.Grace = -1 }) },
		"negative tries":        func() { completer.New(&queue{}, asked, func(o *completer.Options) { o.MaxTries = -1 }) },
		"negative concurrency":  func() { completer.New(&queue{}, asked, func(o *completer.Options) { o.Concurrency = -1 }) },
		"queue: no client":      func() { completer.NewQueue(nil, "url") },
		"queue: no url":         func() { completer.NewQueue(&fakeSQS{}, "") },
		"queue: FIFO":           func() { completer.NewQueue(&fakeSQS{}, "https://sqs/1/q.fifo") },
		"invoke: no client":     func() { completer.Invoke(nil, "f") },
		"invoke: no function":   func() { completer.Invoke(&fakeLambda{}) },
		"invoke: no name":       func() { completer.Invoke(&fakeLambda{}, "") },
		"invoke: only an alias": func() { completer.Invoke(&fakeLambda{}, "f", ":live") },
		"invoke: one function twice": func() {
			completer.Invoke(&fakeLambda{}, "f:live", "arn:aws:lambda:eu-central-1:123456789012:function:f:beta")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			fn()
		})
	}
}

// A ticket of jobs goes to the drain. What can't be delivered comes again sooner than
// an operation, for which a client may come. Nobody is asked to resume it.
func TestTicketsOfJobs(t *testing.T) {
	t.Parallel()
	const pause = 10 * time.Second
	for name, test := range map[string]struct {
		drain func(context.Context, jobs.Ticket) error
		tries int
		again []jobs.Ticket
		told  completer.TicketOutcomeKind
	}{
		"delivered":        {func(context.Context, jobs.Ticket) error { return nil }, 0, nil, completer.TicketDone},
		"not delivered":    {func(context.Context, jobs.Ticket) error { return errDown }, 0, []jobs.Ticket{{Due: now.Add(pause), Tries: 1}}, completer.TicketFailed},
		"not for long":     {func(context.Context, jobs.Ticket) error { return errDown }, 3, []jobs.Ticket{{Due: now.Add(8 * pause), Tries: 4}}, completer.TicketFailed},
		"not for ever":     {func(context.Context, jobs.Ticket) error { return errDown }, 19, nil, completer.TicketFailed},
		"the drain panics": {func(context.Context, jobs.Ticket) error { panic("x") }, 0, []jobs.Ticket{{Due: now.Add(pause), Tries: 1}}, completer.TicketFailed},
		"no drain":         {nil, 0, []jobs.Ticket{{Due: now.Add(pause), Tries: 1}}, completer.TicketNotMine},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told completer.TicketOutcomeKind
			q, asked := &queue{}, always(completer.TicketOutcome{Kind: completer.TicketDone})
			h := completer.New(q, asked, at, func(o *completer.Options) {
				o.Grace, o.Jobs = time.Hour, test.drain
				o.Resumed = func(_ context.Context, got jobs.Ticket, out completer.TicketOutcome) {
					if told = out.Kind; got.PK != "v1##p" || got.Jobs != "i" {
						t.Errorf("told of %+v", got)
					}
				}
			})
			body := fmt.Sprintf(`{"pk":"v1##p","owner":"","ver":0,"jobs":"i","due_ms":1,"tries":%d}`, test.tries)
			if stay := handle(t, h, events.SQSMessage{MessageId: "m-x", Body: body, EventSource: "aws:sqs"}); stay != nil {
				t.Errorf("%v stay", stay)
			}
			for i := range test.again {
				test.again[i].PK, test.again[i].Jobs = "v1##p", "i"
			}
			if diff := cmp.Diff(test.again, q.got); diff != "" || told != test.told || asked.asked != nil {
				t.Errorf("put back (-want +got):\n%s; told %q, resumed %v", diff, told, asked.asked)
			}
		})
	}
}

var errDown = errors.New("down")
