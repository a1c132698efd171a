package stream_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/worker"
)

// figures are what a way of deployment takes for some requests.
type figures struct {
	Readers     int // of the stream
	Invocations int // by the stream
	Tickets     int // invocations by the queue
	Records     int // of the stream that functions get
	Calls       calls
}

// Ten requests with a job each in one batch, where all is well, and where the first job is
// refused once. docs/operate/background.md has the stream records of each way.
func TestFiguresOfTheWorker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusals int
		one      bool // worker
		want     figures
	}{
		"drain and completer, all is well": {0, false, figures{2, 2, 0, 40, calls{"UpdateItem": 10}}},
		"a worker, all is well":            {0, true, figures{1, 1, 0, 20, calls{"UpdateItem": 10}}},
		"drain and completer, a refusal":   {1, false, figures{2, 3, 0, 59, calls{"UpdateItem": 20}}},
		"a worker, a refusal":              {1, true, figures{1, 1, 1, 20, calls{"GetItem": 1, "UpdateItem": 11}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			feed, queue, left := tab.tail(t), &mailbox{}, test.refusals
			out := &outbox{fail: func(d jobs.Delivery) error {
				if d.Kind == "job 0" && left > 0 {
					left--
					return errPoison
				}
				return nil
			}}
			for i := range 10 {
				run(t, idem.New(tab.Store, callertest.Anybody), one(fmt.Sprint("job ", i)))
			}
			ev := feed.event(t)
			readers := []invoker{stream.NewDrain(tab.Store, out), stream.NewCompleter(completer.NewQueue(queue, "https://tickets"))}
			w := queue.worker(tab, func(o *worker.Options) { o.Sink = out })
			if test.one {
				readers = []invoker{w}
			}
			tab.Transport.Reset()
			got := figures{Readers: len(readers)}
			for _, r := range readers {
				for batch, seq := ev, "-"; seq != ""; batch = from(t, batch, seq) {
					got.Invocations++
					got.Records += len(batch.Records)
					if seq = handle(t, r, batch); seq == "" {
						break
					}
				}
			}
			for queue.deliver(t, w) {
				got.Tickets++
			}
			got.Calls = tab.Transport.Calls()
			if diff := cmp.Diff(test.want, got); diff != "" || len(out.byID) != 10 {
				t.Errorf("figures (-want +got):\n%s; %d jobs are delivered", diff, len(out.byID))
			}
		})
	}
}
