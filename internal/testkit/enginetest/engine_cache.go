package enginetest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// The cache of a process, and the read of a retry.
func engineCache(s suite) {
	cached := func(o *idem.Options) { o.CacheBytes = 1 << 20 }

	s.run("P3: a replay from the cache makes no call", func(t *testing.T, e *env) {
		var a app
		eng, other := e.engine(cached), e.engine(cached)
		first := do(t, eng, order("k", "1"), a.run).first(t)
		e.costs(t, 0, func() { do(t, eng, order("k", "1"), a.run).replays(t, first) })
		e.costs(t, 1, func() { do(t, other, order("k", "1"), a.run).replays(t, first) })
		e.costs(t, 0, func() { do(t, other, order("k", "1"), a.run).replays(t, first) })
		a.ran(t, 1)
	})

	s.run("P3: the cache forgets when the key expires", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(cached)
		do(t, eng, order("k", "1"), a.run).first(t)
		e.clock.Advance(defaults.Retention + time.Second)
		second := do(t, eng, order("k", "2"), a.run).first(t)
		do(t, eng, order("k", "2"), a.run).replays(t, second)
		a.ran(t, 2)
	})

	s.run("a key that expired in the cache is claimed like any other", func(t *testing.T, e *env) {
		var a app
		observing := func(o *idem.Options) { o.Key = idem.KeyObserve }
		for name, eng := range map[string]*idem.Engine{"replaying": e.engine(cached), "observing": e.engine(cached, observing)} {
			r := order(name, "1")
			var owners, ids []string
			for range 2 {
				if _, err := eng.Do(t.Context(), r, a.run); err != nil {
					t.Fatal(err)
				}
				rec := e.record(t, r)
				owners, ids = append(owners, rec.Owner), append(ids, rec.ID)
				e.clock.Advance(defaults.Retention + time.Second)
			}
			if len(owners[1]) < 26 || len(ids[1]) < 26 || owners[0] == owners[1] || ids[0] == ids[1] {
				t.Errorf("%s: owners %q, ids %q", name, owners, ids)
			}
		}
		a.ran(t, 4)
	})

	s.run("P3: a record of another program replays from the cache as from the store", func(t *testing.T, e *env) {
		var a app
		if _, err := e.engineOn(careless{e.store}).Do(t.Context(), order("k", "1"), a.run); err != nil {
			t.Fatal(err)
		}
		eng := e.engine(cached)
		for i := range 3 {
			e.costs(t, max(1-i, 0), func() {
				res, err := eng.Do(t.Context(), order("k", "1"), a.run)
				want := http.Header{"Content-Type": {"application/json"}, "Etag": {"1"}}
				if diff := cmp.Diff(want, res.Header); err != nil || !res.Replayed || diff != "" {
					t.Errorf("replay %d: %t, %v (-want +got):\n%s", i, res.Replayed, err, diff)
				}
			})
		}
		a.ran(t, 1)
	})

	s.run("P5: what is in flight never enters the cache", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		here, there := e.engine(cached), e.engine(cached)
		held := begin(t, here, order("k", "1"), a.held(g))
		g.Reached(t)
		e.costs(t, 1, func() { do(t, there, order("k", "1"), a.run).refused(t, idem.ErrInFlight) })
		e.costs(t, 1, func() { do(t, there, order("k", "1"), a.run).refused(t, idem.ErrInFlight) })
		g.Open()
		first := (<-held).first(t)
		e.costs(t, 1, func() { do(t, there, order("k", "1"), a.run).replays(t, first) })
		a.ran(t, 1)
	})

	s.run("P5: what was released never enters the cache", func(t *testing.T, e *env) {
		refusing, good := app{status: 422}, app{}
		eng := e.engine(cached)
		do(t, eng, order("k", "1"), refusing.run).first(t)
		do(t, eng, order("k", "1"), good.run).first(t)
		good.ran(t, 1)
	})

	s.run("P18: a mismatch is served from the cache and never enters it", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(cached)
		first := do(t, eng, order("k", "1"), a.run).first(t)
		e.costs(t, 0, func() {
			do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch)
			do(t, eng, order("k", "1"), a.run).replays(t, first)
		})
		other := e.engine(cached)
		e.costs(t, 1, func() { do(t, other, order("k", "2"), a.run).refused(t, idem.ErrMismatch) })
		e.costs(t, 1, func() { do(t, other, order("k", "1"), a.run).replays(t, first) })
		a.ran(t, 1)
	})

	s.run("P3: the cache keeps users apart", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(cached)
		ann, bob := order("k", "1"), order("k", "1")
		ann.Scope, bob.Scope = "ann", "bob"
		do(t, eng, ann, a.run).first(t)
		do(t, eng, bob, a.run).first(t)
		a.ran(t, 2)
	})

	s.run("P3: an answer that does not fit the cache replays from the store", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.CacheBytes = 1 })
		first := do(t, eng, order("k", "1"), a.run).first(t)
		e.costs(t, 1, func() { do(t, eng, order("k", "1"), a.run).replays(t, first) })
	})

	s.run("a retry is a read, and a lie a read more", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		retry := retried(order("k", "1"))
		var first result
		e.costs(t, 3, func() { first = do(t, eng, retry, a.run).first(t) })
		before := e.store.Calls(idemtest.Claim)
		e.costs(t, 1, func() { do(t, eng, retry, a.run).replays(t, first) })
		if e.store.Calls(idemtest.Load) != 2 || e.store.Calls(idemtest.Claim) != before {
			t.Errorf("%d reads, %d claims", e.store.Calls(idemtest.Load), e.store.Calls(idemtest.Claim))
		}
		a.ran(t, 1)
	})

	s.run("a retry is judged by the record as it is", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine(func(o *idem.Options) { o.Tombstone = time.Hour })
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
		refused("1", idem.ErrExpired)
		e.clock.Advance(time.Hour + time.Second)
		do(t, eng, retried(order("k", "1")), a.run).first(t)
		a.ran(t, 2)
	})

	s.run("a retry takes over, and replaces a freed record, without a refused claim", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		e.costs(t, 3, func() { do(t, eng, retried(order("k", "1")), a.run).first(t) }) // with the finish
		if n := e.store.Calls(idemtest.Claim); n != 0 {
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
		e.store.Reset(idemtest.At(idemtest.Load, 0, idemtest.Fault{Err: errDown}))
		do(t, eng, retried(order("k", "1")), a.run).replays(t, first)
		do(t, eng, retried(order("new", "1")), a.run).first(t)
		a.ran(t, 2)
	})
}

// retried is the request with the sign of a retry.
func retried(r idem.Request) idem.Request {
	r.Header = http.Header{retrysign.Client: {"1"}}
	return r
}

// careless is a store that another program writes to, with headers that no record may
// hold.
type careless struct{ *idemtest.FaultyStore }

func (s careless) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	c.Next = c.Next.Clone()
	c.Next.Response.Header = http.Header{
		"Content-Type": {"application/json"}, "Set-Cookie": {"session=1"}, "X-Amz-Secret": {"1"}, "Link": {"a\r\nb"}, "b d": {"1"}, "etag": {"1"},
	}
	return s.FaultyStore.Commit(ctx, c)
}
