package idemtest

import (
	"testing"

	"github.com/samekey/samekey/idem/store"
)

// TestStore tests a store against the contract of [store.Store].
//
// TestStore calls open once for each subtest. Many subtests run concurrently. The
// function open may return the same store each time, or several stores on one table,
// because the subtests use random keys and so don't collide. The suite doesn't sleep.
// Where a test needs another time, the suite passes that time in its calls, such as in
// Claim.Now.
func TestStore(t *testing.T, open func(t testing.TB) store.Store) { //nolint:tparallel // the caller decides whether the test is parallel
	for _, group := range []struct {
		name string
		run  func(suite)
	}{
		{"store claim", storeClaim},
		{"store commit", storeCommit},
		{"store load", storeLoad},
		{"store take", storeTake},
		{"store records", storeRecords},
		{"store input", storeInput},
		{"store marks", storeMarks},
		{"store bodies", storeBodies},
		{"store races", storeRaces},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(suite{t, open})
		})
	}
}

type suite struct {
	t    *testing.T
	open func(testing.TB) store.Store
}

// env is the world of one scenario: the store under test and a clock.
type env struct {
	inner store.Store
	store *FaultyStore // wraps inner, and adds the optional methods that inner may lack
	clock *Clock
}

func (s suite) run(name string, scenario func(t *testing.T, e *env)) {
	s.t.Run(name, func(t *testing.T) {
		t.Parallel()
		store := s.open(t)
		if store == nil {
			t.Fatal("open returned no store")
		}
		scenario(t, &env{inner: store, store: Faulty(store, nil), clock: NewClock()})
	})
}
