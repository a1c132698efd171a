package idemtest

import (
	"testing"

	"github.com/samekey/samekey/idem"
)

// TestStore holds a store to the contract of [idem.Store], and what is built on
// it to the requirements.
//
// Open returns the store under test. It is called once for each subtest, many
// of which run at once, and may return the same store or others on one table:
// keys and namespaces are random. The suite waits for nothing but the store;
// time moves by the clock that the engines are given.
func TestStore(t *testing.T, open func(t testing.TB) idem.Store) { //nolint:tparallel // whether it is, its caller says
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
		{"engine replay", engineReplay},
		{"engine key", engineKey},
		{"engine scope", engineScope},
		{"engine fingerprint", engineFingerprint},
		{"engine in flight", engineInFlight},
		{"engine policy", enginePolicy},
		{"engine expiry", engineExpiry},
		{"engine failure", engineFailure},
		{"engine store failure", engineStoreFailure},
		{"engine take-over", engineTakeOver},
		{"engine cache", engineCache},
		{"engine nesting", engineNesting},
		{"engine bodies", engineBodies},
		{"engine hooks", engineHooks},
		{"lost answers", lostAnswers},
		{"crash matrix", crashMatrix},
		{"histories", histories},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(suite{t, open})
		})
	}
}

// suite is a group of scenarios.
type suite struct {
	t    *testing.T
	open func(testing.TB) idem.Store
}

// run adds a scenario.
func (s suite) run(name string, scenario func(t *testing.T, e *env)) {
	s.t.Run(name, func(t *testing.T) {
		t.Parallel()
		scenario(t, newEnv(t, s.open(t)))
	})
}
