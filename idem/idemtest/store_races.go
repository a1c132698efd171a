package idemtest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

func storeRaces(s suite) {
	s.run("of 50 claimers of a new key exactly one wins", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		claimRace(t, e.inner, c, c.Now)
	})

	// While the scope of keys changes, a key has two places. Each claim goes to one
	// place, and names the other place in Beside.
	s.run("of 50 claimers of a key with two places exactly one wins", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		places := [...]string{c.Next.PK, storetest.ClaimAt(c.Now).Next.PK}
		var winner atomic.Pointer[store.Record]
		storetest.Together(50, func(i int) {
			r := storetest.Rival(c, c.Now)
			r.Next.PK, r.Beside = places[i%2], places[1-i%2]
			next := r.Next.Clone()
			held, err := e.inner.Claim(t.Context(), r)
			for errors.Is(err, idem.ErrConflict) && t.Context().Err() == nil {
				r.Next = next.Clone()
				held, err = e.inner.Claim(t.Context(), r)
			}
			switch {
			case err != nil:
				t.Errorf("claim %d: %v", i, err)
			case held == nil && !winner.CompareAndSwap(nil, next):
				t.Error("two claims won")
			}
		})
		for _, pk := range places {
			got, err := e.inner.Load(t.Context(), pk)
			if err != nil || (got != nil) != (winner.Load() != nil && pk == winner.Load().PK) {
				t.Errorf("%s holds %+v, %v", pk, got, err)
			}
		}
		if winner.Load() == nil {
			t.Error("no claim won")
		}
	})

	s.run("of 50 claimers of an expired key exactly one wins", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		old := storetest.MustClaim(t, e.inner, c)
		claimRace(t, e.inner, c, old.Expires.Add(time.Second))
	})

	s.run("of 50 rivals that take over one lease exactly one wins", func(t *testing.T, e *env) {
		old := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		race(t, e.inner, old.PK, 50, func(int) (*store.Record, *store.Record, error) {
			next := storetest.TakenOver(old)
			held, err := e.inner.Commit(t.Context(), store.Commit{Prev: old.Clone(), Next: next.Clone()})
			return next, held, err
		})
	})

	// An owner that was asleep finishes while others take over.
	s.run("of a finish and 49 take-overs exactly one wins", func(t *testing.T, e *env) {
		old := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		race(t, e.inner, old.PK, 50, func(i int) (*store.Record, *store.Record, error) {
			next := storetest.TakenOver(old)
			if i == 0 {
				next = finishedNext(old, []byte("woken"))
			}
			held, err := e.inner.Commit(t.Context(), store.Commit{Prev: old.Clone(), Next: next.Clone()})
			return next, held, err
		})
	})
}

func claimRace(t *testing.T, s store.Store, c store.Claim, now time.Time) {
	t.Helper()
	race(t, s, c.Next.PK, 50, func(int) (*store.Record, *store.Record, error) {
		r := storetest.Rival(c, now)
		next := r.Next.Clone()
		held, err := s.Claim(t.Context(), r)
		return next, held, err
	})
}

// race runs n writes at once. It checks that exactly one succeeds, that the others are
// refused with the winner's record, and that the store holds this record afterwards.
func race(t *testing.T, s store.Store, pk string, n int, write func(i int) (next, held *store.Record, err error)) {
	t.Helper()
	var (
		mu      sync.Mutex
		winners []*store.Record
		losers  []*store.Record
	)
	storetest.Together(n, func(i int) {
		next, held, err := write(i)
		for errors.Is(err, idem.ErrConflict) && t.Context().Err() == nil { // certainly not written: try again
			next, held, err = write(i)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Errorf("write %d: %v", i, err)
		case held == nil:
			winners = append(winners, next)
		default:
			losers = append(losers, held)
		}
	})
	if len(winners) != 1 {
		t.Fatalf("%d writes won, want exactly one", len(winners))
	}
	for _, held := range losers {
		storetest.SameRecord(t, storetest.Whole(t, s, held), winners[0])
	}
	storetest.SameRecord(t, storetest.Load(t, s, pk), winners[0])
}
