package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

// fakeStripe behaves as Stripe documents its API v1: what comes before the endpoint
// (sign-in, rate limits) stores nothing; the endpoint's answer is stored whatever
// its status, 500 included, and replayed; a key in use is 409, a key with other
// parameters 400.
type fakeStripe struct {
	mu      sync.Mutex
	plan    []string // what happens to requests, in order; then nothing does
	charges []string // what was charged
	stored  map[string]*storedCharge
	keys    []string // of all requests that came
	at      []time.Time
}

type storedCharge struct {
	params, body string
	status       int // 0 = in progress
}

func (s *fakeStripe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key, params := r.Header.Get(keyHeader), string(body)
	s.mu.Lock()
	s.keys, s.at = append(s.keys, key), append(s.at, time.Now())
	fault := ""
	if len(s.plan) > 0 {
		fault, s.plan = s.plan[0], s.plan[1:]
	}
	c, known := s.stored[key]
	w.Header().Set("Request-Id", fmt.Sprint("req_", len(s.at)))
	switch {
	case fault == "rate limited":
		s.mu.Unlock()
		w.Header().Set("Stripe-Should-Retry", "true")
		w.Header().Set("Stripe-Rate-Limited-Reason", "per-second rate limit exceeded")
		w.Header().Set("Retry-After", "1")
		stripeError(w, 429, "invalid_request_error", "rate_limit", "Too many requests.")
		return
	case r.Header.Get("Authorization") == "":
		s.mu.Unlock()
		stripeError(w, 401, "invalid_request_error", "", "You did not provide an API key.")
		return
	case known && c.params != params:
		s.mu.Unlock()
		stripeError(w, 400, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with.")
		return
	case known && c.status == 0:
		s.mu.Unlock()
		stripeError(w, 409, "idempotency_error", "idempotency_key_in_use", "There is currently another in-progress request using this Idempotent Key.")
		return
	case known:
		s.mu.Unlock()
		w.Header().Set("Idempotent-Replayed", "true")
	default:
		c = &storedCharge{params: params}
		s.stored[key] = c
		s.mu.Unlock()
		s.charge(c, fault)
	}
	if fault == "lost" {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(keyHeader, key)
	w.WriteHeader(c.status)
	_, _ = io.WriteString(w, c.body)
}

// charge takes three seconds.
func (s *fakeStripe) charge(c *storedCharge, fault string) {
	time.Sleep(3 * time.Second) //nolint:forbidigo // virtual
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case fault == "crashed":
		c.status, c.body = 500, `{"error":{"type":"api_error"}}`
	case strings.Contains(c.params, "source=declined"):
		c.status, c.body = 402, `{"error":{"type":"card_error","code":"card_declined"}}`
	default:
		s.charges = append(s.charges, c.params)
		c.status, c.body = 200, fmt.Sprintf(`{"id":"ch_%d"}`, len(s.charges))
	}
}

func stripeError(w http.ResponseWriter, status int, kind, code, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":%q}}`, kind, code, message)
}

// stripeAnswer is what a client of Stripe gets.
type stripeAnswer struct {
	Status   int
	ID, Type string
	Replayed bool
	Unknown  bool // marked as not settling the matter
}

// A request is a card and a key, "" for one of the client's.
func TestAgainstStripe(t *testing.T) {
	t.Parallel()
	ok, replayed := stripeAnswer{Status: 200, ID: "ch_1"}, stripeAnswer{Status: 200, ID: "ch_1", Replayed: true}
	for name, tt := range map[string]struct {
		plan     []string
		requests [][2]string
		want     []stripeAnswer
		attempts int
		charges  int
		waits    time.Duration // at least so long before each retry
	}{
		"answered":              {requests: [][2]string{{"visa", ""}}, want: []stripeAnswer{ok}, attempts: 1, charges: 1},
		"the answer is lost":    {plan: []string{"lost"}, requests: [][2]string{{"visa", ""}}, want: []stripeAnswer{replayed}, attempts: 2, charges: 1},
		"lost with all retries": {plan: []string{"lost", "lost"}, requests: [][2]string{{"visa", ""}}, want: []stripeAnswer{replayed}, attempts: 3, charges: 1},
		"two charges, one card": {requests: [][2]string{{"visa", ""}, {"visa", ""}}, want: []stripeAnswer{ok, {Status: 200, ID: "ch_2"}}, attempts: 2, charges: 2},
		"the caller's key, twice": {
			requests: [][2]string{{"visa", "mine"}, {"visa", "mine"}}, want: []stripeAnswer{ok, replayed}, attempts: 2, charges: 1,
		},
		"rate limited, then not": {
			plan: []string{"rate limited", "rate limited"}, requests: [][2]string{{"visa", ""}}, want: []stripeAnswer{ok},
			attempts: 3, charges: 1, waits: time.Second,
		},
		"rate limited to the end, and nothing was done": {
			plan: []string{"rate limited", "rate limited", "rate limited"}, requests: [][2]string{{"visa", ""}},
			want: []stripeAnswer{{Status: 429, Type: "invalid_request_error"}}, attempts: 3, waits: time.Second,
		},
		"lost, then rate limited: nobody knows": {
			plan: []string{"lost", "rate limited", "rate limited"}, requests: [][2]string{{"visa", ""}},
			want: []stripeAnswer{{Status: 429, Type: "invalid_request_error", Unknown: true}}, attempts: 3, charges: 1,
		},
		"a stored 500 is final": {
			plan: []string{"crashed"}, requests: [][2]string{{"visa", ""}},
			want: []stripeAnswer{{Status: 500, Type: "api_error", Replayed: true}}, attempts: 2,
		},
		"declined is final": {
			requests: [][2]string{{"declined", "mine"}, {"declined", "mine"}},
			want:     []stripeAnswer{{Status: 402, Type: "card_error"}, {Status: 402, Type: "card_error", Replayed: true}}, attempts: 2,
		},
		"a key with other parameters": { // the key's first request was carried out, and the answer is not about this one
			requests: [][2]string{{"visa", "mine"}, {"amex", "mine"}, {"visa", "mine"}},
			want:     []stripeAnswer{ok, {Status: 400, Type: "idempotency_error", Unknown: true}, replayed}, attempts: 3, charges: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &fakeStripe{plan: tt.plan, stored: map[string]*storedCharge{}}
				network, _ := serve(t, s, nil)
				hc := &http.Client{Transport: client.New(network)}
				got := []stripeAnswer{}
				for _, r := range tt.requests {
					got = append(got, chargeCard(t, hc, r[0], r[1]))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if len(s.keys) != tt.attempts || len(s.charges) != tt.charges {
					t.Errorf("%d attempts, %d charges; want %d, %d", len(s.keys), len(s.charges), tt.attempts, tt.charges)
				}
				for i := 1; i < len(s.keys) && len(tt.requests) == 1; i++ {
					if wait := s.at[i].Sub(s.at[i-1]); wait < tt.waits || s.keys[i] != s.keys[0] || !uuid4.MatchString(s.keys[i]) {
						t.Errorf("attempt %d came after %v with key %q, the first had %q", i+1, wait, s.keys[i], s.keys[0])
					}
				}
			})
		})
	}
}

// The client gives up waiting while the charge is made: 409 until it is, then
// its answer.
func TestAgainstStripeInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counts{}
		s := &fakeStripe{stored: map[string]*storedCharge{}}
		network, _ := serve(t, s, nil)
		hc := &http.Client{Transport: client.New(network, func(o *client.Options) {
			o.AttemptTimeout, o.MaxRetries, o.Hooks = 2*time.Second, 5, c.hooks()
		})}
		want := stripeAnswer{Status: 200, ID: "ch_1", Replayed: true}
		if got := chargeCard(t, hc, "visa", ""); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if c.of("retry timeout") != 1 || c.of("retry status") == 0 || len(s.charges) != 1 {
			t.Errorf("%v, charges %q", c.n, s.charges)
		}
	})
}

// Without a password nothing is stored: the same key works with one.
func TestAgainstStripeWithoutAPassword(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStripe{stored: map[string]*storedCharge{}}
		network, _ := serve(t, s, nil)
		hc := &http.Client{Transport: client.New(network)}
		if resp := post(t, hc, "http://api.test/v1/charges", keyHeader, "mine"); resp.StatusCode != 401 || len(s.keys) != 1 {
			t.Errorf("status %d after %d attempts", resp.StatusCode, len(s.keys))
		}
		if got := chargeCard(t, hc, "visa", "mine"); got.ID != "ch_1" || got.Replayed {
			t.Errorf("%+v", got)
		}
	})
}

func chargeCard(t *testing.T, hc *http.Client, card, key string) stripeAnswer {
	t.Helper()
	form := url.Values{"amount": {"2000"}, "currency": {"usd"}, "source": {card}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test/v1/charges", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer sk_test")
	if key != "" {
		req.Header.Set(keyHeader, key)
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct {
		ID    string
		Error struct{ Type string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return stripeAnswer{
		Status: resp.StatusCode, ID: body.ID, Type: body.Error.Type, Replayed: resp.Header.Get("Idempotent-Replayed") == "true",
		Unknown: resp.Header.Get(client.ResultHeader) == client.OutcomeUnknown,
	}
}
