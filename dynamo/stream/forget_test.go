package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// forget forgets the operation of a record, with its jobs.
func (tab *table) forget(t testing.TB, r *store.Record) {
	t.Helper()
	if _, err := idem.New(tab.Store, callertest.Anybody).Forget(t.Context(), jobs.TicketFor(r), "jane", idem.Loss{Work: true, Jobs: true}); err != nil {
		t.Fatal(err)
	}
}

// Jobs that a person gave up are sent by none of the ways by which a job is sent: they left
// the record with the write that forgot its operation.
//
//nolint:tparallel // one table, and one reader of its stream
func TestForgottenJobsAreNotSent(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	for _, way := range []struct {
		name string
		send func(t *testing.T, r *store.Record, staged, forgotten events.DynamoDBEvent, d *stream.Drain)
	}{
		{"the stream's image of the write", func(t *testing.T, _ *store.Record, _, forgotten events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			handle(t, d, forgotten)
		}},
		{"a batch with the write and the one before", func(t *testing.T, _ *store.Record, staged, forgotten events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			handle(t, d, events.DynamoDBEvent{Records: append(staged.Records, forgotten.Records...)})
		}},
		{"the image of its removal by TTL", func(t *testing.T, r *store.Record, _, _ events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
			}); err != nil {
				t.Fatal(err)
			}
			handle(t, d, feed.event(t))
		}},
		{"a ticket", func(t *testing.T, r *store.Record, _, _ events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			if err := d.Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err != nil {
				t.Error(err)
			}
		}},
		{"the next claim", func(t *testing.T, r *store.Record, _, _ events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			now, err := tab.Store.Load(t.Context(), r.PK)
			if err != nil {
				t.Fatal(err)
			}
			next := &store.Record{PK: r.PK, ID: "another", State: store.Open, Owner: "another", Ver: 1, Fingerprint: "f", Created: time.Now(), Run: time.Now(), Expires: time.Now().Add(time.Hour)}
			if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: next, Now: time.Now(), Seen: now}); held != nil || err != nil {
				t.Fatal(held, err)
			}
			handle(t, d, feed.event(t))
		}},
		{"the sweep", func(t *testing.T, _ *store.Record, _, _ events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			if _, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) { o.Drain = d }).Run(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"a redrive", func(t *testing.T, r *store.Record, _, _ events.DynamoDBEvent, d *stream.Drain) {
			t.Helper()
			if n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "omar"); n != 0 || err != nil {
				t.Errorf("%d handed out, %v", n, err)
			}
			handle(t, d, events.DynamoDBEvent{Records: append(feed.event(t).Records, mark(r))})
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			r := tab.finished(t, func(r *store.Record) {
				r.Jobs["0.2"] = idem.Job{Kind: "parked", Args: []byte("1"), Tries: 9, Failed: "poison"}
			}, "0.0", "0.1")
			staged := feed.event(t)
			tab.forget(t, r)
			forgotten := feed.event(t)
			out := &outbox{}
			way.send(t, r, staged, forgotten, stream.NewDrain(tab.Store, out))
			if diff := cmp.Diff([]string{}, out.kinds()); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// before does something just before a store's first commit.
type before struct {
	*dynamo.Store
	first func()
}

func (b *before) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if first := b.first; first != nil {
		b.first = nil
		first()
	}
	return b.Store.Commit(ctx, c)
}

// Only what was still there is said to be lost: a drain delivers, parks, and an operator
// redrives jobs while somebody forgets their operation. The record leaves the list.
func TestForgetSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		jobs map[string]idem.Job
		do   func(t *testing.T, tab *table, r *store.Record) error
		lost []string
	}{
		"a job is delivered": {
			map[string]idem.Job{"0.0": {Kind: "a", Args: []byte("1")}, "0.1": {Kind: "a", Args: []byte("1"), Failed: "poison"}},
			func(t *testing.T, tab *table, r *store.Record) error {
				t.Helper()
				return stream.Ack(t.Context(), tab.Store, r, "0.0")
			},
			[]string{"0.1"},
		},
		"a job of two that wait is delivered": {
			map[string]idem.Job{"0.0": {Kind: "a", Args: []byte("1")}, "0.1": {Kind: "a", Args: []byte("1")}},
			func(t *testing.T, tab *table, r *store.Record) error {
				t.Helper()
				return stream.Ack(t.Context(), tab.Store, r, "0.0")
			},
			[]string{"0.1"},
		},
		"the last job is delivered": {
			map[string]idem.Job{"0.0": {Kind: "a", Args: []byte("1")}},
			func(t *testing.T, tab *table, r *store.Record) error {
				t.Helper()
				return stream.Ack(t.Context(), tab.Store, r, "0.0")
			},
			nil,
		},
		"a job is parked": {
			map[string]idem.Job{"0.0": {Kind: "a", Args: []byte("1")}},
			func(t *testing.T, tab *table, r *store.Record) error {
				t.Helper()
				_, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 1)
				return err
			},
			[]string{"0.0"},
		},
		"a job is redriven": {
			map[string]idem.Job{"0.0": {Kind: "a", Args: []byte("1"), Failed: "poison"}},
			func(t *testing.T, tab *table, r *store.Record) error {
				t.Helper()
				_, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "omar")
				return err
			},
			[]string{"0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.finished(t, func(r *store.Record) { r.Jobs = tt.jobs })
			st := &before{Store: tab.Store, first: func() {
				if err := tt.do(t, tab, r); err != nil {
					t.Error(err)
				}
			}}
			lost, err := idem.New(st, callertest.Anybody).Forget(t.Context(), jobs.TicketFor(r), "jane", idem.Loss{Work: true, Jobs: true})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range tt.lost {
				want = append(want, jobs.JobID(r.ID, name))
			}
			if diff := cmp.Diff(want, lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
			if it := tab.item(t, r.PK); len(tt.lost) > 0 && it["jobs"] != nil || it["waits"] != nil || it["wait_ms"] != nil || it["wait_in"] != nil {
				t.Errorf("left in the record: %v", it)
			}
			now, err := tab.Store.Load(t.Context(), r.PK)
			if err != nil || len(now.Jobs) > 0 || now.Settled[len(now.Settled)-1].By != "jane" {
				t.Errorf("got %+v, %v", now, err)
			}
		})
	}
}

// mark is a stream record of another item, so that an event is not empty.
func mark(r *store.Record) events.DynamoDBEventRecord {
	return events.DynamoDBEventRecord{
		EventName: "INSERT", EventSource: "aws:dynamodb",
		Change: events.DynamoDBStreamRecord{Keys: map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(r.PK + "-mark")}},
	}
}
