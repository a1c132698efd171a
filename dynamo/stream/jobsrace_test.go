package stream_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/prove"
)

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
