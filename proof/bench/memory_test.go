package bench

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

// mostBodies is how many times the size of a large body is in use at most, while a call
// to DynamoDB is under way. The body itself is one. Garbage doesn't count: how much of
// it waits is the Go runtime's decision.
const mostBodies = 3.0

// A body of 6 MB, which Lambda can just answer, fits into the memory of a small function:
// as it is written, and as a replay reads it.
func TestMemoryOfALargeAnswer(t *testing.T) {
	const size = 6 << 20
	db := dynamotest.Start(t)
	for name, make := range map[string]func(int) string{"compresses": order, "doesn't compress": noise} {
		t.Run(name, func(t *testing.T) {
			b, err := newBed(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			weight := new(balance)
			s, err := dynamo.New(db.Client(dynamo.Tune, func(o *dynamodb.Options) {
				weight.HTTPClient, o.HTTPClient = o.HTTPClient, weight
			}), b.table)
			if err != nil {
				t.Fatal(err)
			}
			engine := b.engineOn(s, func(o *idem.Options) { o.MaxBody = size })
			for _, does := range []string{"new", "replay"} {
				weight.start()
				res, err := engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) { return created(make(size)), nil })
				if err != nil || len(res.Body) != size || res.Replayed != (does == "replay") {
					t.Fatalf("%s: %d bytes, replayed %t, %v", does, len(res.Body), res.Replayed, err)
				}
				bodies := float64(weight.peak) / size
				t.Logf("%s: %.2f times the body in %d calls", does, bodies, weight.calls)
				if weight.calls < 2 || bodies < 0.02 {
					t.Errorf("%s: nothing is weighed: %d calls, %.2f times the body", does, weight.calls, bodies)
				}
				if bodies > mostBodies {
					t.Errorf("%s: the process holds %.2f times the body, want at most %.0f", does, bodies, mostBodies)
				}
			}
		})
	}
}

// balance weighs what the process holds as a request is sent, and after its answer is
// read.
type balance struct {
	dynamodb.HTTPClient
	calls      int
	idle, peak uint64
}

// start forgets the past. What is held from now on counts.
func (s *balance) start() {
	s.calls, s.peak, s.idle = 0, 0, 0
	s.weigh()
	s.idle, s.peak = s.peak, 0
}

func (s *balance) weigh() {
	for range 2 { // the first leaves what pools hold
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.peak = max(s.peak, m.HeapAlloc-min(m.HeapAlloc, s.idle))
}

// Do implements [dynamodb.HTTPClient].
func (s *balance) Do(r *http.Request) (*http.Response, error) {
	s.calls++
	s.weigh()
	answer, err := s.HTTPClient.Do(r)
	if err == nil {
		answer.Body = weighedBody{answer.Body, s}
	}
	return answer, err
}

type weighedBody struct {
	io.ReadCloser
	balance *balance
}

// Close implements [io.Closer]: the answer has been read.
func (b weighedBody) Close() error {
	b.balance.weigh()
	return b.ReadCloser.Close()
}
