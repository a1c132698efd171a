package signals_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/internal/testkit/prove"
)

// night is a story whose metrics the stack's alarms watch, in the story's time.
type night struct {
	*story
	plain  *idem.Engine
	begun  time.Time
	read   int // bytes of the metrics' log that are in data
	data   alarmtest.Data
	counts bool          // the worker counts what waits for people, every five minutes
	sweeps bool          // the worker sweeps, every hour
	time   time.Duration // that a sweep has
	each   func(*night)  // happens every five minutes; nil: nothing
}

func newNight(t *testing.T) *night {
	t.Helper()
	n := &night{story: begin(t), sweeps: true, time: 10 * time.Minute}
	n.plain, n.begun = n.engine(), n.clock.Now()
	// A deployed schedule runs at once. The alarms on silence end with that.
	n.sweep()
	n.take()
	return n
}

// pass lets the time pass.
func (n *night) pass(d time.Duration) {
	n.Helper()
	for end := n.clock.Now().Add(d); n.clock.Now().Before(end); {
		n.clock.Advance(5 * time.Minute)
		if n.each != nil {
			n.each(n)
		}
		if n.counts {
			n.invoke(map[string]string{"source": "aws.scheduler", "task": "count"})
		}
		if n.sweeps && n.clock.Now().Sub(n.begun)%time.Hour == 0 {
			n.sweep()
		}
		n.take()
	}
}

func (n *night) sweep() {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), n.time)
	defer cancel()
	if _, err := n.worker.Invoke(ctx, n.json(map[string]string{"source": "aws.scheduler"})); err != nil && n.time > time.Minute {
		n.Error(err)
	}
}

// take dates the metrics since the last time.
func (n *night) take() {
	n.Helper()
	log := n.emf.bytes()
	if err := n.data.EMFAt(log[n.read:], n.clock.Now().Add(-time.Second)); err != nil {
		n.Fatal(err)
	}
	n.read = len(log)
}

// unknown leaves an operation with a call whose outcome nobody knows.
func (n *night) unknown(key string) {
	n.Helper()
	n.is("a call with an unknown outcome", n.post(n.plain, key, "", func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, errDown }, idem.NotIdempotent())
		return idem.Response{}, err
	}), 409)
}

// of returns the only record whose phases begin so and that is in a state.
func (n *night) of(state store.State, fits func(*store.Record) bool) *store.Record {
	n.Helper()
	return n.record(func(r *store.Record) bool { return r.State == state && fits(r) })
}

func (n *night) settle(e *idem.Engine, pk string, s idem.Settlement) {
	n.Helper()
	s.By = "jane"
	if err := e.Settle(n.Context(), pk, s); err != nil {
		n.Error(err)
	}
}

// streamed hands a record to the worker as the table's stream does.
func (n *night) streamed(r *store.Record) {
	n.Helper()
	n.invoke(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{n.change(nil, n.items()[r.PK])}})
}

func staged(kind string) func(*store.Record) bool {
	return func(r *store.Record) bool {
		for _, j := range r.Jobs {
			if j.Kind == kind {
				return true
			}
		}
		return false
	}
}

// lasting says that a metric's alarm lasts while something waits for people.
func lasting(m metrictable.Metric) bool { return m.Source == "count" && m.Alarm.Name == m.Name }

// What waits for people is an alarm for each cause. It lasts while nothing new happens,
// until the last of them is dealt with.
func TestAlarmsWhilePeopleAreWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.counts = true
	n.pass(time.Hour)
	from := n.clock.Now()

	n.unknown("unknown")
	unknown := n.of(store.Stuck, func(*store.Record) bool { return true })

	n.is("left by its client", n.post(n.plain, "stuck", "", func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "book", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, errors.Join(err, errDown)
	}), 500)
	stuck := n.of(store.Open, func(*store.Record) bool { return true })
	if err := n.plain.MarkStuck(n.Context(), state.TicketFor(stuck), "nobody can complete it"); err != nil {
		t.Fatal(err)
	}

	n.is("its first version", n.post(n.plain, "blocked", "", phases(errDown)), 500)
	n.is("its second version", n.post(n.plain, "blocked", "", func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "other", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, err
	}), 500)

	n.is("with a job that is refused", n.post(n.plain, "parked", "", phases(nil, "bad")), 201)
	parked := n.of(store.Done, staged("bad"))
	n.streamed(parked)

	unreadable := n.items()[stuck.PK]
	unreadable["pk"] = &types.AttributeValueMemberS{Value: strings.Replace(stuck.PK, "#", "#x", 1)}
	unreadable["v"] = &types.AttributeValueMemberN{Value: "99"}
	if _, err := n.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &n.table, Item: unreadable}); err != nil {
		t.Fatal(err)
	}
	n.sweep() // finds it

	n.pass(4 * time.Hour)
	mended := n.clock.Now()
	n.settle(n.plain, unknown.PK, idem.Settlement{NotMade: true})
	n.settle(n.plain, stuck.PK, idem.Settlement{Answer: &idem.Response{Status: 200}})
	n.is("the first version again", n.post(n.plain, "blocked", "", phases(nil)), 201)
	n.bad = nil
	if _, err := stream.Redrive(t.Context(), n.store, parked.PK, parked.ID, "jane"); err != nil {
		t.Error(err)
	}
	if _, err := n.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &n.table, Key: map[string]types.AttributeValue{"pk": unreadable["pk"]},
	}); err != nil {
		t.Error(err)
	}
	n.sweep()
	n.pass(30 * time.Minute)
	for _, m := range metrictable.All() {
		if lasting(m) {
			n.held(m.Alarm.Name, &alarmtest.Course{From: from, By: from.Add(10 * time.Minute), Mended: mended})
		}
	}
}

// held fails the test if an alarm doesn't take its course.
func (n *night) held(alarm string, c *alarmtest.Course, params ...string) {
	n.Helper()
	c.Begun, c.End = n.begun, n.clock.Now()
	p := map[string]string{"App": "shop", "AlarmTopicArn": "topic"}
	for i := 0; i < len(params); i += 2 {
		p[params[i]] = params[i+1]
	}
	all, err := alarmtest.Parse(deploy.Nested(), p)
	if err != nil {
		n.Fatal(err)
	}
	a, ok := all[alarm+"Alarm"]
	if !ok {
		n.Fatalf("there is no alarm %s", alarm)
	}
	if w := c.Wrong(a, n.data); w != "" {
		n.Errorf("%s: %s; its changes: %v", a, w, a.Over(n.data, n.begun, n.clock.Now()))
	}
}

// Each of the other alarms on the toolkit's metrics fires on the trouble that it is
// for, made in the real parts, lasts, and ends.
func TestAlarmsTakeTheirCourse(t *testing.T) {
	t.Parallel()
	played := make(map[string]bool)
	t.Cleanup(func() {
		for _, m := range metrictable.All() {
			if m.Alarm.Name != "" && !lasting(m) && !played[m.Alarm.Name] {
				t.Errorf("nothing makes the trouble of the alarm %s", m.Alarm.Name)
			}
		}
	})
	down := errors.New("no connection")
	for _, tt := range []struct {
		alarm   string
		params  []string
		prepare func(*night)
		trouble func(*night)
		every   bool          // the trouble happens every five minutes, not once
		mend    func(*night)  // nil: it passes by itself
		by      time.Duration // after which it fires at the latest
		lasts   time.Duration // for which it lasts at least
		ends    time.Duration // after the mending
	}{
		{
			alarm: "WaitingSilent", prepare: func(n *night) { n.counts = true },
			trouble: func(n *night) { n.counts = false }, mend: func(n *night) { n.counts = true },
			by: 35 * time.Minute, lasts: 3 * time.Hour, ends: 30 * time.Minute,
		},
		{
			alarm: "SweepSilent", trouble: func(n *night) { n.sweeps = false }, mend: func(n *night) { n.sweeps = true; n.sweep() },
			by: 7 * time.Hour, lasts: 12 * time.Hour, ends: 10 * time.Minute,
		},
		{
			alarm: "SweepOverdue", trouble: func(n *night) { n.time = time.Second }, mend: func(n *night) { n.time = 10 * time.Minute },
			by: 27 * time.Hour, lasts: 30 * time.Hour, ends: 3 * time.Hour,
		},
		{
			alarm:   "Abandoned",
			trouble: func(n *night) { n.is("left by its client", n.post(n.plain, "left", "", phases(errDown)), 500) },
			mend:    func(n *night) { n.is("its client comes back", n.post(n.plain, "left", "", phases(nil)), 201) },
			by:      3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
		},
		{
			alarm:   "Undelivered",
			trouble: func(n *night) { n.is("with a job", n.post(n.plain, "job", "", phases(nil, "down")), 201) },
			mend:    func(n *night) { n.down = nil },
			by:      3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
		},
		{
			alarm: "Abandoned", prepare: crowd(1000),
			trouble: func(n *night) { n.is("left by its client", n.post(n.plain, "left", "", phases(errDown)), 500) },
			mend:    func(n *night) { n.is("its client comes back", n.post(n.plain, "left", "", phases(nil)), 201) },
			by:      3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
		},
		{
			alarm: "Undelivered", prepare: crowd(1000),
			trouble: func(n *night) { n.is("with a job", n.post(n.plain, "job", "", phases(nil, "down")), 201) },
			mend:    func(n *night) { n.down = nil },
			by:      3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
		},
		{
			alarm: "DeliveryFailed", every: true,
			trouble: func(n *night) {
				n.is("with a job", n.post(n.plain, n.newKey(), "", phases(nil, "down")), 201)
				n.streamed(n.of(store.Done, staged("down")))
			},
			mend: func(n *night) { n.down = nil }, by: 20 * time.Minute, lasts: time.Hour, ends: 5 * time.Hour,
		},
		{
			alarm: "DeliveryFailed", every: true, trouble: oneJob(), mend: func(n *night) { n.down = nil },
			by: 30 * time.Minute, lasts: 8 * time.Hour, ends: 5 * time.Hour,
		},
		{
			alarm: "ExpiredOpen",
			trouble: func(n *night) {
				n.is("left", n.post(n.plain, "left", "", phases(errDown)), 500)
				r := n.of(store.Open, func(*store.Record) bool { return true })
				gone := n.change(n.items()[r.PK], nil)
				if _, err := n.client.DeleteItem(n.Context(), &dynamodb.DeleteItemInput{
					TableName: &n.table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: r.PK}},
				}); err != nil {
					n.Error(err)
				}
				n.invoke(events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{gone}})
			},
			by: 10 * time.Minute, lasts: 20 * time.Hour, ends: 10 * time.Hour,
		},
		{
			alarm: "Unstored",
			trouble: func(n *night) {
				n.is("unstored", n.post(n.plain, "unstored", "", func(ctx context.Context) (idem.Response, error) {
					n.api.fail(&smithy.GenericAPIError{Code: "AccessDeniedException"}, 3)
					return created(ctx)
				}), 201)
			},
			by: 10 * time.Minute, lasts: 20 * time.Hour, ends: 10 * time.Hour,
		},
		{
			alarm: "NotMine",
			trouble: func(n *night) {
				n.is("left", n.post(n.resumable, "left", "", phases(errDown)), 500)
				n.streamed(n.of(store.Open, func(*store.Record) bool { return true }))
				n.clock.Advance(5 * time.Minute)
				var messages []events.SQSMessage
				for i, body := range n.queue.take() {
					messages = append(messages, events.SQSMessage{MessageId: fmt.Sprint(i), ReceiptHandle: body, Body: body, EventSource: "aws:sqs"})
				}
				n.invoke(events.SQSEvent{Records: messages})
			},
			by: 10 * time.Minute, lasts: 90 * time.Minute, ends: 4 * time.Hour,
		},
		{
			alarm: "Mismatch", params: []string{"MismatchThreshold", "0"}, trouble: mismatches(1),
			by: 10 * time.Minute, lasts: 50 * time.Minute, ends: time.Hour,
		},
		{
			alarm: "Mismatch", trouble: mismatches(11), by: 10 * time.Minute, lasts: 50 * time.Minute, ends: time.Hour,
		},
		{
			alarm: "Denied", every: true,
			trouble: func(n *night) {
				n.api.fail(&smithy.GenericAPIError{Code: "AccessDeniedException"}, 1)
				n.is("denied", n.post(n.plain, n.newKey(), "", created), 503)
				n.api.fail(nil, 0)
			},
			by: 15 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
		},
		{
			alarm: "StoreFailures", every: true,
			trouble: func(n *night) {
				n.traffic(10)
				n.api.fail(down, 1000)
				for range 6 {
					n.is("no connection", n.post(n.plain, n.newKey(), "", created), 503)
				}
				n.api.fail(nil, 0)
			},
			by: 25 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
		},
	} {
		played[tt.alarm] = true
		t.Run(tt.alarm+strings.Join(tt.params, ""), func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			if tt.prepare != nil {
				tt.prepare(n)
			}
			n.pass(time.Hour)
			c := &alarmtest.Course{From: n.clock.Now(), By: n.clock.Now().Add(tt.by), Mended: n.clock.Now().Add(tt.lasts)}
			if tt.every {
				n.each = tt.trouble
			} else {
				tt.trouble(n)
				n.take()
			}
			n.pass(tt.lasts)
			n.each = nil
			if tt.mend != nil {
				tt.mend(n)
			}
			n.pass(tt.ends)
			n.held(tt.alarm, c, tt.params...)
		})
	}
}

// oneJob is a job whose sink is down, and whose ticket comes when it is due.
func oneJob() func(*night) {
	receives, due := 0, time.Time{}
	return func(n *night) {
		switch {
		case receives == 0:
			n.is("with a job", n.post(n.plain, n.newKey(), "", phases(nil, "down")), 201)
			n.streamed(n.of(store.Done, staged("down")))
		case n.clock.Now().Before(due):
			return
		default:
			body := n.queue.take()[0]
			n.invoke(events.SQSEvent{Records: []events.SQSMessage{{
				MessageId: "1", ReceiptHandle: body, Body: body, EventSource: "aws:sqs", Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(receives)},
			}}})
			due = n.clock.Now().Add(n.queue.hidden)
		}
		receives++
	}
}

// A plain request that dies has nothing to go on with: only its client can come back, and
// people are told when it is forgotten. It is no abandoned operation for all that time,
// which would hide those that the worker has to end.
func TestPlainCrashIsNotAbandoned(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.pass(time.Hour)
	n.is("its answer is lost with its process", n.post(n.plain, "dies", "", func(ctx context.Context) (idem.Response, error) {
		n.api.fail(&smithy.GenericAPIError{Code: "AccessDeniedException"}, 3)
		return created(ctx)
	}), 201)
	n.of(store.Open, func(r *store.Record) bool { return r.Keep == store.KeepNothing })
	n.pass(6 * time.Hour)
	all, err := alarmtest.Parse(deploy.Nested(), map[string]string{"App": "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all["AbandonedAlarm"].Over(n.data, n.begun, n.clock.Now()) {
		if c.State == alarmtest.Firing {
			t.Errorf("it fires %v after the night began", c.At.Sub(n.begun))
		}
	}
}

// crowd fills the table with finished records.
func crowd(many int) func(*night) {
	return func(n *night) {
		n.is("one of many", n.post(n.plain, "one", "", created), 201)
		like := n.items()[n.of(store.Done, func(*store.Record) bool { return true }).PK]
		pk := like["pk"].(*types.AttributeValueMemberS).Value
		var batch []types.WriteRequest
		for i := range many {
			it := maps.Clone(like)
			it["pk"] = &types.AttributeValueMemberS{Value: fmt.Sprintf("%s%07d", pk[:len(pk)-7], i)}
			if batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}); len(batch) == 25 || i == many-1 {
				if _, err := n.client.BatchWriteItem(n.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{n.table: batch}}); err != nil {
					n.Fatal(err)
				}
				batch = nil
			}
		}
	}
}

// mismatches sends so many requests under a key of another.
func mismatches(many int) func(*night) {
	return func(n *night) {
		n.is("new", n.post(n.plain, "mismatch", "", created), 201)
		for i := range many {
			n.is("mismatch", n.post(n.plain, "mismatch", fmt.Sprint(i), created), 422)
		}
	}
}

// traffic sends good requests.
func (n *night) traffic(many int) {
	for range many {
		n.is("new", n.post(n.plain, n.newKey(), "", created), 201)
	}
}

// Good requests, some retries and delivered jobs fire no alarm.
func TestNoAlarmWithoutTrouble(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.counts = true
	n.each = func(n *night) {
		n.traffic(3)
		key := n.newKey()
		n.is("with a job", n.post(n.plain, key, "", phases(nil, "mail")), 201)
		n.streamed(n.of(store.Done, staged("mail")))
		n.is("its retry", n.post(n.plain, key, "", created), 201)
	}
	n.pass(prove.Some(75*time.Minute, 2*time.Hour))
	all, err := alarmtest.Parse(deploy.Nested(), map[string]string{"App": "shop", "MismatchThreshold": "0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		for _, c := range a.Over(n.data, n.begun.Add(time.Hour), n.clock.Now()) {
			if c.State == alarmtest.Firing {
				t.Errorf("%s fires at %v", a, c.At.Sub(n.begun))
			}
		}
	}
}
