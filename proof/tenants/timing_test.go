package tenants_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

// wire notes the size of each request to the database and of its answer.
type wire struct {
	mu    sync.Mutex
	calls []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	size := req.ContentLength
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf("%s sends %d and gets %d", req.Header.Get("X-Amz-Target"), size, len(body)))
	return resp, err
}

func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// payment is a request of a verified caller.
func payment(sub, key string) events.APIGatewayV2HTTPRequest {
	ev := events.APIGatewayV2HTTPRequest{RawPath: "/pay", Body: `{"amount":10}`, Headers: map[string]string{"idempotency-key": key}}
	ev.RequestContext.HTTP.Method = http.MethodPost
	ev.RequestContext.Authorizer = httpAPIAuthorizer(caller{kind: "jwt", a: "pool", b: sub})
	return ev
}

type v2Handler = lambda.Handler[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]

// paying answers 201 with as many bytes as asked for; during runs in the handler.
func paying(s store.Store, a app, size int, during func(sub string) error) *v2Handler {
	now := time.Now().Truncate(time.Second)
	e := idem.New(s, func(o *idem.Options) {
		if a.opt != nil {
			a.opt(o)
		}
		o.Logger = slog.New(slog.DiscardHandler)
		o.Now = func() time.Time { return now } // some times are written only if they differ
	})
	body := noise("x")[:size]
	return lambda.Wrap(e, lambda.HTTPAPI, func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		err := during(ev.RequestContext.Authorizer.JWT.Claims["sub"])
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: body}, err
	}, named(rand.Text()))
}

// A caller can't tell a key that another tenant uses from a key that nobody uses: the
// engine makes the same calls, and the requests and answers on the wire have the same
// sizes. What the other tenant's operation does doesn't matter.
func TestForeignKeyCostsWhatAnUnknownKeyCosts(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	w := &wire{}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: w, Timeout: 10 * time.Minute} })
	table := "t-" + rand.Text()
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	for _, a := range apps {
		if a.phases && !a.resumable {
			continue // its claim comes with its phases
		}
		for _, size := range []int{100, 9000} {
			for _, use := range []string{"done", "failed", "in flight"} {
				s, err := dynamo.New(client, table) // its count of companions begins anew
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%s, %d bytes, %s", a.name, size, use)
				var h *v2Handler
				var foreign, unknown []string
				key, other := "victim-"+rand.Text(), "nobody-"+rand.Text()
				measure := func() {
					w.taken()
					send(t, h, payment("mallory", key))
					foreign = w.taken()
					send(t, h, payment("mallory", other))
					unknown = w.taken()
				}
				h = paying(s, a, size, func(sub string) error {
					switch {
					case sub == "victor" && use == "failed":
						return io.ErrUnexpectedEOF
					case sub == "victor" && use == "in flight":
						measure()
					}
					return nil
				})
				send(t, h, payment("victor", key))
				if use != "in flight" {
					measure()
				}
				if diff := cmp.Diff(unknown, foreign); diff != "" || len(unknown) == 0 {
					t.Errorf("%s (-an unknown key +another tenant's key):\n%s", name, diff)
				}
				// Seen from its own tenant the key differs, or this test would see nothing.
				w.taken()
				send(t, h, payment("victor", key))
				if own := w.taken(); use == "done" && slices.Equal(own, unknown) {
					t.Errorf("%s: its owner's key costs what an unknown key costs", name)
				}
			}
		}
	}
}

func send(tb testing.TB, h *v2Handler, ev events.APIGatewayV2HTTPRequest) {
	tb.Helper()
	if _, err := h.Handle(tb.Context(), ev); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkForeignKey compares the times of requests under another tenant's keys with
// those of requests under unknown keys, in turns, by the test of Mann and Whitney. The
// effect is the chance that a foreign key takes longer than an unknown one, less one
// half: 0 can't be told apart, ±0.5 is always told. The third kind of requests, under
// the caller's own keys, shows that the measurement would see a difference.
func BenchmarkForeignKey(b *testing.B) {
	db := dynamotest.Start(b)
	for _, on := range []string{"memory", "dynamodb"} {
		b.Run(on, func(b *testing.B) {
			var s store.Store = &idem.MemoryStore{}
			if on == "dynamodb" {
				client, table := db.Client(dynamo.Tune), "t-"+rand.Text()
				if err := dynamo.CreateTable(b.Context(), client, table); err != nil {
					b.Fatal(err)
				}
				var err error
				if s, err = dynamo.New(client, table); err != nil {
					b.Fatal(err)
				}
			}
			h := paying(s, apps[0], 1000, func(string) error { return nil })
			var times [3][]float64
			for i := 0; b.Loop(); i++ {
				key, nobody, own := fmt.Sprintf("key-%09d", i), fmt.Sprintf("non-%09d", i), fmt.Sprintf("own-%09d", i)
				send(b, h, payment("victor", key))
				send(b, h, payment("mallory", own))
				kinds := []string{key, nobody, own}
				for k := range kinds { // each order as often as the others
					at := (k + i) % 3
					began := time.Now()
					send(b, h, payment("mallory", kinds[at]))
					times[at] = append(times[at], float64(time.Since(began)))
				}
			}
			p, effect := mannWhitney(times[0], times[1])
			_, control := mannWhitney(times[2], times[1])
			b.ReportMetric(median(times[0])/1000, "µs/foreign")
			b.ReportMetric(median(times[1])/1000, "µs/unknown")
			b.ReportMetric(p, "p")
			b.ReportMetric(effect, "effect")
			b.ReportMetric(control, "effect/own")
		})
	}
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[len(sorted)/2]
}

// mannWhitney returns the two-sided p of the normal approximation, without a correction
// for ties, and the effect: P(x > y) + P(x = y)/2 - 1/2.
func mannWhitney(xs, ys []float64) (p, effect float64) {
	type value struct {
		v     float64
		first bool
	}
	all := make([]value, 0, len(xs)+len(ys))
	for _, x := range xs {
		all = append(all, value{x, true})
	}
	for _, y := range ys {
		all = append(all, value{y, false})
	}
	slices.SortFunc(all, func(a, b value) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	ranks := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		for _, v := range all[i:j] {
			if v.first {
				ranks += float64(i+j+1) / 2 // the mean rank of equal values
			}
		}
		i = j
	}
	n, m := float64(len(xs)), float64(len(ys))
	u := ranks - n*(n+1)/2
	z := (u - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
	return math.Erfc(math.Abs(z) / math.Sqrt2), u/(n*m) - 0.5
}

func TestMannWhitney(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		xs, ys    []float64
		p, effect float64
	}{
		// Mann and Whitney's tortoise and hares: U is 25 of 36.
		"tortoise and hares": {[]float64{1, 7, 8, 9, 10, 11}, []float64{2, 3, 4, 5, 6, 12}, 0.2623, 25.0/36 - 0.5},
		"apart":              {[]float64{4, 5, 6}, []float64{1, 2, 3}, 0.0495, 0.5},
		"equal":              {[]float64{1, 1, 1}, []float64{1, 1, 1}, 1, 0},
	} {
		if p, effect := mannWhitney(tc.xs, tc.ys); math.Abs(p-tc.p) > 1e-4 || math.Abs(effect-tc.effect) > 1e-9 {
			t.Errorf("%s: got p %.4f and effect %.4f, want %.4f and %.4f", name, p, effect, tc.p, tc.effect)
		}
	}
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median %v, want 2", m)
	}
}
