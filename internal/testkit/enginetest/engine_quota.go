package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// oneAMinute allows each caller one new operation a minute.
func (e *env) oneAMinute(o *idem.Options) {
	o.Quota = quota.New(quota.Limits{PerMinute: 1}, func(o *quota.Options) { o.Now = e.clock.Now })
}

// engineQuota tests the quota of new operations, which is checked before the claim.
func engineQuota(s suite) {
	s.run("a new key over the quota gets a 429, costs one read, and is not burned", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(e.oneAMinute)
		e.costs(t, 2, func() { serve(t, eng, keyed("k1", "1"), a.run).status(t, 201) })
		e.clock.Advance(500 * time.Millisecond)
		e.costs(t, 1, func() { serve(t, eng, keyed("k2", "1"), a.run).status(t, 429).header(t, "Retry-After", "60") })
		e.clock.Advance(59*time.Second + 400*time.Millisecond)
		serve(t, eng, keyed("k2", "1"), a.run).status(t, 429).header(t, "Retry-After", "1")
		if r := e.record(t, order("k2", "1")); r != nil {
			t.Errorf("the refused request has left %+v", r)
		}
		e.clock.Advance(time.Second)
		serve(t, eng, keyed("k2", "another body"), a.run).status(t, 201)
		a.ran(t, 2)
	})

	s.run("over the quota, a known key is served as always", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine(e.oneAMinute)
		first := begin(t, eng, order("k", "1"), a.held(g))
		g.Reached(t)
		e.costs(t, 1, func() { do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrInFlight) })
		g.Open()
		was := (<-first).first(t)
		do(t, eng, order("new", "1"), a.run).refused(t, idem.ErrQuota)
		for range 20 { // a burst of retries
			e.costs(t, 1, func() { do(t, eng, order("k", "1"), a.run).replays(t, was) })
		}
		do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch)
		a.ran(t, 1)
	})

	s.run("over the quota, a retry takes an abandoned operation over", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(2 * storetest.Limit)
		eng := e.engine(e.oneAMinute)
		do(t, eng, order("new", "1"), a.run).first(t)
		do(t, eng, order("new2", "1"), a.run).refused(t, idem.ErrQuota)
		e.costs(t, 3, func() { do(t, eng, order("k", "1"), a.run).first(t) })
		a.ran(t, 2)
	})

	s.run("below the quota nothing costs more, and a known key takes no place", func(t *testing.T, e *env) {
		var a app
		two := quota.New(quota.Limits{PerMinute: 2, Open: 1}, func(o *quota.Options) { o.Now = e.clock.Now })
		eng := e.engine(func(o *idem.Options) { o.Quota = two })
		e.costs(t, 2, func() { do(t, eng, order("k", "1"), a.run).first(t) })
		for range 5 {
			e.costs(t, 1, func() {
				if r := do(t, eng, order("k", "1"), a.run); r.err != nil || !r.Replayed {
					t.Errorf("got %v, want a replay", r)
				}
			})
		}
		e.costs(t, 2, func() { do(t, eng, order("k2", "1"), a.run).first(t) })
		do(t, eng, order("k3", "1"), a.run).refused(t, idem.ErrQuota)
	})

	s.run("a caller over its quota takes nothing from another", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(e.oneAMinute)
		as := func(scope, key string) idem.Request {
			r := order(key, "1")
			r.Scope = scope
			return r
		}
		do(t, eng, as("mallory", "1"), a.run).first(t)
		for range 30 {
			do(t, eng, as("mallory", "random"), a.run).refused(t, idem.ErrQuota)
		}
		e.costs(t, 2, func() { do(t, eng, as("jane", "1"), a.run).first(t) })
		a.ran(t, 2)
	})

	s.run("a key that was freed is new again", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(e.oneAMinute)
		do(t, eng, order("k", "1"), a.fail(errDown)).refused(t, errDown)
		do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrQuota)
		a.ran(t, 1)
	})

	s.run("an operation within an operation needs no place", func(t *testing.T, e *env) {
		var outer, inner app
		eng := e.engine(e.oneAMinute)
		do(t, eng, order("outer", "1"), func(ctx context.Context) (idem.Response, error) {
			if _, err := eng.Do(ctx, order("inner", "1"), inner.run); err != nil {
				t.Error(err)
			}
			return outer.run(ctx)
		}).first(t)
		inner.ran(t, 1)
	})
}
