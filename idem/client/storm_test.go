package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/samekey/samekey/idem/client"
)

// When all requests fail, retries stay a fraction of the requests.
func TestBudgetStopsStorms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counts{}
		s := &script{steps: []step{answer(503)}}
		tr := client.New(s, func(o *client.Options) { o.Hooks, o.BudgetPerSecond = c.hooks(), 1 })
		const n = 1000
		for range n {
			status(t, tr, request(t, "POST", "x"))
		}
		retries := len(s.attempts()) - n
		elapsed := s.attempts()[len(s.attempts())-1].At.Sub(s.attempts()[0].At).Seconds()
		if most := n/10 + 10 + int(elapsed) + 1; retries > most || retries < n/10 {
			t.Errorf("%d retries of %d requests in %.0f s, want at most %d", retries, n, elapsed, most)
		}
		if c.of("gave up budget") == 0 {
			t.Errorf("hooks %v", c.n)
		}

		s = &script{steps: []step{answer(503)}}
		tr = client.New(s, func(o *client.Options) { o.NoBudget = true })
		for range n {
			status(t, tr, request(t, "POST", "x"))
		}
		if got := len(s.attempts()); got != 3*n {
			t.Errorf("%d attempts without a budget, want %d", got, 3*n)
		}
	})
}
