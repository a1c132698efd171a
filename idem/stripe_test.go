package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Stripe's own client, used with an endpoint under the Stripe presets, must see
// the behaviour that Stripe documents.

// stripeServer is a charging endpoint under a preset.
type stripeServer struct {
	srv     *httptest.Server
	charges atomic.Int64
	mu      sync.Mutex
	seen    []*http.Response // answers to the client, in order

	// charge, if set, answers a request in place of the default handler.
	charge func(w http.ResponseWriter, r *http.Request, n int64) (done bool)
	// drop loses the answer of the n-th request on its way to the client.
	drop func(n int) bool
}

func newStripeServer(t *testing.T, preset func(*idem.Options)) *stripeServer {
	t.Helper()
	s := &stripeServer{}
	charge := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.charges.Add(1)
		if s.charge != nil && s.charge(w, r, n) {
			return
		}
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"pi_%d","object":"payment_intent","amount":%s}`, n, r.PostForm.Get("amount"))
	})
	s.srv = httptest.NewServer(idem.New(&idem.MemoryStore{}, callertest.Anybody, preset).Middleware(charge))
	t.Cleanup(s.srv.Close)
	return s
}

// RoundTrip records the answers to the client, and loses answers selected by
// drop.
func (s *stripeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.seen = append(s.seen, resp)
	n := len(s.seen)
	s.mu.Unlock()
	if s.drop != nil && s.drop(n) {
		_ = resp.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return resp, nil
}

// client is stripe-go as users have it, except for the waits between retries.
func (s *stripeServer) client(retries int64) *stripe.Client {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(s.srv.URL), HTTPClient: &http.Client{Transport: s}, MaxNetworkRetries: &retries,
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, EnableTelemetry: new(false),
	})
	backend.(*stripe.BackendImplementation).SetNetworkRetriesSleep(false)
	return stripe.NewClient("sk_test_123", stripe.WithBackends(&stripe.Backends{API: backend}))
}

// pay makes a payment; without a key the client makes one.
func pay(ctx context.Context, c *stripe.Client, key string, amount int64) (*stripe.PaymentIntent, error) {
	params := &stripe.PaymentIntentCreateParams{Amount: &amount, Currency: stripe.String("usd")}
	if key != "" {
		params.SetIdempotencyKey(key)
	}
	return c.V1PaymentIntents.Create(ctx, params)
}

var stripePresets = map[string]func(*idem.Options){"v1": idem.StripeV1, "v2": idem.Stripe}

func eachPreset(t *testing.T, test func(t *testing.T, s *stripeServer)) {
	t.Helper()
	for name, preset := range stripePresets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newStripeServer(t, preset))
		})
	}
}

func (s *stripeServer) charged(t *testing.T, n int64) {
	t.Helper()
	if got := s.charges.Load(); got != n {
		t.Errorf("%d charges, want %d", got, n)
	}
}

func TestStripeClientRepeatsALostAnswer(t *testing.T) {
	t.Parallel()
	eachPreset(t, func(t *testing.T, s *stripeServer) {
		s.drop = func(n int) bool { return n <= 2 }
		pi, err := pay(t.Context(), s.client(2), "", 2000)
		if err != nil || pi.ID != "pi_1" || pi.Amount != 2000 {
			t.Fatalf("got %+v, %v", pi, err)
		}
		s.charged(t, 1)
		if len(s.seen) != 3 {
			t.Fatalf("%d requests, want 3", len(s.seen))
		}
		key := s.seen[0].Request.Header.Get("Idempotency-Key")
		for i, resp := range s.seen {
			if got := resp.Header.Get("Idempotent-Replayed") == "true"; got != (i > 0) {
				t.Errorf("answer %d is marked as a replay: %t", i+1, got)
			}
			if key == "" || resp.Request.Header.Get("Idempotency-Key") != key || resp.Header.Get("Idempotency-Key") != key {
				t.Errorf("answer %d: the key is not that of the first, or not echoed", i+1)
			}
		}
		// The view of the client's users.
		if last := pi.LastResponse; last.IdempotencyKey != key || last.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("LastResponse: key %q, %v", last.IdempotencyKey, last.Header)
		}
	})
}

// A key with other parameters: the client recognises the error by its type, and
// doesn't retry.
func TestStripeClientSeesAnIdempotencyError(t *testing.T) {
	t.Parallel()
	eachPreset(t, func(t *testing.T, s *stripeServer) {
		c := s.client(3)
		if _, err := pay(t.Context(), c, "order-1", 2000); err != nil {
			t.Fatal(err)
		}
		_, err := pay(t.Context(), c, "order-1", 9900)
		e, ok := errors.AsType[*stripe.Error](err)
		if !ok || e.Type != stripe.ErrorTypeIdempotency || e.HTTPStatusCode != http.StatusBadRequest || e.Msg == "" {
			t.Fatalf("got %v", err)
		}
		if _, ok := errors.AsType[*stripe.IdempotencyError](e.Err); !ok {
			t.Errorf("it wraps a %T", e.Err)
		}
		if len(s.seen) != 2 {
			t.Errorf("%d requests, want 2: it must not be retried", len(s.seen))
		}
		s.charged(t, 1)
	})
}

// persist follows Stripe's advice to callers after 409 and 5xx: the same request
// again, with the same key. Version 85 of the client returns such answers to its
// caller, whatever Stripe-Should-Retry says; it retries only lost answers.
func persist(t *testing.T, c *stripe.Client, key string) *stripe.PaymentIntent {
	t.Helper()
	var err error
	for range 5 {
		var pi *stripe.PaymentIntent
		if pi, err = pay(t.Context(), c, key, 2000); err == nil {
			return pi
		}
	}
	t.Fatalf("after 5 requests: %v", err)
	return nil
}

// A request whose key is in use gets the documented type and code, and later the
// first request's answer.
func TestStripeClientMeetsARequestInFlight(t *testing.T) {
	t.Parallel()
	eachPreset(t, func(t *testing.T, s *stripeServer) {
		running, goOn := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(release) // or the server waits for the handler
		s.charge = func(http.ResponseWriter, *http.Request, int64) bool {
			close(running)
			<-goOn
			return false
		}
		first := make(chan error, 1)
		go func() {
			_, err := pay(t.Context(), s.client(0), "order-1", 2000)
			first <- err
		}()
		<-running
		_, err := pay(t.Context(), s.client(2), "order-1", 2000)
		e, ok := errors.AsType[*stripe.Error](err)
		if !ok || e.Type != stripe.ErrorTypeIdempotency || e.Code != stripe.ErrorCodeIdempotencyKeyInUse || e.HTTPStatusCode != http.StatusConflict {
			t.Fatalf("got %v", err)
		}
		if _, ok := errors.AsType[*stripe.IdempotencyError](e.Err); !ok {
			t.Errorf("it wraps a %T", e.Err)
		}
		if got := e.LastResponse.Header; got.Get("Stripe-Should-Retry") != "true" || got.Get("Retry-After") == "" {
			t.Errorf("headers: %v", got)
		}
		release()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if pi := persist(t, s.client(2), "order-1"); pi.ID != "pi_1" || pi.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %s, %v", pi.ID, pi.LastResponse.Header)
		}
		s.charged(t, 1)
	})
}

// A server error: under v2 the request is carried out anew and may succeed;
// under v1 the same error comes again.
func TestStripeClientMeetsAServerError(t *testing.T) {
	t.Parallel()
	broken := func(w http.ResponseWriter, _ *http.Request, n int64) bool {
		if n > 1 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"error":{"type":"api_error","message":"broken"}}`)
		return true
	}
	v2 := newStripeServer(t, idem.Stripe)
	v2.charge = broken
	if pi := persist(t, v2.client(2), "order-1"); pi.ID != "pi_2" {
		t.Errorf("v2: got %s", pi.ID)
	}
	v2.charged(t, 2)

	v1 := newStripeServer(t, idem.StripeV1)
	v1.charge = broken
	for range 2 {
		_, err := pay(t.Context(), v1.client(2), "order-1", 2000)
		if e, ok := errors.AsType[*stripe.Error](err); !ok || e.Type != stripe.ErrorTypeAPI || e.HTTPStatusCode != http.StatusInternalServerError || e.Msg != "broken" {
			t.Errorf("v1: got %v", err)
		}
	}
	v1.charged(t, 1)
}
