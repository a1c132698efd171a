package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// lockedDB is a database for the calls of several goroutines.
type lockedDB struct {
	fakedynamo.DB
	mu sync.Mutex
}

func (db *lockedDB) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.DB.GetItem(ctx, in, opts...)
}

func (db *lockedDB) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.DB.UpdateItem(ctx, in, opts...)
}

func (db *lockedDB) Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.DB.Scan(ctx, in, opts...)
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
	time.Sleep(time.Hour)
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
		"both at 20 ms a job": func(context.Context, jobs.Delivery) error { time.Sleep(20 * time.Millisecond); return nil },
		"one of them hangs":   func(ctx context.Context, _ jobs.Delivery) error { <-ctx.Done(); return ctx.Err() },
		"one of them is down": func(context.Context, jobs.Delivery) error { return jobs.ErrSinkDown },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const operations = 8000
				db := &lockedDB{}
				mail := 0
				var mu sync.Mutex
				w := New(db, missed(t, db, operations), noQueue{}, func(o *Options) {
					o.Logger = slog.New(slog.DiscardHandler)
					o.Sink = jobs.Route{"other": other, "mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error {
						time.Sleep(20 * time.Millisecond)
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
			if rep := sweepNow(t, New(db, store, noQueue{}, quiet)); rep.ByReason[stream.ReasonUndelivered].Count != max(8, 16-16*run) || rep.ByReason[stream.ReasonParked].Count != 0 {
				t.Fatalf("run %d: %+v", run, rep)
			}
			time.Sleep(time.Hour)
		}
		route["other"] = route["mail"]
		if rep := sweepNow(t, New(db, store, noQueue{}, quiet)); rep.Delivered != 8 {
			t.Errorf("with its sink: %+v", rep)
		}
	})
}
