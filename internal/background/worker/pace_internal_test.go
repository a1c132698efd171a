package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// lockedDB is a database for the calls of several goroutines.
type lockedDB struct {
	fakedynamo.DB
	mu sync.Mutex
}

func locked[In, Out any](ctx context.Context, db *lockedDB, call func(context.Context, In, ...func(*dynamodb.Options)) (Out, error), in In) (Out, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return call(ctx, in)
}

func (db *lockedDB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return locked(ctx, db, db.DB.GetItem, in)
}

func (db *lockedDB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return locked(ctx, db, db.DB.UpdateItem, in)
}

func (db *lockedDB) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return locked(ctx, db, db.DB.Scan, in)
}

func (db *lockedDB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return locked(ctx, db, db.DB.Query, in)
}

// missed fills a table with operations whose jobs no stream has shown, of two kinds.
func missed(t *testing.T, db *lockedDB, operations int) *dynamo.Store {
	t.Helper()
	store, err := dynamo.New(db, "records")
	if err != nil {
		t.Fatal(err)
	}
	e := idem.New(store, idem.OneScope, func(o *idem.Options) { o.MinKey, o.Logger = 1, slog.New(slog.DiscardHandler) })
	for i := range operations {
		_, err := e.Do(t.Context(), idem.Request{Key: fmt.Sprint(i), Method: "POST", Path: "/"}, func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob([]string{"mail", "other"}[i/8%2], i))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Hour)
	return store
}

// sweepNow lets a worker sweep for the two minutes of its function's timeout.
func sweepNow(t *testing.T, w *Worker) (rep stream.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := w.Invoke(ctx, []byte(`{"source":"aws.scheduler","task":"sweep"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &rep); err != nil {
		t.Fatal(err)
	}
	return rep
}

// What a lost stream has left is delivered as fast as its sinks take it: neither is their
// share of the time cut while they take jobs, nor does the pass end for want of time.
func TestSweepDeliversAtThePaceOfItsSinks(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]jobs.SinkFunc{
		"both at 20 ms a job": func(context.Context, jobs.Delivery) error { <-time.After(20 * time.Millisecond); return nil },
		"one of them hangs":   func(ctx context.Context, _ jobs.Delivery) error { <-ctx.Done(); return ctx.Err() },
		"one of them is down": func(context.Context, jobs.Delivery) error { return jobs.ErrSinkDown },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const operations = 5000
				db := &lockedDB{}
				mail := 0
				var mu sync.Mutex
				w := New(db, missed(t, db, operations), completer.NewQueue(noQueue{}, "url"), func(o *Options) {
					o.Logger = slog.New(slog.DiscardHandler)
					o.Sink = jobs.Route{"other": other, "mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
						<-time.After(20 * time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						mail++
						return nil
					})}
				})
				rep := sweepNow(t, w)
				t.Logf("the first run of two minutes: %d jobs delivered, %d of the sink at ease, %d pages, complete %v", rep.Delivered, mail, rep.Pages, rep.Complete)
				if mail < 2000 {
					t.Errorf("%d of %d jobs of the sink at ease are delivered", mail, operations/2)
				}
			})
		})
	}
}

// A function may be deployed before the sink of its jobs: they wait for it, as for one
// that is down, and nobody has to hand them out one by one.
func TestKindBeforeItsSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &lockedDB{}
		store := missed(t, db, 16)
		route := jobs.Route{"mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil })}
		quiet := func(o *Options) { o.Logger, o.Sink = slog.New(slog.DiscardHandler), route }
		for run := range 20 {
			if rep := sweepNow(t, New(db, store, completer.NewQueue(noQueue{}, "url"), quiet)); rep.ByReason[state.ReasonUndelivered].Count != max(8, 16-16*run) || rep.ByReason[state.ReasonParked].Count != 0 {
				t.Fatalf("run %d: %+v", run, rep)
			}
			<-time.After(time.Hour)
		}
		route["other"] = route["mail"]
		if rep := sweepNow(t, New(db, store, completer.NewQueue(noQueue{}, "url"), quiet)); rep.Delivered != 8 {
			t.Errorf("with its sink: %+v", rep)
		}
	})
}

// vast is a table of so many records of 1 KB, of which none is of interest, in segments
// that take 200 ms a page.
type vast struct {
	lockedDB
	records int
}

func (v *vast) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	<-time.After(200 * time.Millisecond)
	from := 0
	if k, ok := in.ExclusiveStartKey["pk"].(*types.AttributeValueMemberS); ok {
		from, _ = strconv.Atoi(k.Value)
	}
	n := min(int(*in.Limit), v.records/int(*in.TotalSegments)-from)
	out := &dynamodb.ScanOutput{ScannedCount: int32(n)}
	if n == int(*in.Limit) {
		out.LastEvaluatedKey = fakedynamo.Item{"pk": &types.AttributeValueMemberS{Value: strconv.Itoa(from + n)}}
	}
	return out, nil
}

// schedules has a worker do what its schedules ask for, with two minutes for each: a sweep
// every hour and a count every five minutes, until a pass is complete.
func schedules(t *testing.T, w *Worker, complete func() bool) (took time.Duration) {
	t.Helper()
	began := time.Now()
	for i := 0; !complete(); i++ {
		if i > 1000 {
			t.Fatal("no pass is complete")
		}
		task := "count"
		if i%12 == 0 {
			task = "sweep"
		}
		at := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		_, err := w.Invoke(ctx, []byte(`{"source":"aws.scheduler","task":"`+task+`"}`))
		if cancel(); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
		<-time.After(time.Until(at.Add(5 * time.Minute)))
	}
	return took
}

// A pass goes on until it is done: ten million records within the hour. docs/inside/performance.md
// has these figures.
func TestPassOverTenMillionRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &vast{records: 10_000_000}
		store, err := dynamo.New(db, "records")
		if err != nil {
			t.Fatal(err)
		}
		pages, runs, done := 0, 0, false
		w := New(db, store, completer.NewQueue(noQueue{}, "url"), func(o *Options) {
			o.Logger = slog.New(slog.DiscardHandler)
			o.Hooks.Swept = func(_ context.Context, r *stream.Report, _ error) {
				pages, runs, done = pages+r.Pages, runs+1, r.Complete
			}
		})
		took := schedules(t, w, func() bool { return done })
		units := float64(pages) * 125 // 1000 records of 1 KB, eventually consistent
		t.Logf("%d runs, %d pages, %v, %.2f million read units, %.2f USD at 0.125 USD a million", runs, pages, took.Round(time.Second), units/1e6, units/1e6*0.125)
		if took > time.Hour {
			t.Errorf("it took %v", took)
		}
	})
}

// What a pass of many runs counts doesn't flap: each count is the last pass's until this
// one has found more, or has come to its end.
func TestCountsAreThoseOfThePass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &lockedDB{}
		down := true
		var counts []string
		store := missed(t, db, 400)
		passes := 0
		w := New(db, store, completer.NewQueue(noQueue{}, "url"), func(o *Options) {
			o.Logger = slog.New(slog.DiscardHandler)
			o.Sink = jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
				if down {
					return jobs.ErrSinkDown
				}
				return nil
			})
			o.Sweep = func(o *stream.SweepOptions) { o.PageSize, o.PagesPerSecond, o.Segments = 10, 0.1, 2 }
			o.Hooks.Swept = func(_ context.Context, r *stream.Report, _ error) {
				n := fmt.Sprint(r.ByReason[state.ReasonUndelivered].Count)
				if r.Complete {
					n += "!"
					passes++
				}
				counts = append(counts, n)
			}
		})
		schedules(t, w, func() bool { return passes == 2 })
		down = false
		<-time.After(time.Hour)
		schedules(t, w, func() bool { return passes == 4 })
		if got, want := strings.Join(counts, " "), "110 220 330 400! 400 400 400 400! 400 400 400 0! 0 0 0 0!"; got != want {
			t.Errorf("counts of the runs: %s, want %s", got, want)
		}
	})
}

// Of two runs one leaves the pass to the other, until its time is over.
func TestRunLeavesAPassToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &vast{records: 10_000_000}
		store, err := dynamo.New(db, "records")
		if err != nil {
			t.Fatal(err)
		}
		var runs atomic.Int32
		w := New(db, store, completer.NewQueue(noQueue{}, "url"), func(o *Options) {
			o.Logger, o.Hooks.Swept = slog.New(slog.DiscardHandler), func(context.Context, *stream.Report, error) { runs.Add(1) }
		})
		killed, kill := context.WithCancel(t.Context())
		invoke := func(ctx context.Context, task string) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
			defer cancel()
			if _, err := w.Invoke(ctx, []byte(`{"source":"aws.scheduler","task":"`+task+`"}`)); err != nil && killed.Err() == nil {
				t.Error(err)
			}
		}
		invoke(t.Context(), "count") // nothing is under way
		if runs.Load() != 0 {
			t.Error("a count has begun a pass")
		}
		go invoke(killed, "sweep")
		<-time.After(time.Minute)
		invoke(t.Context(), "count")
		if runs.Load() != 0 {
			t.Error("two runs work on one pass")
		}
		db.mu.Lock() // a killed run stores no more
		kill()
		synctest.Wait()
		db.mu.Unlock()
		<-time.After(2 * time.Minute)
		before := runs.Load()
		if invoke(t.Context(), "count"); runs.Load() != before+1 {
			t.Error("a killed run's pass is left alone")
		}
	})
}
