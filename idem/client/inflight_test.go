package client_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A client that is less patient than the handler is slow gets the answer soon
// after the handler has finished, and not only at the end of its lease.
func TestRequestInFlightIsAskedForSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
		network, _ := serve(t, engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			runs++
			time.Sleep(2 * time.Second) //nolint:forbidigo // virtual
			w.WriteHeader(http.StatusCreated)
		})), nil)
		hc := &http.Client{Transport: client.New(network, func(o *client.Options) { o.AttemptTimeout = time.Second })}
		begun := time.Now()
		resp := post(t, hc, "http://api.test/")
		if took := time.Since(begun); resp.StatusCode != http.StatusCreated || took > 10*time.Second || runs != 1 {
			t.Errorf("%d after %v and %d runs, want 201 after a few seconds", resp.StatusCode, took, runs)
		}
	})
}

// The holder of the key may have died: the client waits for the end of its lease,
// about 30 s, however often the server asks for a retry, but not longer than
// MaxRetryAfter.
func TestRequestInFlightIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lease time.Duration
		after string // Retry-After
		want  int
		most  time.Duration
	}{
		"until the lease is over":    {32 * time.Second, "5", 201, 45 * time.Second},
		"a long lease is given up":   {time.Hour, "5", 409, 90 * time.Second},
		"nothing is asked of us":     {time.Hour, "", 409, 10 * time.Second},
		"nonsense is asked of us":    {time.Hour, "soon", 409, 10 * time.Second},
		"more is asked than we wait": {time.Hour, "61", 409, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &script{steps: []step{failing(errReset), func(req *http.Request) (*http.Response, error) {
					switch {
					case time.Since(begun) > tc.lease:
						return answer(201)(req)
					case tc.after == "":
						return answer(409)(req)
					}
					return answer(409, "Retry-After", tc.after)(req)
				}}}
				var gaveUp string
				resp := post(t, &http.Client{Transport: client.New(s, func(o *client.Options) {
					o.Hooks.GaveUp = func(_ context.Context, ev client.Event) { gaveUp = ev.Reason }
				})}, "https://api.test/")
				if took := time.Since(begun); resp.StatusCode != tc.want || took > tc.most+time.Second {
					t.Errorf("%d after %v, %d attempts, gave up for %q", resp.StatusCode, took, len(s.attempts()), gaveUp)
				}
				if tc.want == 409 && resp.Header.Get(client.ResultHeader) != client.OutcomeUnknown {
					t.Error("the answer isn't marked as unknown")
				}
			})
		})
	}
}

// The waits for the answer of a request in flight take MaxRetryAfter in total, and no
// retry of MaxRetries.
func TestWaitsForARequestInFlightAreNoRetries(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{
		"POST": 4, // waited 30 s, 30 s, retried, gave up
		"PUT":  2, // without a key nothing is in flight: retried, gave up
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(409, "Retry-After", "30")}}
			tr := client.New(s, func(o *client.Options) { o.InitialDelay, o.MaxDelay, o.MaxRetries = 1, 1, 1 })
			if status(t, tr, request(t, method, "x")); len(s.attempts()) != want {
				t.Errorf("%s: %d attempts, want %d", method, len(s.attempts()), want)
			}
		})
	}
}
