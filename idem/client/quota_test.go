package client_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// limited is an API whose callers may begin two operations a minute.
type limited struct {
	records  *idem.MemoryStore
	ran      int
	keys     []string
	statuses []int
	at       []time.Duration // of the requests, since the begin
	known    []int           // records after each request
}

func (l *limited) serve(t *testing.T, preset ...func(*idem.Options)) *http.Client {
	t.Helper()
	begun := time.Now()
	l.records = &idem.MemoryStore{}
	engine := idem.New(l.records, append([]func(*idem.Options){callertest.Anybody}, append(preset, func(o *idem.Options) {
		o.Quota, o.Logger = quota.New(quota.Limits{PerMinute: 2, Burst: 1}), slog.New(slog.DiscardHandler)
	})...)...)
	inner := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.ran++
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"ch_1","object":"charge"}`))
	}))
	network, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.keys, l.at = append(l.keys, r.Header.Get("Idempotency-Key")), append(l.at, time.Since(begun))
		noted := &noting{ResponseWriter: w, status: http.StatusOK}
		inner.ServeHTTP(noted, r)
		l.statuses, l.known = append(l.statuses, noted.status), append(l.known, len(l.records.Records()))
	}), nil)
	return &http.Client{Transport: client.New(network)}
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// check demands that the second of two operations was refused once, came back under its
// key after the 30 seconds that it was told, and succeeded. The refusal left no record.
func (l *limited) check(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff([]int{200, 429, 200}, l.statuses); diff != "" {
		t.Fatalf("answers (-want +got):\n%s", diff)
	}
	if l.keys[2] != l.keys[1] || l.keys[1] == l.keys[0] || l.keys[1] == "" {
		t.Errorf("keys %q", l.keys)
	}
	if wait := l.at[2] - l.at[1]; wait < 30*time.Second || wait > 45*time.Second {
		t.Errorf("came back after %v, was told 30 s", wait)
	}
	if diff := cmp.Diff([]int{1, 1, 2}, l.known); diff != "" || l.ran != 2 {
		t.Errorf("the handler ran %d times; records (-want +got):\n%s", l.ran, diff)
	}
}

// A client over its quota waits for as long as it is told, and comes back with its key.
func TestQuotaIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l limited
		hc := l.serve(t)
		for range 2 {
			if resp := post(t, hc, "http://api.test/"); resp.StatusCode != 200 {
				t.Errorf("status %d", resp.StatusCode)
			}
		}
		l.check(t)
	})
}

// So does stripe-go above this client. (By itself stripe-go 85 returns a 429 at once.)
func TestQuotaUnderStripeGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l limited
		sc := stripe.NewClient("sk_test", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: l.serve(t, idem.Stripe), URL: stripe.String("http://api.test"),
			EnableTelemetry: new(false), LeveledLogger: &stripe.LeveledLogger{},
		})))
		for range 2 {
			if ch, err := sc.V1Charges.Create(t.Context(), &stripe.ChargeCreateParams{Amount: stripe.Int64(2000), Currency: stripe.String("usd")}); err != nil || ch.ID != "ch_1" {
				t.Errorf("%+v, %v", ch, err)
			}
		}
		l.check(t)
	})
}
