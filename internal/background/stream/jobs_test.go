package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/prove"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// A record with jobs ends as one without, whoever let it go: its replay must not end with the
// last delivery.
func TestReplayOutlivesTheLastAck(t *testing.T) {
	t.Parallel()
	for name, let := range map[string]func(*testing.T, *table, *store.Record) error{
		"ack": func(t *testing.T, tab *table, r *store.Record) error {
			t.Helper()
			return stream.Ack(t.Context(), tab.Store, r, "0.0")
		},
		"ack by an early image": func(t *testing.T, tab *table, r *store.Record) error {
			t.Helper()
			image := *r
			image.State = store.Open
			return stream.Ack(t.Context(), tab.Store, &image, "0.0")
		},
		"settle": func(t *testing.T, tab *table, r *store.Record) error {
			t.Helper()
			tab.edit(t, r.PK, "REMOVE jobs.#j", nil, "#j", "0.0")
			return stream.LetGo(t.Context(), tab.Store, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			engine := func(optFns ...func(*idem.Options)) *idem.Engine {
				return idem.New(tab.Store, append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
			}
			req := tabletest.Post(tabletest.NewKey(), "{}")
			if _, err := engine().Do(t.Context(), req, one("job")); err != nil {
				t.Fatal(err)
			}
			r := tab.Only(t)
			if err := let(t, tab, r); err != nil {
				t.Fatal(err)
			}
			it := tab.item(t, r.PK)
			if got, want := number(it["exp_s"]), r.Until.Unix(); got != want || it["until_s"] != nil || it["keep"] != nil {
				t.Errorf("exp_s %d, until_s %v, keep %v; want exp_s %d alone", got, it["until_s"], it["keep"], want)
			}
			if res, err := engine(tabletest.Ahead(defaults.Retention-time.Minute)).Do(t.Context(), req, tabletest.NeverRuns(t)); err != nil || !res.Replayed {
				t.Errorf("before the end of replay: got %+v, %v, want the replay", res, err)
			}
			if res, err := engine(tabletest.Ahead(defaults.Retention+time.Minute)).Do(t.Context(), req, tabletest.Created("new")); err != nil || res.Replayed {
				t.Errorf("after the end of replay: got %+v, %v, want a run", res, err)
			}
		})
	}
}

// Every write about jobs may be sent again: whatever its answer came to, it has
// its effect, and no other.
func TestJobWritesWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	ops := map[string]struct {
		do   func(ctx context.Context, tab *table, r *store.Record) error
		jobs []string
		then func(t *testing.T, tab *table, r *store.Record)
	}{
		"last ack": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				return stream.Ack(ctx, tab.Store, r, "0.0", "0.1")
			},
			[]string{"0.0", "0.1"},
			func(t *testing.T, tab *table, r *store.Record) { t.Helper(); tab.letGo(t, r.PK) },
		},
		"ack": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				return stream.Ack(ctx, tab.Store, r, "0.0")
			},
			[]string{"0.0", "0.1"},
			func(t *testing.T, tab *table, r *store.Record) { t.Helper(); tab.kept(t, r.PK, "0.1") },
		},
		"cancel": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				n, err := stream.Cancel(ctx, tab.Store, r.PK, r.ID, "jane")
				if err == nil && n != 1 {
					err = fmt.Errorf("%d cancelled", n)
				}
				return err
			},
			nil,
			func(t *testing.T, tab *table, r *store.Record) { t.Helper(); tab.letGo(t, r.PK) },
		},
		"settle": {
			func(ctx context.Context, tab *table, r *store.Record) error { return stream.LetGo(ctx, tab.Store, r) },
			nil,
			func(t *testing.T, tab *table, r *store.Record) { t.Helper(); tab.letGo(t, r.PK) },
		},
		"count": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				now, err := stream.Fail(ctx, tab.Store, r, map[string]error{"0.0": errPoison, "0.1": errPoison}, 5)
				if err == nil && now.Jobs["0.0"].Tries == 0 {
					err = fmt.Errorf("returned %+v", now.Jobs)
				}
				return err
			},
			[]string{"0.0", "0.1"},
			func(t *testing.T, tab *table, r *store.Record) {
				t.Helper()
				now, err := tab.Store.Load(t.Context(), r.PK)
				// Never lost; twice where the answer was.
				if n := now.Jobs["0.0"].Tries; err != nil || n < 1 || n > 2 || now.Jobs["0.1"].Tries != n {
					t.Errorf("got %+v, %v", now, err)
				}
			},
		},
		"park": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				_, err := stream.Fail(ctx, tab.Store, r, map[string]error{"0.0": errPoison}, 1)
				return err
			},
			[]string{"0.0"},
			func(t *testing.T, tab *table, r *store.Record) {
				t.Helper()
				if got := tab.listed(t); len(got) != 1 || got[0].Reason != state.ReasonParked || got[0].LastErr != "poison" {
					t.Errorf("listed %+v", got)
				}
			},
		},
		"redrive": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				n, err := stream.Redrive(ctx, tab.Store, r.PK, r.ID, "jane")
				if err == nil && n != 1 {
					err = fmt.Errorf("redrove %d", n)
				}
				return err
			},
			[]string{"0.0"},
			func(t *testing.T, tab *table, r *store.Record) {
				t.Helper()
				if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.Jobs["0.0"].Failed != "" {
					t.Errorf("got %+v, %v", now, err)
				}
			},
		},
		"begin": {
			func(ctx context.Context, tab *table, r *store.Record) error {
				out := &outbox{}
				err := stream.NewDrain(tab.Store, out).Retry(ctx, jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true})
				if err == nil && len(out.kinds()) != 1 {
					err = fmt.Errorf("delivered %v", out.kinds())
				}
				return err
			},
			[]string{"0.0"},
			func(t *testing.T, tab *table, r *store.Record) { t.Helper(); tab.letGo(t, r.PK) },
		},
	}
	for name, op := range ops {
		write := func(t *testing.T, tab *table, fault dbfault.Fault) {
			t.Helper()
			r := tab.finished(t, func(r *store.Record) {
				if name == "redrive" {
					r.Jobs["0.0"] = idem.Job{Kind: "k", Args: []byte("1"), Tries: 3, Failed: "poison"}
				}
				if name == "cancel" || name == "begin" {
					r.Jobs["0.0"] = idem.Job{Kind: "k", Args: []byte("1"), At: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
				}
			}, op.jobs...)
			tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
			if err := op.do(t.Context(), tab, r); err != nil {
				t.Errorf("got %v", err)
			}
			op.then(t, tab, r)
		}
		t.Run(name+", on DynamoDB Local", func(t *testing.T) {
			t.Parallel()
			write(t, newLocal(t), nil)
		})
		for faultName, fault := range tabletest.Ambiguous {
			t.Run(name+", "+faultName, func(t *testing.T) {
				t.Parallel()
				withRetries(t, func(t *testing.T, tab *table) { write(t, tab, fault) })
			})
		}
	}
}

// An operation with 50 jobs that can't be delivered is never parked: its records come again for ever.
func TestFiftyFailingJobsAreParked(t *testing.T) {
	t.Parallel()
	for _, n := range []int{40, 43, 50} {
		tab := newTable(t)
		var names []string
		failures := map[string]error{}
		for i := range n {
			names = append(names, "0."+strconv.Itoa(i))
			failures["0."+strconv.Itoa(i)] = errors.New("no sink for jobs of this kind")
		}
		r := tab.finished(t, nil, names...)
		now, err := stream.Fail(t.Context(), tab.Store, r, failures, 1)
		if err != nil {
			t.Errorf("%d jobs: %.300v", n, err)
			continue
		}
		for _, j := range now.Jobs {
			if j.Failed == "" {
				t.Errorf("%d jobs: not parked", n)
				break
			}
		}
		if _, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane"); err != nil {
			t.Errorf("%d jobs redriven: %.300v", n, err)
		}
		if err := stream.Ack(t.Context(), tab.Store, r, names...); err != nil {
			t.Errorf("%d jobs acked: %.300v", n, err)
		}
	}
}

// Acknowledgements while phases commit: two drains read the stream of many
// operations as they are being worked on, each at its own pace, one of them in
// batches that come twice. No job is lost, none comes back, and every record is
// let go in the end (AckID, AckSize, JobEntry, Clean).
func TestDrainsRaceWithCommits(t *testing.T) {
	t.Parallel()
	const workers = 12
	keys := prove.Some(25, 50)
	tab := newTable(t)
	rides := tab.App(t)
	out := &outbox{}
	var seen sync.Map // partition keys
	var working atomic.Bool
	working.Store(true)

	pass := func(feed *tail, drain *stream.Drain, times int) {
		ev := feed.event(t)
		for _, r := range ev.Records {
			seen.Store(pkOf(r), true)
		}
		for len(ev.Records) > 0 {
			batch := events.DynamoDBEvent{Records: ev.Records[:min(len(ev.Records), 20)]}
			ev.Records = ev.Records[len(batch.Records):]
			for range times {
				if seq := handle(t, drain, batch); seq != "" {
					t.Errorf("%s is reported", seq)
				}
			}
		}
	}
	streams := []*tail{tab.tail(t), tab.tail(t)}
	drains := []*stream.Drain{stream.NewDrain(tab.Store, out), stream.NewDrain(tab.Store, out)}
	var readers sync.WaitGroup
	for i := range streams {
		readers.Go(func() {
			for working.Load() {
				pass(streams[i], drains[i], i+1)
			}
			pass(streams[i], drains[i], i+1)
			pass(streams[i], drains[i], i+1) // what the last one wrote
		})
	}

	engine := tab.Engine() // with time enough on a busy machine
	todo := make(chan int, keys)
	for k := range keys {
		todo <- k
	}
	close(todo)
	var workersDone sync.WaitGroup
	for range workers {
		workersDone.Go(func() {
			for k := range todo {
				run(t, engine, racing(rides, k))
			}
		})
	}
	workersDone.Wait()
	working.Store(false)
	readers.Wait()

	n := 0
	seen.Range(func(pk, _ any) bool {
		n++
		tab.letGo(t, pk.(string))
		return true
	})
	if n != keys {
		t.Errorf("%d records were seen, want %d", n, keys)
	}
	if want := 4*keys + keys - (keys+3)/4; len(out.byID) != want {
		t.Errorf("%d jobs were delivered, want %d", len(out.byID), want)
	}
	twice := 0
	for _, times := range out.byID {
		if times > 1 {
			twice++
		}
	}
	t.Logf("%d jobs, %d of them delivered more than once", len(out.byID), twice)
}

// racing is a handler with two jobs in each of two phases, one a plain update
// and one a transaction, and a third in most finishes.
func racing(rides string, k int) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		for p := range 2 {
			if _, err := idem.Atomic(ctx, fmt.Sprint("phase ", p), func(_ context.Context, tx *idem.Tx) (int, error) {
				if p == 1 {
					tx.Write(dynamo.Put(rides, tabletest.ID(fmt.Sprint(k))))
				}
				tx.Stage(idem.NewJob("a", k), idem.NewJob("b", k))
				return p, nil
			}); err != nil {
				return idem.Response{}, err
			}
		}
		if k%4 == 0 {
			return idem.Response{Status: 201}, nil // its jobs may all be gone by now
		}
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("c", k))
	}
}

// forget forgets the operation of a record, with its jobs.
func (tab *table) forget(t testing.TB, r *store.Record) {
	t.Helper()
	if _, err := idem.New(tab.Store, callertest.Anybody).Forget(t.Context(), state.TicketFor(r), "jane", idem.Loss{Work: true, Jobs: true}); err != nil {
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
			tab.remove(t, r.PK)
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
	wait, parked := idem.Job{Kind: "a", Args: []byte("1")}, idem.Job{Kind: "a", Args: []byte("1"), Failed: "poison"}
	type meanwhile = func(ctx context.Context, tab *table, r *store.Record) error
	delivers := func(ctx context.Context, tab *table, r *store.Record) error {
		return stream.Ack(ctx, tab.Store, r, "0.0")
	}
	for name, tt := range map[string]struct {
		jobs map[string]idem.Job
		do   meanwhile
		lost []string
	}{
		"a job is delivered":                  {map[string]idem.Job{"0.0": wait, "0.1": parked}, delivers, []string{"0.1"}},
		"a job of two that wait is delivered": {map[string]idem.Job{"0.0": wait, "0.1": wait}, delivers, []string{"0.1"}},
		"the last job is delivered":           {map[string]idem.Job{"0.0": wait}, delivers, nil},
		"a job is parked": {map[string]idem.Job{"0.0": wait}, func(ctx context.Context, tab *table, r *store.Record) error {
			_, err := stream.Fail(ctx, tab.Store, r, map[string]error{"0.0": errPoison}, 1)
			return err
		}, []string{"0.0"}},
		"a job is redriven": {map[string]idem.Job{"0.0": parked}, func(ctx context.Context, tab *table, r *store.Record) error {
			_, err := stream.Redrive(ctx, tab.Store, r.PK, r.ID, "omar")
			return err
		}, []string{"0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.finished(t, func(r *store.Record) { r.Jobs = tt.jobs })
			st := &before{Store: tab.Store, first: func() {
				if err := tt.do(t.Context(), tab, r); err != nil {
					t.Error(err)
				}
			}}
			lost, err := idem.New(st, callertest.Anybody).Forget(t.Context(), state.TicketFor(r), "jane", idem.Loss{Work: true, Jobs: true})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range tt.lost {
				want = append(want, state.JobID(r.ID, name))
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

// Two operators redrive the same job, and it has failed again in between: the
// slower one doesn't take the new count away.
func TestRedriveMeetsANewRound(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, func(r *store.Record) {
		r.Jobs["0.0"] = idem.Job{Kind: "job", Args: []byte("1"), Tries: 5, Failed: "poison"}
	})
	tab.Transport.Fault = func(op string, n int) dbfault.Fault {
		if op != "UpdateItem" || n > 1 {
			return nil
		}
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			tab.edit(t, r.PK, "SET jobs.#j.t = :t REMOVE jobs.#j.f", map[string]types.AttributeValue{":t": tabletest.Num(2)}, "#j", "0.0")
			return base.RoundTrip(req)
		}
	}
	if _, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane"); err != nil {
		t.Error(err)
	}
	if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.Jobs["0.0"].Tries != 2 {
		t.Errorf("got %+v, %v", now.Jobs, err)
	}
}

// The first jobs of a record are written as a map. Late writes about earlier jobs, which
// drains and operators make without raising the version, change nothing of them, before
// and after the commit; and no late copy of the commit brings a delivered job back.
func TestFirstJobsMeetLateWrites(t *testing.T) {
	t.Parallel()
	for name, delivered := range map[string]bool{"never had jobs": false, "its jobs were delivered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.claimed(t)
			if delivered {
				r = tab.delivered(t, r)
			}
			image := r.Clone()
			image.Jobs = map[string]store.Job{"0.0": {Kind: "early", Args: []byte("1")}}
			late := func() {
				t.Helper()
				for what, err := range map[string]error{
					"acknowledge": stream.Ack(t.Context(), tab.Store, image, "0.0"),
					"let go":      stream.LetGo(t.Context(), tab.Store, image),
				} {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				if _, err := stream.Fail(t.Context(), tab.Store, image, map[string]error{"0.0": errPoison}, 1); err != nil {
					t.Errorf("fail: %v", err)
				}
				if n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane", "0.0"); n != 0 || err != nil {
					t.Errorf("redrive: %d, %v", n, err)
				}
			}
			next := r.Clone()
			next.Ver++
			next.Phases = append(next.Phases, store.Phase{Name: "one", Result: []byte("1")})
			next.Jobs = map[string]store.Job{"1.0": {Kind: "a", Args: []byte("1")}, "1.1": {Kind: "b", Args: []byte("2")}}
			c := store.Commit{Prev: r, Next: next}
			came := 0
			tab.Transport.Fault = func(op string, _ int) dbfault.Fault {
				if op != "UpdateItem" {
					return nil
				}
				return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
					if came++; came == 1 { // after the commit was made, and before it arrives
						late()
					}
					return base.RoundTrip(req)
				}
			}
			if held, err := tab.Store.Commit(t.Context(), c); held != nil || err != nil {
				t.Fatalf("refused with %+v, %v", held, err)
			}
			tab.Transport.Fault = nil
			if came == 0 {
				t.Fatal("nothing came in between: the test shows nothing")
			}
			tab.has(t, r.PK, "1.0", "1.1")
			late()
			tab.has(t, r.PK, "1.0", "1.1")

			if err := stream.Ack(t.Context(), tab.Store, next, "1.0"); err != nil {
				t.Fatal(err)
			}
			if held, err := tab.Store.Commit(t.Context(), c); held == nil || err != nil {
				t.Errorf("a late copy of the commit: %+v, %v; want it refused", held, err)
			}
			tab.has(t, r.PK, "1.1")
			more := next.Clone() // the holder doesn't know of the acknowledgement
			more.Ver++
			more.Jobs["2.0"] = store.Job{Kind: "c", Args: []byte("3")}
			if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: next, Next: more}); held != nil || err != nil {
				t.Fatalf("refused with %+v, %v", held, err)
			}
			tab.has(t, r.PK, "1.1", "2.0")
		})
	}
}

// delivered stages a job in r and has it acknowledged: r is left with an empty map.
func (tab *table) delivered(t *testing.T, r *store.Record) *store.Record {
	t.Helper()
	next := r.Clone()
	next.Ver++
	next.Jobs = map[string]store.Job{"0.0": {Kind: "early", Args: []byte("1")}}
	if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); held != nil || err != nil {
		t.Fatalf("refused with %+v, %v", held, err)
	}
	if err := stream.Ack(t.Context(), tab.Store, next, "0.0"); err != nil {
		t.Fatal(err)
	}
	now, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil || len(now.Jobs) != 0 {
		t.Fatalf("got %+v, %v; want no jobs", now, err)
	}
	return now
}

// claimed is an open record that is kept and has no jobs.
func (tab *table) claimed(t *testing.T) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (tabletest.NewKey() + tabletest.NewKey())[:43], State: store.Open, Owner: tabletest.NewKey(), Ver: 1, ID: tabletest.NewKey(),
		Lease: now.Add(time.Hour), Keep: store.KeepOpen, Fingerprint: "0f", Created: now, Run: now,
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); held != nil || err != nil {
		t.Fatalf("refused with %+v, %v", held, err)
	}
	return r
}

// has fails the test unless a record is open with these jobs, which wait and have not
// failed.
func (tab *table) has(t *testing.T, pk string, names ...string) {
	t.Helper()
	r, err := tab.Store.Load(t.Context(), pk)
	if err != nil || r.State != store.Open || len(r.Jobs) != len(names) {
		t.Fatalf("got %+v, %v; want the jobs %v", r, err, names)
	}
	for _, name := range names {
		if !state.Pending(r, name) || r.Jobs[name].Tries != 0 {
			t.Errorf("job %s is %+v", name, r.Jobs[name])
		}
	}
}
