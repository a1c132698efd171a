package stripe

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
)

// api is an API that a client may find: a preset, and the paths by which the
// client tells v1 from v2.
type api struct {
	preset func(*idem.Options)
	v2     bool
	keeps  bool // server errors
}

var apis = map[string]api{
	"StripeV1 on v1 paths": {idem.StripeV1, false, true},
	"Stripe on v1 paths":   {idem.Stripe, false, false},
	"Stripe on v2 paths":   {idem.Stripe, true, false},
}

// trial is a client at an API.
type trial struct {
	*testing.T
	*server
	api
	name string
	client
}

// each runs a test by every client at every API.
func each(t *testing.T, test func(t *trial)) {
	t.Helper()
	t.Parallel()
	for name, start := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			for _, what := range slices.Sorted(maps.Keys(apis)) {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					s := newServer(t, apis[what].preset)
					test(&trial{t, s, apis[what], name, c})
				})
			}
		})
	}
}

// begin begins a call; what is missing of it is a usual payment's.
func (t *trial) begin(c call) <-chan seen {
	t.Helper()
	c.URL, c.V2 = t.URL, t.v2
	if c.Call == "" {
		c.Call = "pay"
	}
	if c.Amount == 0 {
		c.Amount = 2000
	}
	if c.Account == "" {
		c.Account = "1"
	}
	return t.do(t.T, c)
}

func (t *trial) call(c call) seen {
	t.Helper()
	s, ok := <-t.begin(c)
	if !ok {
		t.Fatal("the client's process has ended")
	}
	s.N = 0
	return s
}

// came are the statuses that a key's requests were answered with.
func (t *trial) came(key string) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var statuses []int
	for _, r := range t.seen[key] {
		statuses = append(statuses, r.status)
	}
	return statuses
}

func (t *trial) ran(key string, want int) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if got := t.runs[key]; got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// named is what a client calls an error of Stripe's documentation.
func (t *trial) named(name string) string {
	return map[string]string{"python": "", "node": "Stripe", "go": "*stripe."}[t.name] + name
}

// fails demands an error by its name.
func (t *trial) fails(got seen, name string, status int, code string) {
	t.Helper()
	if got.Error != t.named(name) || got.Status != status || got.Code != code && code != "" {
		t.Errorf("got %s, status %d, code %q; want %s, %d, %q", got.Error, got.Status, got.Code, t.named(name), status, code)
	}
}

func (t *trial) succeeds(got seen, id string, replayed bool) {
	t.Helper()
	if got.Error != "" || got.ID != id || (got.Headers["idempotent-replayed"] == "true") != replayed {
		t.Errorf("got %+v; want %s, replayed: %t", got, id, replayed)
	}
}

// A key that is used with other parameters is an IdempotencyError, and not
// retried.
func TestIdempotencyError(t *testing.T) {
	each(t, func(t *trial) {
		t.succeeds(t.call(call{Key: "k"}), "pi_k_1", false)
		got := t.call(call{Key: "k", Amount: 9900, Retries: 2})
		t.fails(got, "IdempotencyError", http.StatusBadRequest, "")
		if diff := cmp.Diff([]int{200, 400}, t.came("k")); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		t.ran("k", 1)
	})
}

// So is a key of another account's, where the server doesn't tell accounts apart.
func TestAnotherAccountsKey(t *testing.T) {
	each(t, func(t *trial) {
		t.succeeds(t.call(call{Key: "k"}), "pi_k_1", false)
		t.succeeds(t.call(call{Key: "k", Account: "2"}), "pi_k_2", false)
		t.succeeds(t.call(call{Key: "k"}), "pi_k_1", true)
		t.ran("k", 2)
	})
}

// A request whose key is in use is refused with 409. The clients retry that by
// themselves, since Stripe-Should-Retry says so, and get the first one's answer.
func TestInFlight(t *testing.T) {
	each(t, func(t *trial) {
		first := t.begin(call{Key: "k", Play: "slow"})
		<-t.began
		got := t.call(call{Key: "k", Play: "slow"})
		name := "APIError"
		if t.v2 || t.name == "go" { // v1's clients for Python and Node go by the status
			name = "IdempotencyError"
		}
		t.fails(got, name, http.StatusConflict, "idempotency_key_in_use")
		if got.Headers["stripe-should-retry"] != "true" || got.Headers["retry-after"] == "" {
			t.Errorf("headers: %v", got.Headers)
		}
		second := t.begin(call{Key: "k", Play: "slow", Retries: 3})
		t.awaits("k", 2)
		close(t.ends)
		t.succeeds(<-first, "pi_k_1", false)
		if got := <-second; t.name == "go" { // stripe-go 85 retries lost answers only
			t.fails(got, name, http.StatusConflict, "idempotency_key_in_use")
			t.succeeds(t.call(call{Key: "k", Play: "slow"}), "pi_k_1", true)
		} else {
			t.succeeds(got, "pi_k_1", true)
		}
		t.ran("k", 1)
	})
}

// A caller over the quota gets a 429. Stripe's clients come back with the key, which the
// refusal hasn't used up: by their own back-off, since they don't look at Retry-After.
func TestOverTheQuota(t *testing.T) {
	each(t, func(t *trial) {
		q := &places{at: time.Now()}
		t.server = newServer(t.T, func(o *idem.Options) {
			t.preset(o)
			o.Quota = quota.New(quota.Limits{PerMinute: 60, Burst: 1}, func(o *quota.Options) { o.Now = q.now })
		})
		t.succeeds(t.call(call{Key: "first"}), "pi_first_1", false)
		refused := t.call(call{Key: "refused"})
		t.fails(refused, map[string]string{"node": "RateLimitError", "python": "RateLimitError", "go": "InvalidRequestError"}[t.name], http.StatusTooManyRequests, "")
		if refused.Headers["retry-after"] != "1" || refused.Headers["stripe-should-retry"] != "true" {
			t.Errorf("headers: %v", refused.Headers)
		}
		t.ran("refused", 0)

		retried := t.begin(call{Key: "retried", Retries: 3})
		t.awaits("retried", 1)
		q.pass()
		got := <-retried
		if t.name == "go" { // stripe-go 85 retries lost answers only
			t.fails(got, "InvalidRequestError", http.StatusTooManyRequests, "")
			got = t.call(call{Key: "retried"})
		}
		t.succeeds(got, "pi_retried_1", false)
		if diff := cmp.Diff([]int{429, 200}, t.came("retried")); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		t.ran("retried", 1)
	})
}

// places is the clock of a quota: another place is free when it passes.
type places struct {
	mu sync.Mutex
	at time.Time
}

func (p *places) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *places) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = p.at.Add(time.Second)
}

// A lost answer is fetched by the client's own retry, with the key it has made.
func TestLostAnswer(t *testing.T) {
	each(t, func(t *trial) {
		got := t.call(call{Play: "lost", Retries: 2})
		key := got.Headers["idempotency-key"]
		t.succeeds(got, "pi_"+key+"_1", true)
		if diff := cmp.Diff([]int{200, 200}, t.came(key)); diff != "" || key == "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		t.ran(key, 1)
	})
}

// A replay tells which request it is the answer to: its own id, and the first's.
func TestReplay(t *testing.T) {
	each(t, func(t *trial) {
		var got []string
		for n := range 2 {
			s := t.call(call{Key: "k"})
			t.succeeds(s, "pi_k_1", n > 0)
			got = append(got, s.Headers["request-id"], s.Headers["original-request"], s.Headers["idempotency-key"])
		}
		if diff := cmp.Diff([]string{"req_1", "req_1", "k", "req_2", "req_1", "k"}, got); diff != "" {
			t.Errorf("request, original request, key (-want +got):\n%s", diff)
		}
		t.ran("k", 1)
	})
}

// A server error that is kept is not retried, since the same would come again;
// one that is not kept is.
func TestServerError(t *testing.T) {
	each(t, func(t *trial) {
		first := t.call(call{Key: "k", Play: "broken", Retries: 2})
		switch {
		case t.keeps:
			t.fails(first, "APIError", http.StatusInternalServerError, "")
			again := t.call(call{Key: "k", Play: "broken", Retries: 2})
			t.fails(again, "APIError", http.StatusInternalServerError, "")
			for _, s := range []seen{first, again} {
				if s.Headers["stripe-should-retry"] != "false" {
					t.Errorf("headers: %v", s.Headers)
				}
			}
			if again.Headers["idempotent-replayed"] != "true" || again.Headers["original-request"] != first.Request {
				t.Errorf("%+v is no replay of %+v", again, first)
			}
			if diff := cmp.Diff([]int{500, 500}, t.came("k")); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			t.ran("k", 1)
		case t.name == "go":
			t.fails(first, "APIError", http.StatusInternalServerError, "")
			t.succeeds(t.call(call{Key: "k", Play: "broken"}), "pi_k_2", false)
		default:
			t.succeeds(first, "pi_k_2", false)
			t.ran("k", 2)
		}
	})
}

// A declined card is an answer: kept, replayed, and never charged again.
func TestDeclinedCard(t *testing.T) {
	each(t, func(t *trial) {
		for range 2 {
			t.fails(t.call(call{Key: "k", Play: "declined", Retries: 2}), "CardError", http.StatusPaymentRequired, "card_declined")
		}
		if diff := cmp.Diff([]int{402, 402}, t.came("k")); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		t.ran("k", 1)
	})
}

// Parameters that are refused, and a rate limit, leave the key free.
func TestFreedKey(t *testing.T) {
	each(t, func(t *trial) {
		t.fails(t.call(call{Key: "k", Amount: 1, Retries: 2}), "InvalidRequestError", http.StatusBadRequest, "amount_too_small")
		t.succeeds(t.call(call{Key: "k"}), "pi_k_2", false)

		name := "RateLimitError"
		if t.name == "go" {
			name = "InvalidRequestError"
		}
		t.fails(t.call(call{Key: "r", Play: "limited"}), name, http.StatusTooManyRequests, "rate_limit")
		t.succeeds(t.call(call{Key: "r", Play: "limited"}), "pi_r_2", false)
	})
}

// v1's DELETE has no key, and is carried out each time. The client for Go sends
// one nevertheless, and v2's clients do.
func TestDelete(t *testing.T) {
	each(t, func(t *trial) {
		for range 2 {
			t.succeeds(t.call(call{Call: "delete", Retries: 2}), "cus_1", false)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if keyed := len(t.seen[""]) == 0; keyed != (t.v2 || t.name == "go") {
			t.Errorf("DELETE has a key: %t", keyed)
		}
	})
}

// What waits for an operator is not retried.
func TestStuck(t *testing.T) {
	each(t, func(t *trial) {
		t.call(call{Key: "k", Play: "stuck"})
		got := t.call(call{Key: "k", Play: "stuck", Retries: 2})
		name := "APIError"
		if t.v2 || t.name == "go" {
			name = "IdempotencyError"
		}
		t.fails(got, name, http.StatusConflict, "idempotency_stuck")
		if n := len(t.came("k")); n != 2 {
			t.Errorf("%d requests, want 2: %v", n, t.came("k"))
		}
		t.ran("k", 1)
	})
}
