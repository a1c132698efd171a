package enginetest

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineRetry tests that a retry reads the record before it claims the key.
func engineRetry(s suite) {
	s.run("a retry is a read, and a lie a read more", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		retry := retried(order("k", "1"))
		var first result
		e.costs(t, 3, func() { first = do(t, eng, retry, a.run).first(t) })
		before := e.store.Calls("Claim")
		e.costs(t, 1, func() { do(t, eng, retry, a.run).replays(t, first) })
		if e.store.Calls("Load") != 2 || e.store.Calls("Claim") != before {
			t.Errorf("%d reads, %d claims", e.store.Calls("Load"), e.store.Calls("Claim"))
		}
		a.ran(t, 1)
	})

	s.run("a retry is judged by the record as it is", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine()
		held := begin(t, eng, order("k", "1"), a.held(g))
		g.Reached(t)
		refused := func(body string, want error) {
			t.Helper()
			e.costs(t, 1, func() { do(t, eng, retried(order("k", body)), a.run).refused(t, want) })
		}
		refused("1", idem.ErrInFlight)
		refused("2", idem.ErrMismatch)
		g.Open()
		(<-held).first(t)
		refused("2", idem.ErrMismatch)
		e.clock.Advance(defaults.Retention + time.Second)
		do(t, eng, retried(order("k", "1")), a.run).first(t)
		a.ran(t, 2)
	})

	s.run("a retry takes over, and replaces a freed record, without a refused claim", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		e.costs(t, 3, func() { do(t, eng, retried(order("k", "1")), a.run).first(t) }) // the read, the take-over, the finish
		if n := e.store.Calls("Claim"); n != 0 {
			t.Errorf("%d claims", n)
		}
		if r := do(t, eng, order("freed", "1"), a.fail(errHandler)); !errors.Is(r.err, errHandler) {
			t.Fatal(r)
		}
		e.costs(t, 3, func() { do(t, eng, retried(order("freed", "1")), a.run).first(t) })
		a.ran(t, 3)
	})

	s.run("a retry whose read fails is claimed", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", "1"), a.run).first(t)
		e.store.Reset(idemtest.At("Load", 0, idemtest.Fault{Err: errDown}))
		do(t, eng, retried(order("k", "1")), a.run).replays(t, first)
		do(t, eng, retried(order("new", "1")), a.run).first(t)
		a.ran(t, 2)
	})
}

// retried returns r with the header that marks a retry, and without other headers.
func retried(r idem.Request) idem.Request {
	r.Header = http.Header{retrysign.Client: {"1"}}
	return r
}
