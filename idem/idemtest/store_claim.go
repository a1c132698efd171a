package idemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

func storeClaim(s suite) {
	s.run("a claim on nothing is granted", func(t *testing.T, e *env) {
		want := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
	})

	s.run("a second claim gets the first one's record and changes nothing", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		want := storetest.MustClaim(t, e.inner, c)
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now())), want)
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
	})

	s.run("a claim sent twice gets its own record", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		want := storetest.MustClaim(t, e.inner, store.Claim{Next: c.Next.Clone(), Now: c.Now})
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, c), want)
	})

	// A record under Claim.Beside refuses the claim. The exception is a record that the
	// claimer has fenced (Claim.Fenced).
	s.run("a claim beside another record", func(t *testing.T, e *env) {
		beside := func(at time.Time, other *store.Record) store.Claim {
			c := storetest.ClaimAt(at)
			c.Beside = other.PK
			return c
		}
		now := e.clock.Now()
		nothing := storetest.ClaimAt(now)
		storetest.MustClaim(t, e.inner, beside(now, nothing.Next))

		live := storetest.MustClaim(t, e.inner, storetest.ClaimAt(now))
		c := beside(now, live)
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, c), live)
		if got := storetest.Load(t, e.inner, c.Next.PK); got != nil {
			t.Errorf("the refused claim has written %+v", got)
		}
		after := live.Expires.Add(time.Second)
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, beside(after, live)), live)
		fenced := storetest.MustCommit(t, e.inner, live, storetest.Next(live, func(n *store.Record) { n.Owner = "the claimer" }))
		other := fenced.Clone()
		other.Owner = live.Owner
		for _, seen := range []*store.Record{other, storetest.Next(fenced, func(*store.Record) {})} {
			changed := beside(after, fenced)
			changed.Fenced = seen
			storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, changed), fenced)
		}
		mine := beside(after, fenced)
		mine.Fenced = fenced
		claimed := storetest.MustClaim(t, e.inner, mine)
		storetest.SameRecord(t, storetest.Load(t, e.inner, fenced.PK), fenced)

		both := storetest.Rival(store.Claim{Next: claimed}, now) // if both places of the key hold a record, the store returns the record under Next.PK
		both.Beside = fenced.PK
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, both), claimed)
	})

	s.run("an expired record of another owner is replaced as a whole", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		old := storetest.MustClaim(t, e.inner, c)
		old = storetest.MustCommit(t, e.inner, old, storetest.Next(old, func(n *store.Record) {
			n.LastErr, n.Tries = "it failed", 3
			n.Phases = []store.Phase{{Name: "ride_created", Result: []byte(`1`)}}
			n.Jobs = map[string]idem.Job{"0.0": {Kind: "receipt", Args: []byte(`{}`)}}
		}))
		want := storetest.MustClaim(t, e.inner, storetest.Rival(c, old.Expires.Add(time.Second)))
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
	})

	s.run("a finished record is replaced once it has expired, not before", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		old := storetest.MustClaim(t, e.inner, c)
		old = storetest.MustCommit(t, e.inner, old, finishedNext(old, []byte("kept")))
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, old.Expires.Add(-time.Second))), old)
		want := storetest.MustClaim(t, e.inner, storetest.Rival(c, old.Expires.Add(time.Second)))
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
	})

	// A claim replaces the freed record only if Claim.Seen is this record. Any other
	// claim may be a late copy of an earlier claim. A late copy must not revive the
	// record.
	s.run("a freed record is replaced by a claim that has seen it, and once", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		claimed := storetest.MustClaim(t, e.inner, c)
		frees := func(r *store.Record) *store.Record {
			next := state.Released(r, e.clock.Now(), state.Release{})
			state.Stamp(next, r, r.Owner)
			return storetest.MustCommit(t, e.inner, r, next)
		}
		freed := frees(claimed)
		another := freed.Clone()
		another.Owner = "another"
		for _, seen := range []*store.Record{nil, claimed, another} {
			late := storetest.Rival(c, freed.Expires.Add(time.Hour)) // by any clock
			late.Seen = seen
			storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, late), freed)
		}
		second := storetest.Rival(c, e.clock.Now())
		second.Seen = freed
		want := storetest.MustClaim(t, e.inner, store.Claim{Next: second.Next.Clone(), Now: second.Now, Seen: freed})
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, second), want)

		gone := storetest.ClaimAt(e.clock.Now()) // no record is under this PK, as if TTL had removed the freed record
		gone.Seen = freed
		storetest.MustClaim(t, e.inner, gone)
	})

	for _, at := range []struct {
		name  string
		after time.Duration // how long after the record's expiry the claim comes
		wins  bool
	}{
		{"a second before", -time.Second, false},
		{"at the start of the very second", 0, false},
		{"at the end of the very second", 999 * time.Millisecond, false},
		{"a second later", time.Second, true},
	} {
		s.run("expiry is compared in whole seconds: "+at.name, func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			old := storetest.MustClaim(t, e.inner, c)
			r := storetest.Rival(c, e.clock.Now())
			r.Now = old.Expires.Add(at.after)
			if at.wins {
				storetest.MustClaim(t, e.inner, r)
			} else {
				storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, r), old)
			}
		})
	}

	s.run("a record without an expiry is never claimed over", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		kept := storetest.MustClaim(t, e.inner, c)
		kept = storetest.MustCommit(t, e.inner, kept, storetest.Next(kept, func(n *store.Record) {
			n.Keep, n.Expires, n.Lease = store.KeepOpen, time.Time{}, time.Time{}
		}))
		storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now().AddDate(50, 0, 0))), kept)
	})

	s.run("claims of different keys don't meet", func(t *testing.T, e *env) {
		one := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		two := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		storetest.SameRecord(t, storetest.Load(t, e.inner, one.PK), one)
		storetest.SameRecord(t, storetest.Load(t, e.inner, two.PK), two)
	})

	s.run("a claim in a cancelled context fails, and says whether it may have been applied", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		pk := c.Next.PK
		held, err := e.inner.Claim(cancelled(t), c)
		if held != nil || err == nil {
			t.Fatalf("Claim returned %+v, %v; want an error", held, err)
		}
		if r := storetest.Load(t, e.inner, pk); r != nil && !errors.Is(err, store.ErrUnknown) {
			t.Errorf("Claim returned %v, which says nothing was written, and wrote %+v", err, r)
		}
	})
}

func cancelled(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
