package stream_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// A job is delivered at its time, and not before: its record holds it, and a ticket for each
// time has it delivered. Jobs without a time don't wait for it. The record is let go with its
// last job.
func TestJobWaitsForItsTime(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, queue, out := tab.tail(t), &tickets{}, &outbox{}
	hooks := 0
	d := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) {
		o.Delayed, o.Hooks.Delayed = queue, func(context.Context, jobs.Ticket) { hooks++ }
	})
	r := tab.later(t, map[string]time.Duration{"0.0": 20 * time.Minute, "0.1": 20 * time.Minute, "0.2": 3 * time.Hour, "0.3": time.Hour})
	tab.atOnce(t, r, "0.3")
	gets := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), out.kinds()); diff != "" {
			t.Fatalf("%s: delivered (-want +got):\n%s", when, diff)
		}
	}
	if seq := handle(t, d, feed.event(t)); seq != "" {
		t.Errorf("reported %s", seq)
	}
	gets("staged", "job 0.3")
	got := queue.all()
	if len(got) != 2 || !got[0].Jobs || got[0].PK != r.PK || got[0].Operation != r.ID || !got[0].Due.Equal(r.Jobs["0.0"].At) || !got[1].Due.Equal(r.Jobs["0.2"].At) || hooks != 0 {
		t.Fatalf("tickets %+v, %d told as delayed", got, hooks)
	}
	retry := func(when string, want ...string) {
		t.Helper()
		if err := d.Retry(t.Context(), got[0]); err != nil {
			t.Error(err)
		}
		gets(when, want...)
	}
	retry("too early", "job 0.3")
	tab.kept(t, r.PK, "0.0", "0.1", "0.2")
	tab.passes(t, r, 0, "0.0", "0.1")
	tab.Transport.Reset()
	retry("the first time", "job 0.3", "job 0.0", "job 0.1")
	if diff := cmp.Diff(calls{"GetItem": 1, "UpdateItem": 2}, tab.Transport.Calls()); diff != "" {
		t.Errorf("calls of a time (-want +got):\n%s", diff)
	}
	tab.kept(t, r.PK, "0.2")
	retry("again", "job 0.3", "job 0.0", "job 0.1")
	tab.passes(t, r, 0, "0.2")
	retry("the second time", "job 0.3", "job 0.0", "job 0.1", "job 0.2")
	tab.letGo(t, r.PK)
	if len(queue.all()) != 0 {
		t.Error("more tickets")
	}
}

// Without a ticket, as where the queue refused it, a sweep delivers a job once its time has
// passed by as much as the stream may be late. It calls nothing late before.
func TestSweepDeliversAtItsTime(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, out := tab.tail(t), &outbox{}
	d := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) {
		o.Delayed = &tickets{fail: func(jobs.Ticket) error { return errInjected }}
	})
	r := tab.later(t, map[string]time.Duration{"0.0": 2 * time.Hour})
	if seq := handle(t, d, feed.event(t)); seq != "" {
		t.Errorf("reported %s", seq)
	}
	steps := []struct {
		name      string
		ahead     time.Duration
		passed    time.Duration
		listed, n int
	}{
		{"to come", time.Hour, 0, 0, 0},
		{"just passed", 2*time.Hour + 10*time.Minute, 0, 0, 0},
		{"late by a clock that is ahead", 3 * time.Hour, 0, 1, 0},
		{"late", time.Hour, time.Minute, 1, 1},
	}
	for _, tt := range steps {
		if tt.passed > 0 {
			tab.passes(t, r, tt.passed, "0.0")
		}
		rep, err := tab.sweep(fast(tt.ahead), func(o *stream.SweepOptions) { o.Drain = d }).Run(t.Context())
		if err != nil && tt.n > 0 {
			t.Errorf("%s: %v", tt.name, err)
		}
		if rep.ByReason[state.ReasonUndelivered].Count != tt.listed || rep.Delivered != tt.n || len(out.kinds()) != tt.n {
			t.Errorf("%s: %d listed, %d delivered, %v", tt.name, rep.ByReason[state.ReasonUndelivered].Count, rep.Delivered, out.kinds())
		}
	}
}

// A drain that is late decides by the time of the removal: a job that was cancelled by it stays
// cancelled, though its time has come since. The stream tells that time in whole seconds, so a
// job that was due in that second is delivered rather than lost.
func TestLateDrainKeepsTheCancellation(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, out := tab.tail(t), &outbox{}
	var lost []string
	d := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) {
		o.Delayed, o.Hooks.JobLost = &tickets{}, func(_ context.Context, e stream.Entry) { lost = append(lost, e.Job) }
	})
	removal := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	r := tab.later(t, map[string]time.Duration{"0.0": time.Hour, "0.1": time.Hour, "0.2": time.Hour, "0.3": time.Hour, "0.4": time.Hour})
	for name, at := range map[string]time.Duration{"0.0": -time.Minute, "0.1": 999 * time.Millisecond, "0.2": time.Second, "0.3": time.Minute} {
		tab.at(t, r, name, "SET jobs.#j.#at = :at", map[string]types.AttributeValue{":at": tabletest.Num(removal.Add(at).UnixMilli())})
	}
	feed.event(t)
	tab.remove(t, r.PK)
	ev := feed.event(t)
	for i := range ev.Records {
		ev.Records[i].Change.ApproximateCreationDateTime.Time = removal
	}
	if seq := handle(t, d, ev); seq != "" {
		t.Errorf("reported %s", seq)
	}
	if diff := cmp.Diff([]string{"job 0.0", "job 0.1"}, out.kinds()); diff != "" || !slices.Equal(lost, []string{"0.2", "0.3", "0.4"}) {
		t.Errorf("lost %v, delivered (-want +got):\n%s", lost, diff)
	}
}

// A cancelled job is delivered by nothing that is late to hear of it: neither by its ticket, nor
// by the image of its commit, though its time has come.
func TestCancelledJobIsNotDelivered(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed, queue, out := tab.tail(t), &tickets{}, &outbox{}
	d := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) { o.Delayed = queue })
	r := tab.later(t, map[string]time.Duration{"0.0": 2 * time.Minute, "0.1": time.Hour})
	ev := feed.event(t)
	if n, err := stream.Cancel(t.Context(), tab.Store, r.PK, r.ID, "jane", "0.0"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, rec := range ev.Records { // the stream comes to it after the job's time
		job := rec.Change.NewImage["jobs"].Map()["0.0"].Map()
		job["at"] = events.NewNumberAttribute(strconv.FormatInt(time.Now().Add(-time.Second).UnixMilli(), 10))
	}
	handle(t, d, ev)
	got := queue.all()
	if len(got) != 2 {
		t.Fatalf("tickets %+v", got)
	}
	for _, ticket := range got {
		if err := d.Retry(t.Context(), ticket); err != nil {
			t.Error(err)
		}
	}
	if kinds := out.kinds(); len(kinds) != 0 {
		t.Errorf("delivered %v", kinds)
	}
	tab.kept(t, r.PK, "0.1")
}

// Of a drain and an operator, the first write wins: a job whose delivery has begun stays, though
// its sink has it only later.
//
//nolint:tparallel // the steps are one story on one table
func TestCancelRacesTheDrain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	cancels := func(r *store.Record) int {
		n, err := stream.Cancel(t.Context(), tab.Store, r.PK, r.ID, "jane", "0.0")
		if err != nil {
			t.Error(err)
		}
		return n
	}
	due := func() (*store.Record, jobs.Ticket) {
		r := tab.later(t, map[string]time.Duration{"0.0": time.Hour, "0.1": time.Hour})
		tab.passes(t, r, 0, "0.0")
		return r, jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}
	}
	t.Run("begun", func(t *testing.T) {
		r, ticket := due()
		delivered := 0
		d := stream.NewDrain(tab.Store, jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
			if n := cancels(r); n != 0 {
				t.Errorf("%d cancelled on their way", n)
			}
			if delivered++; delivered == 1 {
				return jobs.ErrSinkDown
			}
			return nil
		}))
		if err := d.Retry(t.Context(), ticket); err == nil {
			t.Error("the ticket doesn't come again")
		}
		now, err := tab.Store.Load(t.Context(), r.PK)
		if err != nil || now.Jobs["0.0"].Begun.IsZero() || !now.Jobs["0.1"].Begun.IsZero() {
			t.Errorf("%+v, %v", now.Jobs, err)
		}
		tab.Transport.Reset()
		if err := d.Retry(t.Context(), ticket); err != nil || delivered != 2 {
			t.Errorf("%d deliveries, %v", delivered, err)
		}
		if diff := cmp.Diff(calls{"GetItem": 2, "UpdateItem": 1}, tab.Transport.Calls()); diff != "" { // its begin is noted once
			t.Errorf("calls of another try (-want +got):\n%s", diff)
		}
		tab.kept(t, r.PK, "0.1")
	})
	t.Run("as many as a record takes", func(t *testing.T) { // the conditions name each of them
		at := map[string]time.Duration{}
		for i := range 50 {
			at["0."+strconv.Itoa(i)] = -time.Minute
		}
		r := tab.later(t, at)
		if n, err := stream.Cancel(t.Context(), tab.Store, r.PK, r.ID, "jane"); n != 50 || err != nil {
			t.Errorf("%d cancelled, %v", n, err)
		}
		r, out := tab.later(t, at), &outbox{}
		if err := stream.NewDrain(tab.Store, out).Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err != nil || len(out.kinds()) != 50 {
			t.Errorf("%d delivered, %v", len(out.kinds()), err)
		}
		tab.letGo(t, r.PK)
	})
}

// scheduling is a queue of tickets with its scheduler, which count their calls.
type scheduling struct {
	*mailbox
	calls map[string]int
	made  []string
}

func (s *scheduling) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	s.calls["SendMessageBatch"]++
	return s.mailbox.SendMessageBatch(ctx, in, optFns...)
}

func (s *scheduling) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	s.calls["GetQueueAttributes"]++
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{string(in.AttributeNames[0]): "arn:aws:sqs:us-east-1:1:tickets"}}, nil
}

func (s *scheduling) CreateSchedule(_ context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	s.calls["CreateSchedule"]++
	s.made = append(s.made, *in.Target.Input)
	return &scheduler.CreateScheduleOutput{}, nil
}

// What a later job costs: its ticket is a message of the queue, or beyond the queue's delay a
// schedule; at its time the ticket costs a read of the record, and the job's delivery two updates:
// that it begins, so that nobody cancels it any more, and that it was made.
func TestCallsPerLaterJob(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in     time.Duration
		staged calls
	}{
		"hidden in the queue": {10 * time.Minute, calls{"SendMessageBatch": 1}},
		"a schedule":          {10 * time.Hour, calls{"GetQueueAttributes": 1, "CreateSchedule": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			feed, q, out := tab.tail(t), &scheduling{mailbox: &mailbox{}, calls: calls{}}, &outbox{}
			w := worker.New(tab.Client, tab.Store, completer.NewQueue(q, "https://tickets", func(o *completer.QueueOptions) { o.Schedule, o.Role = q.CreateSchedule, "role" }), func(o *worker.Options) {
				o.Sink, o.Tickets = out, ticketsIn(11*time.Hour)
			})
			r := tab.later(t, map[string]time.Duration{"0.0": tt.in})
			handle(t, w, feed.event(t))
			if diff := cmp.Diff(tt.staged, q.calls); diff != "" || tab.Transport.Total() != 0 {
				t.Errorf("when it is staged, %v, and (-want +got):\n%s", tab.Transport.Calls(), diff)
			}
			q.messages = append(q.messages, q.made...)
			tab.passes(t, r, 0, "0.0")
			tab.Transport.Reset()
			clear(q.calls)
			q.deliver(t, w)
			if diff := cmp.Diff(calls{"GetItem": 1, "UpdateItem": 2}, tab.Transport.Calls()); diff != "" || len(q.calls) != 0 || len(out.kinds()) != 1 || q.len() != 0 {
				t.Errorf("at its time %v, delivered %v, and (-want +got):\n%s", q.calls, out.kinds(), diff)
			}
			tab.letGo(t, r.PK)
		})
	}
}
