package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem/client"
)

// First-at 9, apache/iceberg #18070: no retry after the server forgot the key.
func TestNeverPastTheKeysLifetime(t *testing.T) {
	t.Parallel()
	const expires = "Idempotency-Expires"
	for name, tt := range map[string]struct {
		method  string
		headers func() []string
		opt     func(*client.Options)
		retried bool
	}{
		"advertised, over before the wait is": {headers: func() []string { return []string{expires, timeAfter(5), "Retry-After", "4"} }},
		"advertised, long enough":             {headers: func() []string { return []string{expires, timeAfter(60), "Retry-After", "4"} }, retried: true},
		"advertised, in the past":             {headers: func() []string { return []string{expires, timeAfter(-5)} }},
		"advertised nonsense":                 {headers: func() []string { return []string{expires, "tomorrow"} }, retried: true},
		"by the server's clock, an hour fast": {headers: func() []string {
			return []string{expires, timeAfter(3605), "Date", timeAfter(3600), "Retry-After", "4"}
		}},
		"by the server's clock, an hour slow": {headers: func() []string {
			return []string{expires, timeAfter(-3540), "Date", timeAfter(-3600), "Retry-After", "4"}
		}, retried: true},
		"of the option": {headers: func() []string { return []string{"Retry-After", "4"} }, opt: lifetime},
		"the server's word counts more": {
			headers: func() []string { return []string{expires, timeAfter(60), "Retry-After", "4"} },
			opt:     lifetime, retried: true,
		},
		"no key, no record":   {method: "PUT", headers: func() []string { return []string{"Idempotency-Status", "unstored"} }, retried: true},
		"no key, no lifetime": {method: "PUT", headers: func() []string { return []string{expires, timeAfter(5), "Retry-After", "4"} }, retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if tt.opt == nil {
					tt.opt = func(*client.Options) {}
				}
				if tt.method == "" {
					tt.method = "POST"
				}
				c := &counts{}
				s := &script{steps: []step{answer(503, tt.headers()...), answer(200)}}
				status(t, client.New(s, tt.opt, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, tt.method, "x"))
				if got := len(s.attempts()) == 2; got != tt.retried || c.of("gave up lifetime") == 1 == got {
					t.Errorf("retried: %t, want %t (%v)", got, tt.retried, c.n)
				}
			})
		})
	}
}

// A server repeats an operation that it could not store, or whose key it ignored:
// the key has no lifetime left.
func TestAnswerWithoutARecordEndsTheKey(t *testing.T) {
	t.Parallel()
	unstored := []string{"Idempotency-Status", "Unstored", "Idempotency-Expires", timeAfter(3600)}
	ignored := []string{"Idempotency-Status", "Ignored"}
	for name, first := range map[string]step{
		"unstored": answer(201, unstored...), "unstored, would be retried": answer(500, unstored...), "unstored and torn": torn(201, unstored...),
		"ignored": answer(201, ignored...), "ignored, would be retried": answer(500, ignored...), "ignored and torn": torn(201, ignored...),
		"ignored, and asks for a retry": answer(500, append(ignored, "Stripe-Should-Retry", "true")...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := journalFile(t)
				j := open(t, path)
				s := &script{steps: []step{first, answer(201)}}
				if resp, err := client.New(s, with(j)).RoundTrip(named(t, "POST", "order-42", "x")); err == nil {
					_ = resp.Body.Close()
				}
				crash(t, j) // before the answer was stored
				e := failure(t, client.New(s, with(open(t, path))), named(t, "POST", "order-42", "x"))
				if len(s.attempts()) != 1 || !errors.Is(e, client.ErrExpired) || !e.Unknown {
					t.Errorf("sent %d times, %v; want once", len(s.attempts()), e)
				}
			})
		})
	}
}

func lifetime(o *client.Options) { o.KeyLifetime = 5 * time.Second }

// Whatever the waits, no attempt follows the end of the lifetime.
func TestNoAttemptAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, life := range []time.Duration{3 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
			s := &script{steps: []step{failing(errReset)}}
			e := failure(t, client.New(s, func(o *client.Options) {
				o.KeyLifetime, o.MaxRetries, o.NoBudget = life, 1000, true
			}), request(t, "POST", "x"))
			seen := s.attempts()
			if last := seen[len(seen)-1].At.Sub(seen[0].At); last > life || e.GaveUp != "lifetime" || len(seen) < 2 {
				t.Errorf("lifetime %v: last of %d attempts after %v, %v", life, len(seen), last, e)
			}
		}
	})
}
