package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// edit changes an item by hand, as no store would.
// names are placeholders and what they stand for, in turn.
func (tab *table) edit(t testing.TB, pk, update string, values map[string]types.AttributeValue, names ...string) {
	t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: &update, ExpressionAttributeValues: values,
	}
	for pair := range slices.Chunk(names, 2) {
		in.ExpressionAttributeNames = map[string]string{pair[0]: pair[1]}
	}
	_, err := tab.Direct.UpdateItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
}

func TestAckOfTheLastJobsLetsTheRecordGoInOneCall(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0", "1.0", "1.1")
	if err := stream.Ack(t.Context(), tab.Store, r, "0.0", "1.0", "1.1"); err != nil {
		t.Fatal(err)
	}
	tab.letGo(t, r.PK)
	if diff := cmp.Diff(calls{"UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
		t.Error(diff)
	}
	if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.Owner != r.Owner || now.Ver != r.Ver {
		t.Errorf("an acknowledgement moved the record: %+v, %v", now, err)
	}
}

func TestAckOfNothingIsNoCall(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	if err := stream.Ack(t.Context(), tab.Store, tab.finished(t, nil, "0.0")); err != nil || tab.Transport.Total() != 0 {
		t.Errorf("%v after %d calls", err, tab.Transport.Total())
	}
}

func TestAckOfSomeKeepsTheRest(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0", "1.0")
	if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
		t.Fatal(err)
	}
	tab.kept(t, r.PK, "1.0")
}

// With tombstones a record with jobs ends as one without: it says "expired" for
// as long, whoever let it go. Its replay must not end with the last delivery.
func TestTombstoneOutlivesTheLastAck(t *testing.T) {
	t.Parallel()
	const tombstone = 600*time.Second - time.Millisecond // rounded up
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
				return idem.New(tab.Store, append([]func(*idem.Options){callertest.Anybody}, append(optFns, func(o *idem.Options) { o.Tombstone = tombstone })...)...)
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
			if got, want := number(it["exp_s"]), r.Until.Unix()+600; got != want || number(it["until_s"]) != r.Until.Unix() || it["keep"] != nil {
				t.Errorf("exp_s %d, until_s %d, keep %v; want exp_s %d, until_s %d", got, number(it["until_s"]), it["keep"], want, r.Until.Unix())
			}
			if _, err := engine(tabletest.Ahead(defaults.Retention+time.Minute)).Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrExpired) {
				t.Errorf("a retry after the end of replay got %v, want expired", err)
			}
			if _, err := engine(tabletest.Ahead(defaults.Retention+11*time.Minute)).Do(t.Context(), req, tabletest.Created("new")); err != nil {
				t.Errorf("after the tombstone: %v", err)
			}
		})
	}
}

// What may have happened between an image and its acknowledgement.
//
//nolint:tparallel // one table
func TestAckAfterTheRecordHasChanged(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ack := func(r *store.Record, names ...string) {
		t.Helper()
		if err := stream.Ack(t.Context(), tab.Store, r, names...); err != nil {
			t.Errorf("ack: %v", err)
		}
	}
	t.Run("the key was used anew: the new operation's jobs stay (AckID)", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		tab.edit(t, r.PK, "SET id = :id", map[string]types.AttributeValue{":id": tabletest.Str("another")})
		ack(r, "0.0")
		tab.kept(t, r.PK, "0.0")
	})
	t.Run("the key was used anew: the new operation's open record keeps its jobs (AckID)", func(t *testing.T) {
		r := tab.finished(t, func(r *store.Record) {
			r.State, r.Response, r.Keep, r.Until = store.Open, nil, store.KeepOpen, time.Time{}
		}, "0.0")
		tab.edit(t, r.PK, "SET id = :id", map[string]types.AttributeValue{":id": tabletest.Str("another")})
		ack(r, "0.0")
		if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || len(now.Jobs) != 1 {
			t.Errorf("got %+v, %v", now, err)
		}
	})
	t.Run("the record is gone: none is made", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
		}); err != nil {
			t.Fatal(err)
		}
		ack(r, "0.0")
		open := *r
		open.State = store.Open
		ack(&open, "0.0")
		if it := tab.item(t, r.PK); it != nil {
			t.Errorf("a ghost was made: %v", it)
		}
	})
	t.Run("a job was added: it stays, and keeps the record (AckSize)", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0", "1.0")
		image := *r
		image.Jobs = map[string]idem.Job{"0.0": r.Jobs["0.0"]}
		ack(&image, "0.0")
		tab.kept(t, r.PK, "1.0")
	})
	t.Run("one was delivered and another added, so their number is the same", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0", "1.0")
		image := *r
		image.Jobs = map[string]idem.Job{"0.0": r.Jobs["0.0"], "0.1": r.Jobs["1.0"]}
		ack(&image, "0.0", "0.1")
		tab.kept(t, r.PK, "1.0")
	})
	t.Run("the record is open though the image says done", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		tab.edit(t, r.PK, "SET st = :st, keep = :k, lease_ms = :l REMOVE resp", map[string]types.AttributeValue{":st": tabletest.Str("open"), ":k": tabletest.Str("open"), ":l": tabletest.Num(0)})
		ack(r, "0.0")
		now, err := tab.Store.Load(t.Context(), r.PK)
		if err != nil || now.Keep != store.KeepOpen || !now.Expires.IsZero() || len(now.Jobs) != 0 {
			t.Errorf("got %+v, %v; want it kept, without the job", now, err)
		}
	})
	t.Run("until_s is missing: the jobs go, the record stays", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		tab.edit(t, r.PK, "REMOVE until_s", nil)
		ack(r, "0.0")
		tab.kept(t, r.PK)
	})
	t.Run("jobs is missing: nothing to do", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		tab.edit(t, r.PK, "REMOVE jobs", nil)
		if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); !errors.Is(err, idem.ErrCorrupt) {
			t.Errorf("got %v, want corrupt", err)
		}
	})
	t.Run("it was finished since: the early job's ack settles it (Clean)", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		image := *r
		image.State = store.Open
		tab.Transport.Reset()
		ack(&image, "0.0")
		tab.letGo(t, r.PK)
		if diff := cmp.Diff(calls{"UpdateItem": 2}, tab.Transport.Calls()); diff != "" {
			t.Error(diff)
		}
	})
}

//nolint:tparallel // one table
func TestLetGo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	settle := func(r *store.Record) {
		t.Helper()
		if err := stream.LetGo(t.Context(), tab.Store, r); err != nil {
			t.Errorf("settle: %v", err)
		}
	}
	t.Run("finished, and no jobs: it is let go", func(t *testing.T) {
		r := tab.finished(t, nil)
		settle(r)
		tab.letGo(t, r.PK)
		settle(r)
		tab.letGo(t, r.PK)
	})
	t.Run("jobs are there", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		settle(r)
		tab.kept(t, r.PK, "0.0")
	})
	t.Run("another operation", func(t *testing.T) {
		r := tab.finished(t, nil)
		tab.edit(t, r.PK, "SET id = :id", map[string]types.AttributeValue{":id": tabletest.Str("another")})
		settle(r)
		tab.kept(t, r.PK)
	})
	t.Run("not finished", func(t *testing.T) {
		r := tab.finished(t, nil)
		tab.edit(t, r.PK, "SET st = :st, lease_ms = :l REMOVE resp", map[string]types.AttributeValue{":st": tabletest.Str("open"), ":l": tabletest.Num(0)})
		settle(r)
		tab.kept(t, r.PK)
	})
	t.Run("kept for another reason", func(t *testing.T) {
		r := tab.finished(t, nil)
		tab.edit(t, r.PK, "SET keep = :k", map[string]types.AttributeValue{":k": tabletest.Str("open")})
		settle(r)
		if it := tab.item(t, r.PK); it["keep"] == nil || it["exp_s"] != nil {
			t.Errorf("keep %v, exp_s %v", it["keep"], it["exp_s"])
		}
	})
	t.Run("until_s is missing", func(t *testing.T) {
		r := tab.finished(t, nil)
		tab.edit(t, r.PK, "REMOVE until_s", nil)
		settle(r)
		tab.kept(t, r.PK)
	})
	t.Run("the record is gone", func(t *testing.T) {
		settle(&store.Record{PK: "v1##gone", ID: "x"})
		if tab.item(t, "v1##gone") != nil {
			t.Error("a ghost was made")
		}
	})
}

var errPoison = errors.New("poison")

func TestFailCountsAndParks(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0", "0.1")
	for try := 1; try <= 3; try++ {
		now, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 3) // by the first image, as a batch that comes again
		if err != nil {
			t.Fatal(err)
		}
		job := now.Jobs["0.0"]
		if job.Tries != try || (job.Failed != "") != (try == 3) {
			t.Errorf("after %d failures: %+v", try, job)
		}
	}
	now, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errors.New("another")}, 3)
	if err != nil || now.Jobs["0.0"].Failed != "poison" || now.Jobs["0.0"].Tries != 3 || now.Jobs["0.1"].Tries != 0 {
		t.Errorf("got %+v, %v; want the first reason, and the other job untouched", now.Jobs, err)
	}
	tab.kept(t, r.PK, "0.0", "0.1")
	if err := stream.Ack(t.Context(), tab.Store, r, "0.1"); err != nil {
		t.Fatal(err)
	}
	tab.kept(t, r.PK, "0.0")
}

//nolint:tparallel // one table
func TestFailOfWhatIsGone(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	fail := func(r *store.Record) *store.Record {
		t.Helper()
		now, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	t.Run("delivered by another drain: it doesn't come back", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0", "0.1")
		if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
			t.Fatal(err)
		}
		fail(r)
		tab.kept(t, r.PK, "0.1")
	})
	t.Run("delivered after it had failed", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0", "0.1")
		image, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 9)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
			t.Fatal(err)
		}
		fail(image)
		tab.kept(t, r.PK, "0.1")
	})
	t.Run("another operation's job of the same name isn't parked", func(t *testing.T) {
		r := tab.finished(t, nil, "0.0")
		tab.edit(t, r.PK, "SET id = :id", map[string]types.AttributeValue{":id": tabletest.Str("another")})
		if now := fail(r); now.State != store.None {
			t.Errorf("got %+v", now)
		}
		if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.Jobs["0.0"].Failed != "" {
			t.Errorf("got %+v, %v", now, err)
		}
	})
	t.Run("no record: none is made", func(t *testing.T) {
		r := &store.Record{PK: "v1##nowhere", ID: "x", Jobs: map[string]idem.Job{"0.0": {}}}
		fail(r)
		if tab.item(t, r.PK) != nil {
			t.Error("a ghost was made")
		}
	})
}

// Between the count and the parking another drain may park the job, and an
// operator hand it out again: its new round begins from nothing, and stays.
func TestParkingDoesNotUndoARedrive(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0")
	tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
		if op == "UpdateItem" && n == 2 {
			tab.edit(t, r.PK, "REMOVE jobs.#j.t", nil, "#j", "0.0")
		}
		return nil
	}
	now, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 1)
	if err != nil || now.Jobs["0.0"].Failed != "" || now.Jobs["0.0"].Tries != 0 {
		t.Errorf("got %+v, %v", now, err)
	}
	if diff := cmp.Diff(calls{"UpdateItem": 2}, tab.Transport.Calls()); diff != "" {
		t.Error(diff)
	}
}

// Drains that fail at once lose no count.
func TestFailAtOnce(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0", "0.1")
	var wg sync.WaitGroup
	names := []string{"0.0", "0.1"}
	for _, name := range names {
		for range 3 {
			wg.Go(func() {
				if _, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{name: errPoison}, 100); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	now, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if n := now.Jobs[name].Tries; n != 3 {
			t.Errorf("%s counts %d of 3", name, n)
		}
	}
}

//nolint:tparallel // one table
func TestRedrive(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	parked := func(t *testing.T, names ...string) *store.Record {
		t.Helper()
		r := tab.finished(t, nil, "0.0", "0.1", "0.2")
		failures := make(map[string]error)
		for _, name := range names {
			failures[name] = errPoison
		}
		if _, err := stream.Fail(t.Context(), tab.Store, r, failures, 1); err != nil {
			t.Fatal(err)
		}
		return r
	}
	stillParked := func(t *testing.T, r *store.Record) []string {
		t.Helper()
		now, err := tab.Store.Load(t.Context(), r.PK)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(now.Jobs)) {
			if j := now.Jobs[name]; j.Failed != "" {
				names = append(names, name)
			} else if j.Tries != 0 {
				t.Errorf("%s begins with %d tries", name, j.Tries)
			}
		}
		return names
	}
	for name, test := range map[string]struct {
		parked, redriven, left []string
		n                      int
	}{
		"all":                 {[]string{"0.0", "0.1"}, nil, nil, 2},
		"one":                 {[]string{"0.0", "0.1"}, []string{"0.1"}, []string{"0.0"}, 1},
		"one that isn't":      {[]string{"0.0"}, []string{"0.2"}, []string{"0.0"}, 0},
		"none are parked":     {[]string{"0.0"}, []string{"9.9"}, []string{"0.0"}, 0},
		"parked and not, too": {[]string{"0.0"}, []string{"0.0", "0.2"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := parked(t, test.parked...)
			n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane", test.redriven...)
			if err != nil || n != test.n {
				t.Errorf("got %d, %v; want %d", n, err, test.n)
			}
			if diff := cmp.Diff(test.left, stillParked(t, r)); diff != "" {
				t.Errorf("parked (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("several at once hand out each job once", func(t *testing.T) {
		r := parked(t, "0.0", "0.1")
		var wg sync.WaitGroup
		var total atomic.Int64
		for i := range 8 {
			wg.Go(func() {
				n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane", [][]string{nil, {"0.0"}}[i%2]...)
				if total.Add(int64(n)); err != nil {
					t.Error(err)
				}
			})
		}
		if wg.Wait(); total.Load() != 2 {
			t.Errorf("%d handed out", total.Load())
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		if n, err := stream.Redrive(t.Context(), tab.Store, "v1##nobody", "i", "jane"); n != 0 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
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
		for faultName, fault := range tabletest.Ambiguous {
			t.Run(name+", "+faultName, func(t *testing.T) {
				t.Parallel()
				withRetries(t, func(t *testing.T, tab *table) {
					r := tab.finished(t, func(r *store.Record) {
						if name == "redrive" {
							r.Jobs["0.0"] = idem.Job{Kind: "k", Args: []byte("1"), Tries: 3, Failed: "poison"}
						}
						if name == "cancel" || name == "begin" {
							r.Jobs["0.0"] = idem.Job{Kind: "k", Args: []byte("1"), At: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
						}
					}, op.jobs...)
					tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					if err := op.do(ctx, tab, r); err != nil {
						t.Errorf("got %v", err)
					}
					op.then(t, tab, r)
				})
			})
		}
	}
}

// A store that stays away is an error, and not a silence.
func TestJobWritesToAStoreThatIsDown(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		r := tab.finished(t, nil, "0.0")
		tab.Transport.Fault = tabletest.On("UpdateItem", 1000, tabletest.Ambiguous["the request is lost"])
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := stream.Ack(ctx, tab.Store, r, "0.0"); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("ack: %v", err)
		}
		if err := stream.LetGo(ctx, tab.Store, r); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("settle: %v", err)
		}
		if _, err := stream.Fail(ctx, tab.Store, r, map[string]error{"0.0": errPoison}, 1); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("fail: %v", err)
		}
		tab.Transport.Fault = nil
		tab.kept(t, r.PK, "0.0")
	})
}
