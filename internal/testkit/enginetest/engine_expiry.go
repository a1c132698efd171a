package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineExpiry tests keys that expire.
func engineExpiry(s suite) {
	s.run("past its expiry a key is new though its record is still there", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", "1"), a.run).first(t)
		old := e.record(t, order("k", "1"))

		e.clock.Advance(defaults.Retention) // the record expires after this second, because expiry is in whole seconds
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)

		e.clock.Advance(time.Second)
		var second result
		e.costs(t, 2, func() { second = do(t, eng, order("k", "2"), a.run).first(t) })
		do(t, eng, order("k", "2"), a.run).replays(t, second)
		a.ran(t, 2)
		if e.record(t, order("k", "2")).ID == old.ID {
			t.Error("the new operation has the old one's id: its derived keys would be the old ones")
		}
	})

	s.run("a finished record that is kept for its jobs replays past its lifetime", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", "1"), a.run).first(t)
		r := e.record(t, order("k", "1"))
		storetest.MustCommit(t, e.inner, r, storetest.Next(r, func(n *store.Record) {
			n.Keep, n.Until, n.Expires = store.KeepJobs, n.Expires, time.Time{}
			n.Jobs = map[string]idem.Job{"0.0": {Kind: "receipt", Args: []byte("{}")}}
		}))
		e.clock.Advance(10 * defaults.Retention)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("an abandoned request that has expired is forgotten", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(defaults.Retention + time.Hour)
		do(t, e.engine(), order("k", "2"), a.run).first(t)
		a.ran(t, 1)
	})

	s.run("a record that expires between the claim and its verdict is claimed anew", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		do(t, eng, order("k", "1"), a.run).first(t)
		e.clock.Advance(defaults.Retention)
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Claim" && c.N == 1 {
				e.clock.Advance(time.Second) // the claim is so slow that the record expires in the meantime
			}
			return idemtest.Fault{}
		})
		e.costs(t, 3, func() { do(t, eng, order("k", "1"), a.run).first(t) })
		a.ran(t, 2)
	})

	s.run("a record never expires before its lease", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine(func(o *idem.Options) {
			o.Retention, o.Lease, o.LeaseMargin = defaults.MinRetention, defaults.MinRetention, defaults.MinRetention
		})
		done := make(chan result, 1)
		go func() {
			res, err := eng.Do(context.WithoutCancel(t.Context()), order("k", "1"), a.held(g))
			done <- result{res, err}
		}()
		g.Reached(t)
		e.clock.Advance(defaults.MinRetention + time.Minute)
		do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		g.Open()
		(<-done).first(t)
		a.ran(t, 1)
	})
}
