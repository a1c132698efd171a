package idemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

func storeClaim(s suite) {
	s.run("a claim on nothing is granted", func(t *testing.T, e *env) {
		want := mustClaim(t, e.inner, claimAt(e.clock.Now()))
		sameRecord(t, load(t, e.inner, want.PK), want)
	})

	s.run("a second claim gets the first one's record and changes nothing", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		want := mustClaim(t, e.inner, c)
		sameRecord(t, refusedClaim(t, e.inner, rival(c, e.clock.Now())), want)
		sameRecord(t, load(t, e.inner, want.PK), want)
	})

	s.run("a claim sent twice gets its own record", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		want := mustClaim(t, e.inner, idem.Claim{Next: clone(c.Next), Now: c.Now})
		sameRecord(t, refusedClaim(t, e.inner, c), want)
	})

	s.run("an expired record of another owner is replaced as a whole", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		old := mustClaim(t, e.inner, c)
		old = mustCommit(t, e.inner, old, next(old, func(n *idem.Record) {
			n.LastErr, n.Tries = "it failed", 3
			n.Phases = []idem.Phase{{Name: "ride_created", Result: []byte(`1`)}}
			n.Jobs = map[string]idem.Job{"0.0": {Kind: "receipt", Args: []byte(`{}`)}}
		}))
		want := mustClaim(t, e.inner, rival(c, old.Expires.Add(time.Second)))
		sameRecord(t, load(t, e.inner, want.PK), want)
	})

	s.run("a finished record is replaced once it has expired, not before", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		old := mustClaim(t, e.inner, c)
		old = mustCommit(t, e.inner, old, finishedNext(old, []byte("kept")))
		sameRecord(t, refusedClaim(t, e.inner, rival(c, old.Expires.Add(-time.Second))), old)
		want := mustClaim(t, e.inner, rival(c, old.Expires.Add(time.Second)))
		sameRecord(t, load(t, e.inner, want.PK), want)
	})

	// A late copy of a claim must not revive what its own attempt has freed.
	s.run("an expired record of the same owner stays", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		late := idem.Claim{Next: clone(c.Next), Now: c.Now.Add(time.Minute)}
		freed := mustClaim(t, e.inner, c)
		freed = mustCommit(t, e.inner, freed, next(freed, func(n *idem.Record) {
			n.Lease, n.Expires = time.Time{}, c.Now.Add(-time.Second)
		}))
		sameRecord(t, refusedClaim(t, e.inner, late), freed)
		sameRecord(t, load(t, e.inner, freed.PK), freed)
	})

	for _, at := range []struct {
		name  string
		after time.Duration // of the claim, from the second the record expires in
		wins  bool
	}{
		{"a second before", -time.Second, false},
		{"at the start of the very second", 0, false},
		{"at the end of the very second", 999 * time.Millisecond, false},
		{"a second later", time.Second, true},
	} {
		s.run("expiry is compared in whole seconds: "+at.name, func(t *testing.T, e *env) {
			c := claimAt(e.clock.Now())
			old := mustClaim(t, e.inner, c)
			r := rival(c, e.clock.Now())
			r.Now = old.Expires.Add(at.after)
			if at.wins {
				mustClaim(t, e.inner, r)
			} else {
				sameRecord(t, refusedClaim(t, e.inner, r), old)
			}
		})
	}

	s.run("a record without an expiry is never claimed over", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		kept := mustClaim(t, e.inner, c)
		kept = mustCommit(t, e.inner, kept, next(kept, func(n *idem.Record) {
			n.Keep, n.Expires, n.Lease = idem.KeepOpen, time.Time{}, time.Time{}
		}))
		sameRecord(t, refusedClaim(t, e.inner, rival(c, e.clock.Now().AddDate(50, 0, 0))), kept)
	})

	s.run("claims of different keys don't meet", func(t *testing.T, e *env) {
		one := mustClaim(t, e.inner, claimAt(e.clock.Now()))
		two := mustClaim(t, e.inner, claimAt(e.clock.Now()))
		sameRecord(t, load(t, e.inner, one.PK), one)
		sameRecord(t, load(t, e.inner, two.PK), two)
	})

	s.run("a claim in a cancelled context fails, and says whether it may have been applied", func(t *testing.T, e *env) {
		c := claimAt(e.clock.Now())
		pk := c.Next.PK
		held, err := e.inner.Claim(cancelled(t), c)
		if held != nil || err == nil {
			t.Fatalf("Claim returned %+v, %v; want an error", held, err)
		}
		if r := load(t, e.inner, pk); r != nil && !errors.Is(err, idem.ErrUnknown) {
			t.Errorf("Claim returned %v, which says nothing was written, and wrote %+v", err, r)
		}
	})
}

// cancelled returns a context that is over.
func cancelled(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
