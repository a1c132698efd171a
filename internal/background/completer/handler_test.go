package completer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
)

var now = time.UnixMilli(1_800_000_000_123)

// records are those of a table, by key.
type records struct {
	store.Store
	all map[string]*store.Record
	err error

	mu    sync.Mutex
	reads int
}

func (r *records) Load(_ context.Context, pk string) (*store.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.all[pk], r.err
}

// abandoned are open operations of these owners, in function f, whose last attempts began an
// hour ago and have been released.
func abandoned(owners ...string) *records {
	r := &records{all: make(map[string]*store.Record)}
	for _, owner := range owners {
		r.all["v1##"+owner] = &store.Record{
			PK: "v1##" + owner, ID: owner, Owner: owner, Ver: 3, State: store.Open, Keep: store.KeepOpen, Input: &store.Input{},
			Run: now.Add(-time.Hour), Handler: store.HandlerID{Function: "f"},
		}
	}
	return r
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

func always(kind completer.TicketOutcomeKind) *answers {
	return &answers{of: func(string) completer.TicketOutcome { return completer.TicketOutcome{Kind: kind, Error: "e"} }}
}

// due is a message with a ticket of that operation, which is due for so long, and was
// received so often.
func due(operation string, since time.Duration, receives int) events.SQSMessage {
	body, err := json.Marshal(map[string]any{"pk": "v1##" + operation, "id": operation, "due_ms": now.Add(-since).UnixMilli()})
	if err != nil {
		panic(err)
	}
	return events.SQSMessage{
		MessageId: "m-" + operation, ReceiptHandle: "r-" + operation, Body: string(body), EventSource: "aws:sqs",
		Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(receives), "SentTimestamp": strconv.FormatInt(now.Add(-since).UnixMilli(), 10)},
	}
}

func at(o *completer.Options) { o.Now = func() time.Time { return now } }

func newHandler(f *fakeSQS, r *records, resumer completer.Resumer, optFns ...func(*completer.Options)) *completer.Handler {
	return completer.New(r, completer.NewQueue(f, "url"), resumer, append([]func(*completer.Options){at}, optFns...)...)
}

// handle lets h work on messages as the runtime does. It returns the operations whose
// messages are reported as failed.
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

// A ticket is one message: nothing that becomes of it sends another, which Lambda would take
// for a loop. It waits as long as SQS allows, counted from its receipt.
func TestTicketWaitsWhereItIs(t *testing.T) {
	t.Parallel()
	f, asked := &fakeSQS{waiting: "0"}, always(completer.TicketDone)
	r := abandoned("now", "again", "held", "overheld", "done", "of another key")
	r.all["v1##again"].Run, r.all["v1##again"].Tries = now.Add(-time.Minute), 1
	r.all["v1##held"].Lease = now.Add(time.Hour)
	r.all["v1##overheld"].Lease = now.Add(48 * time.Hour)
	r.all["v1##done"].State = store.Done
	r.all["v1##of another key"].ID = "another"
	r.all["v1##often"] = r.all["v1##again"].Clone()
	r.all["v1##often"].PK, r.all["v1##often"].ID = "v1##often", "often"
	h := newHandler(f, r, asked)
	stay := handle(t, h, due("early", -time.Millisecond, 1), due("far", -100*time.Hour, 1), due("now", 0, 1), due("again", 0, 1), due("often", 0, 820), due("held", 0, 1),
		due("overheld", 0, 1), due("done", 0, 1), due("of another key", 0, 1), due("gone", 0, 1))
	if diff := cmp.Diff([]string{"early", "far", "again", "often", "held"}, stay); diff != "" {
		t.Errorf("reported as failed (-want +got):\n%s", diff)
	}
	want := map[string]time.Duration{
		"early": time.Second, "far": 11*time.Hour + 30*time.Minute, "again": 9 * time.Minute, "often": 30 * time.Minute, "held": time.Hour + state.DefaultGrace,
	}
	if diff := cmp.Diff(want, f.hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	if !slices.Equal(asked.asked, []string{"now"}) || r.reads != 8 || len(f.calls) != 0 {
		t.Errorf("resumed %v with %d reads; sent %v", asked.asked, r.reads, f.calls)
	}
}

// The time that a batch has taken counts towards the longest wait.
func TestLongestWaitBeginsAtTheReceipt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSQS{waiting: "0"}
		r := &records{all: map[string]*store.Record{"v1##o": {
			PK: "v1##o", ID: "o", Owner: "o", Ver: 1, State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Run: time.Now().Add(-time.Hour),
		}}}
		slow := completer.InProcess(func(context.Context, jobs.Ticket) error {
			<-time.After(time.Minute)
			return &idem.Error{RetryAfter: 20 * time.Hour, Err: idem.ErrInFlight}
		})
		h := completer.New(r, completer.NewQueue(f, "url"), slow)
		if stay := handle(t, h, events.SQSMessage{MessageId: "m-o", ReceiptHandle: "r-o", Body: `{"pk":"v1##o","id":"o"}`, EventSource: "aws:sqs"}); len(stay) != 1 {
			t.Errorf("%v stay", stay)
		}
		if got, want := f.hidden["o"], 11*time.Hour+29*time.Minute; got != want {
			t.Errorf("hidden for %v, want %v", got, want)
		}
	})
}

// What comes of a ticket decides whether it waits on, for how long, and whether people hear
// of it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Minute
	for name, test := range map[string]struct {
		outcome completer.TicketOutcome
		tries   int           // of the record
		since   time.Duration // of the record's last attempt
		waits   time.Duration // 0: the ticket ends
		listed  string
	}{
		"done":                               {completer.TicketOutcome{Kind: completer.TicketDone}, 0, time.Hour, 0, ""},
		"somebody went on: look again":       {completer.TicketOutcome{Kind: completer.TicketMoved}, 0, time.Hour, grace, ""},
		"stuck":                              {completer.TicketOutcome{Kind: completer.TicketStuck, Error: "e"}, 0, time.Hour, 0, ""},
		"in flight: its lease and the grace": {completer.TicketOutcome{Kind: completer.TicketInFlight, RetryAfter: 20 * time.Second}, 0, time.Hour, 20*time.Second + grace, ""},
		"failed":                             {completer.TicketOutcome{Kind: completer.TicketFailed}, 0, time.Hour, 2 * grace, ""},
		"failed again":                       {completer.TicketOutcome{Kind: completer.TicketFailed}, 1, time.Hour, 4 * grace, ""},
		"failed often: an hour":              {completer.TicketOutcome{Kind: completer.TicketFailed}, 8, 2 * time.Hour, time.Hour, ""},
		"failed after 3 hours":               {completer.TicketOutcome{Kind: completer.TicketFailed}, 0, 4 * time.Hour, 2 * grace, ""},
		"no answer: no try":                  {completer.TicketOutcome{Kind: completer.TicketFailed, Unanswered: true}, 0, time.Hour, grace, ""},
		"no answer after 3 hours":            {completer.TicketOutcome{Kind: completer.TicketFailed, Unanswered: true}, 1, 4 * time.Hour, 2 * grace, ""},
		"in flight for longer":               {completer.TicketOutcome{Kind: completer.TicketInFlight}, 0, 4 * time.Hour, grace, ""},
		"no handler for it: the sweep's":     {completer.TicketOutcome{Kind: completer.TicketNotMine, Error: "e"}, 0, time.Hour, 0, "no handler: e"},
		"altered by hand":                    {completer.TicketOutcome{Kind: completer.TicketUnreadable, Error: "e"}, 0, time.Hour, 0, store.ErrCorrupt.Error() + ": e"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, r := &fakeSQS{waiting: "0"}, abandoned("o")
			r.all["v1##o"].Tries, r.all["v1##o"].Run = test.tries, now.Add(-test.since)
			var told []completer.TicketOutcomeKind
			var listed string
			var log bytes.Buffer
			h := newHandler(f, r, &answers{of: func(string) completer.TicketOutcome { return test.outcome }}, func(o *completer.Options) {
				o.Grace, o.Logger = grace, slog.New(slog.NewTextHandler(&log, nil))
				o.Resumed = func(_ context.Context, got jobs.Ticket, out completer.TicketOutcome) {
					told = append(told, out.Kind)
					if got.Owner != "o" || got.Ver != 3 || !got.Released || got.Function != "f" {
						t.Errorf("told of %+v", got)
					}
				}
				o.Listed = func(_ context.Context, got jobs.Ticket, why error) error {
					listed = why.Error()
					if got.PK != "v1##o" || got.Operation != "o" {
						t.Errorf("listed %+v", got)
					}
					return nil
				}
			})
			stay := handle(t, h, due("o", time.Second, 1))
			if (stay != nil) != (test.waits > 0) || f.hidden["o"] != test.waits || listed != test.listed {
				t.Errorf("%v stay, hidden for %v, listed %q", stay, f.hidden, listed)
			}
			if !slices.Equal(told, []completer.TicketOutcomeKind{test.outcome.Kind}) || r.reads != 1 {
				t.Errorf("told %v, read %d times", told, r.reads)
			}
			if people := listed != "" || test.outcome.Kind == completer.TicketStuck || test.outcome.Kind == completer.TicketFailed && stay == nil; people != strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log says %s", &log)
			}
		})
	}
}

// virtual runs a subtest whose time is virtual.
func virtual(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// Whatever becomes of one ticket, the others of its batch go their way.
func TestOneTicketDoesNotStopTheBatch(t *testing.T) {
	t.Parallel()
	for concurrency, minutes := range map[int]time.Duration{0: 9, 1: 9, 4: 3} {
		virtual(t, fmt.Sprint(concurrency, " at once"), func(t *testing.T) {
			began := time.Now()
			var mu sync.Mutex
			outcomes := make(map[completer.TicketOutcomeKind]int)
			asked := &answers{of: func(owner string) completer.TicketOutcome {
				if owner == "panics" {
					panic("secret of a client")
				}
				<-time.After(time.Minute)
				return completer.TicketOutcome{Kind: completer.TicketDone}
			}}
			batch, owners := []events.SQSMessage{{MessageId: "m-garbage", Body: "{", EventSource: "aws:sqs"}, due("panics", 1, 1)}, []string{"panics"}
			for i := range 9 {
				owners = append(owners, fmt.Sprint("good", i))
				batch = append(batch, due(owners[i+1], 1, 1))
			}
			h := newHandler(&fakeSQS{waiting: "0"}, abandoned(owners...), asked, func(o *completer.Options) {
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
			if stay := handle(t, h, batch...); !slices.Equal(stay, []string{"panics"}) {
				t.Errorf("%v stay", stay)
			}
			if diff := cmp.Diff(map[completer.TicketOutcomeKind]int{completer.TicketDone: 9, completer.TicketFailed: 1}, outcomes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if took := time.Since(began); took != minutes*time.Minute {
				t.Errorf("%v for nine of a minute", took)
			}
		})
	}
}

// If a message can't be hidden, the queue's own visibility timeout hides it: it is reported as
// failed all the same. It is also if a record can't be read, or an operation can't be listed.
func TestTicketIsKeptWhateverFails(t *testing.T) {
	t.Parallel()
	unlisted := func(o *completer.Options) {
		o.Listed = func(context.Context, jobs.Ticket, error) error { return errDown }
	}
	const crowd = "60001"
	for name, test := range map[string]struct {
		queue  error
		table  error
		record bool   // read
		crowd  string // messages that wait
		told   completer.TicketOutcomeKind
		hidden map[string]time.Duration
	}{
		"hidden by the queue's own":     {errDown, nil, true, "0", completer.TicketFailed, nil},
		"the record can't be read":      {nil, errDown, false, "0", completer.TicketFailed, map[string]time.Duration{"o": state.DefaultGrace}},
		"nor the rest of it":            {nil, errDown, true, "0", completer.TicketFailed, map[string]time.Duration{"o": state.DefaultGrace}},
		"it is sealed, and isn't there": {nil, store.ErrSealed, false, "0", completer.TicketFailed, map[string]time.Duration{"o": state.DefaultGrace}},
		"the operation isn't listed":    {nil, nil, true, "0", completer.TicketNotMine, map[string]time.Duration{"o": state.DefaultGrace}},
		"the record is unreadable":      {nil, store.ErrCorrupt, false, "0", completer.TicketUnreadable, map[string]time.Duration{"o": state.DefaultGrace}},
		"nor in a crowd":                {nil, nil, true, crowd, completer.TicketNotMine, map[string]time.Duration{"o": state.DefaultGrace}},
	} {
		f, r := &fakeSQS{waiting: test.crowd, noHide: test.queue}, abandoned("o")
		if r.err = test.table; !test.record {
			r.all = nil
		}
		resumer := completer.TicketDone // who isn't asked
		if test.table == nil {
			resumer = test.told
		}
		var told completer.TicketOutcomeKind
		var log bytes.Buffer
		h := newHandler(f, r, always(resumer), unlisted, func(o *completer.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.Resumed = func(_ context.Context, _ jobs.Ticket, o completer.TicketOutcome) { told = o.Kind }
		})
		if stay := handle(t, h, due("o", 1, 1)); !slices.Equal(stay, []string{"o"}) || told != test.told {
			t.Errorf("%s: %v stay, told %s", name, stay, told)
		}
		if strings.Contains(log.String(), "the visibility timeout of its queue") != (test.queue != nil) {
			t.Errorf("%s: the log says %s", name, &log)
		}
		if diff := cmp.Diff(test.hidden, f.hidden); diff != "" {
			t.Errorf("%s: hidden (-want +got):\n%s", name, diff)
		}
	}
}

// A record whose contents are sealed is no obstacle: only the function needs them.
func TestWorkerWithoutAKeyHandsTicketsOn(t *testing.T) {
	t.Parallel()
	r, asked := abandoned("o"), always(completer.TicketDone)
	r.err = store.ErrSealed
	if stay := handle(t, newHandler(&fakeSQS{}, r, asked), due("o", 1, 1)); stay != nil || len(asked.asked) != 1 {
		t.Errorf("%v stay, resumed %v", stay, asked.asked)
	}
}

// What is no ticket is listed at its first receipt, and what has been tried for ten days: the
// queue deletes after 14 days, and that is no dead letter.
func TestTicketsThatArePeoples(t *testing.T) {
	t.Parallel()
	asked := always(completer.TicketDone)
	listed := make(map[string]string)
	h := newHandler(&fakeSQS{waiting: "0"}, abandoned("old", "young"), asked, func(o *completer.Options) {
		o.Listed = func(_ context.Context, t jobs.Ticket, why error) error { listed[t.PK] = t.Operation; return nil }
	})
	bodies := []string{
		``, `null`, `{}`, `[]`, `"pk"`, `{"pk":"p"}`, `{"id":"i"}`, `{"pk":"p","id":1}`, `{"pk":"p","id":"i","due_ms":"1"}`,
		`{"pk":"p","id":"i"} {"pk":"p","id":"j"}`, string(envelope.EncodeTicket(jobs.Ticket{PK: "p", Owner: "o", Ver: 1})),
	}
	want := map[string]string{"v1##old": "old", "v1##first": "first"}
	for i, body := range bodies {
		if stay := handle(t, h, events.SQSMessage{MessageId: strconv.Itoa(i), Body: body, EventSource: "aws:sqs"}); stay != nil {
			t.Errorf("%s stays", body)
		}
		want["samekey#ticket#"+strconv.Itoa(i)] = ""
	}
	const life = 10 * 24 * time.Hour
	if stay := handle(t, h, due("old", life+1e6, 300), due("young", life, 300), due("first", now.Sub(time.UnixMilli(1)), 300)); stay != nil {
		t.Errorf("%v stay", stay)
	}
	if diff := cmp.Diff(want, listed); diff != "" || !slices.Equal(asked.asked, []string{"young"}) {
		t.Errorf("listed (-want +got):\n%s; resumed %v", diff, asked.asked)
	}
}

// SQS gives nothing more to receive at 120,000 messages in flight. Above half of that a ticket
// ends rather than wait, and the sweep makes it anew. The queue is asked once a minute.
func TestTooManyTicketsDontWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeSQS{waiting: "60001"}
		h := completer.New(abandoned(), completer.NewQueue(f, "url"), always(completer.TicketDone), func(o *completer.Options) {
			o.Now = func() time.Time { return now }
		})
		early := due("early", -time.Minute, 1)
		for range 3 {
			if stay := handle(t, h, early); stay != nil || f.hidden != nil || f.asked != 1 {
				t.Errorf("%v stay, hidden %v, asked %d times", stay, f.hidden, f.asked)
			}
		}
		f.waiting = "" // no answer: as it was
		<-time.After(time.Minute)
		if stay := handle(t, h, early); stay != nil || f.asked != 2 {
			t.Errorf("%v stay, asked %d times", stay, f.asked)
		}
		f.waiting = "60000"
		<-time.After(time.Minute)
		if stay := handle(t, h, early); len(stay) != 1 || f.hidden["early"] != time.Minute || f.asked != 3 {
			t.Errorf("%v stay, hidden %v, asked %d times", stay, f.hidden, f.asked)
		}
	})
}

// While a function gives no answer, one operation a minute tries and the others wait. First
// comes one whose caller's have not failed, then one that has not failed, then the one that
// is due for the longest. Another function's don't wait. An answer ends it.
func TestFunctionThatGivesNoAnswerIsProbed(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprint("o", i))
	}
	r, clock, down := abandoned(append(names, "other", "late")...), now, true
	for i, name := range names {
		r.all["v1##"+name].Run = now.Add(-time.Hour - time.Duration(i)*time.Minute) // o5 is due for the longest
	}
	r.all["v1##other"].Handler.Function = "g"
	asked := &answers{of: func(owner string) completer.TicketOutcome {
		if down && owner != "other" {
			return completer.TicketOutcome{Kind: completer.TicketFailed, Unanswered: true}
		}
		return completer.TicketOutcome{Kind: completer.TicketDone}
	}}
	f := &fakeSQS{waiting: "0"}
	h := newHandler(f, r, asked, func(o *completer.Options) { o.Now = func() time.Time { return clock } })
	tried := func(of ...string) []string {
		t.Helper()
		var batch []events.SQSMessage
		for _, name := range of {
			batch = append(batch, due(name, 1, 1))
		}
		asked.asked = nil
		if stay := handle(t, h, batch...); down && len(stay) != len(of)-len(slices.DeleteFunc(slices.Clone(of), func(o string) bool { return o != "other" })) {
			t.Errorf("of %v %v stay", of, stay)
		}
		return asked.asked
	}
	if diff := cmp.Diff([]string{"o0", "o1", "o2", "other"}, tried(append(names, "other")...)); diff != "" || f.hidden["o3"] != time.Minute {
		t.Errorf("tried (-want +got):\n%s; hidden for %v", diff, f.hidden)
	}
	r.all["v1##late"].Run, r.all["v1##late"].Scope = now.Add(-10*time.Minute), "jwt:another"
	for probe, want := range []string{"late", "o5", "o4", "o3", "o5", "o5"} {
		clock = clock.Add(time.Minute - time.Millisecond)
		if got := tried(append(names, "late")...); got != nil {
			t.Errorf("probe %d: %v tried before its time", probe, got)
		}
		clock = clock.Add(time.Millisecond)
		if got := tried(append(names, "late")...); !slices.Equal(got, []string{want}) || f.hidden["o0"] != time.Minute {
			t.Errorf("probe %d: tried %v, want %s; hidden for %v", probe, got, want, f.hidden)
		}
	}
	down, clock = false, clock.Add(time.Minute)
	if got := tried(names...); len(got) != 6 {
		t.Errorf("it answers again, and only %v are tried", got)
	}
}

// Each sweep makes another ticket for an operation that can't be tried. While an older one
// waits they end, and the stream's never does.
func TestTicketsOfSweepsDontMultiply(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, tt := range map[string]struct {
		overdue time.Duration
		down    bool // the function, for all that the worker knows: nothing is tried
		stay    []string
	}{
		"for 4 hours":              {4 * hour, false, []string{"older", "stream"}},
		"for 4 hours, and untried": {4 * hour, true, []string{"older", "stream"}},
		"for an hour":              {hour, false, []string{"older", "stream", "younger"}},
		"for an hour, and untried": {hour, true, []string{"older", "stream", "younger"}},
	} {
		h := newHandler(&fakeSQS{waiting: "0"}, abandoned("o", "x", "y", "z"), &answers{of: func(string) completer.TicketOutcome {
			return completer.TicketOutcome{Kind: completer.TicketFailed, Unanswered: true}
		}}, func(o *completer.Options) { o.Now = func() time.Time { return now.Add(tt.overdue - hour) } })
		if tt.down {
			handle(t, h, due("x", hour, 1), due("y", hour, 1), due("z", hour, 1))
		}
		var stay []string
		for _, m := range []struct {
			id   string
			sent time.Duration // ago
		}{{"older", hour}, {"younger", time.Minute}, {"stream", 2 * hour}, {"younger", time.Minute}, {"stream", 2 * hour}} {
			ticket := due("o", hour, 1)
			ticket.MessageId, ticket.Attributes["SentTimestamp"] = "m-"+m.id, strconv.FormatInt(now.Add(-m.sent).UnixMilli(), 10)
			stay = append(stay, handle(t, h, ticket)...)
		}
		slices.Sort(stay)
		if diff := cmp.Diff(tt.stay, slices.Compact(stay)); diff != "" {
			t.Errorf("%s: wait (-want +got):\n%s", name, diff)
		}
	}
}

// Beside a probe the others wait a minute. Any answer to it ends the waiting.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	clock, o := now, completer.TicketOutcome{Kind: completer.TicketFailed, Unanswered: true}
	f := &fakeSQS{waiting: "0"}
	var h *completer.Handler
	inner := 0
	asked := &answers{of: func(owner string) completer.TicketOutcome {
		if owner == "probe" {
			handle(t, h, due("beside", 1, 1))
		}
		if owner == "beside" {
			inner++
		}
		return o
	}}
	h = newHandler(f, abandoned("a", "b", "c", "probe", "beside"), asked, func(o *completer.Options) { o.Now = func() time.Time { return clock } })
	handle(t, h, due("a", 1, 1), due("b", 1, 1), due("c", 1, 1))
	clock, o.Unanswered = clock.Add(time.Minute), false
	if handle(t, h, due("probe", 1, 1)); inner != 0 || f.hidden["beside"] != time.Minute {
		t.Errorf("tried %d beside the probe, hidden %v", inner, f.hidden)
	}
	if handle(t, h, due("beside", 1, 1)); inner != 1 {
		t.Error("nobody probes any more")
	}
}

// With no time left nothing is begun. A ticket that another one has kept waiting comes again
// soon.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := always(completer.TicketDone)
		short, cancel := context.WithTimeout(t.Context(), time.Second-1)
		defer cancel()
		enough, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		over, cancelOver := context.WithCancel(t.Context())
		cancelOver()
		for name, tc := range map[string]struct {
			ctx    context.Context
			hidden map[string]time.Duration
		}{"less than a second": {short, map[string]time.Duration{"a": 10 * time.Second, "b": 10 * time.Second}}, "none": {over, nil}} {
			f := &fakeSQS{waiting: "0"}
			re, err := newHandler(f, abandoned("a", "b"), asked).Handle(tc.ctx, events.SQSEvent{Records: []events.SQSMessage{due("a", 1, 3), due("b", 1, 3)}})
			if err != nil || len(re.BatchItemFailures) != 2 || asked.asked != nil {
				t.Errorf("%s: got %+v, %v; resumed %v", name, re, err, asked.asked)
			}
			if diff := cmp.Diff(tc.hidden, f.hidden); diff != "" {
				t.Errorf("%s: hidden (-want +got):\n%s", name, diff)
			}
		}
		if re, _ := newHandler(&fakeSQS{}, abandoned("a"), asked).Handle(enough, events.SQSEvent{Records: []events.SQSMessage{due("a", 1, 3)}}); len(re.BatchItemFailures) != 0 || len(asked.asked) != 1 {
			t.Errorf("a second: got %+v, resumed %v", re, asked.asked)
		}
	})
}

func TestOtherSourcesAreRefused(t *testing.T) {
	t.Parallel()
	h := newHandler(&fakeSQS{}, abandoned(), always(completer.TicketDone))
	const noJSON, none = "unexpected end of JSON input", "it has no records"
	for payload, want := range map[string]string{
		``: noJSON, `{`: noJSON, `null`: none, `{}`: none, `{"Records":[]}`: none,
		`{"Records":[{"eventSource":"aws:dynamodb"}]}`: `a record is of "aws:dynamodb"`, `{"Records":[{"body":"{}"}]}`: `a record is of ""`,
	} {
		if out, err := h.Invoke(t.Context(), []byte(payload)); err == nil || err.Error() != "completer: not an SQS event: "+want {
			t.Errorf("%s: answered %s, %v", payload, out, err)
		}
	}
}

func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	asked, q := always(completer.TicketDone), completer.NewQueue(&fakeSQS{}, "url")
	opt := func(fn func(*completer.Options)) func() { return func() { completer.New(abandoned(), q, asked, fn) } }
	for name, fn := range map[string]func(){
		"no store":             func() { completer.New(nil, q, asked) },
		"no queue":             func() { completer.New(abandoned(), nil, asked) },
		"no resumer":           func() { completer.New(abandoned(), q, nil) },
		"negative grace":       opt(func(o *completer.Options) { o.Grace = -1 }),
		"more than a day":      opt(func(o *completer.Options) { o.Grace = 24*time.Hour + 1 }),
		"negative concurrency": opt(func(o *completer.Options) { o.Concurrency = -1 }),
		"queue: no client":     func() { completer.NewQueue(nil, "url") },
		"queue: no url":        func() { completer.NewQueue(&fakeSQS{}, "") },
		"queue: FIFO":          func() { completer.NewQueue(&fakeSQS{}, "https://sqs/1/q.fifo") },
		"queue: no role": func() {
			completer.NewQueue(&fakeSQS{}, "url", func(o *completer.QueueOptions) { o.Schedule = (&fakeScheduler{}).CreateSchedule })
		},
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
	opt(func(o *completer.Options) { o.Grace = 24 * time.Hour })()
}

// A ticket of jobs goes to the drain. What can't be delivered is tried sooner than an
// operation, for which a client may come. Nobody is asked to resume it.
func TestTicketsOfJobs(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, jobs.Ticket) error { return errDown }
	for name, test := range map[string]struct {
		drain    func(context.Context, jobs.Ticket) error
		due      time.Duration // ago
		receives int
		waits    time.Duration
		told     completer.TicketOutcomeKind
		listed   bool
	}{
		"delivered":        {func(context.Context, jobs.Ticket) error { return nil }, 1, 1, 0, completer.TicketDone, false},
		"not delivered":    {fails, 1, 1, 10 * time.Second, completer.TicketFailed, false},
		"not for long":     {fails, time.Hour, 4, 80 * time.Second, completer.TicketFailed, false},
		"its fourth try":   {fails, 70 * time.Second, 20, 80 * time.Second, completer.TicketFailed, false},
		"only waited":      {fails, time.Second, 20, 10 * time.Second, completer.TicketFailed, false},
		"not for days":     {fails, 24 * time.Hour, 200, time.Hour, completer.TicketFailed, false},
		"nobody knows":     {fails, 1, 0, 10 * time.Second, completer.TicketFailed, false},
		"the drain panics": {func(context.Context, jobs.Ticket) error { panic("x") }, 1, 1, 10 * time.Second, completer.TicketFailed, false},
		"no drain":         {nil, 1, 1, 0, completer.TicketNotMine, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told completer.TicketOutcomeKind
			listed := false
			f, r, asked := &fakeSQS{waiting: "0"}, abandoned(), always(completer.TicketDone)
			h := newHandler(f, r, asked, func(o *completer.Options) {
				o.Grace, o.Jobs = time.Hour, test.drain
				o.Listed = func(context.Context, jobs.Ticket, error) error { listed = true; return nil }
				o.Resumed = func(_ context.Context, got jobs.Ticket, out completer.TicketOutcome) {
					if told = out.Kind; got.PK != "v1##p" || got.Operation != "p" || !got.Jobs {
						t.Errorf("told of %+v", got)
					}
				}
			})
			m := due("p", test.due, test.receives)
			if test.receives == 0 {
				m.Attributes["ApproximateReceiveCount"] = "9223372036854775808" // no int64
			}
			m.Body = strings.Replace(m.Body, "{", `{"jobs":true,`, 1)
			if stay := handle(t, h, m); (stay != nil) != (test.waits > 0) || f.hidden["p"] != test.waits {
				t.Errorf("%v stay, hidden %v", stay, f.hidden)
			}
			if told != test.told || listed != test.listed || asked.asked != nil || r.reads != 0 {
				t.Errorf("told %q, listed %t, resumed %v, read %d times", told, listed, asked.asked, r.reads)
			}
		})
	}
}

var errDown = errors.New("down")
