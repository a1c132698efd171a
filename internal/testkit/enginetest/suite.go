package enginetest

import (
	"testing"

	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
)

// TestStore runs [idemtest.TestStore], and then tests the engine on the store. It uses the function
// open in the same way as idemtest.TestStore.
func TestStore(t *testing.T, open func(t testing.TB) store.Store) { //nolint:tparallel // the caller says whether it is parallel
	idemtest.TestStore(t, open)
	for _, group := range []struct {
		name string
		run  func(suite)
	}{
		{"engine replay", engineReplay},
		{"engine key", engineKey},
		{"engine scope", engineScope},
		{"engine former", engineFormer},
		{"engine fingerprint", engineFingerprint},
		{"engine in flight", engineInFlight},
		{"engine policy", enginePolicy},
		{"engine quota", engineQuota},
		{"engine expiry", engineExpiry},
		{"engine failure", engineFailure},
		{"engine store failure", engineStoreFailure},
		{"engine take-over", engineTakeOver},
		{"engine retry", engineRetry},
		{"engine nesting", engineNesting},
		{"engine bodies", engineBodies},
		{"engine hooks", engineHooks},
		{"lost answers", lostAnswers},
		{"crash matrix", crashMatrix},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(suite{t, open})
		})
	}
}

// suite runs a group of scenarios. For each scenario it opens a store with open.
type suite struct {
	t    *testing.T
	open func(testing.TB) store.Store
}

// suite.run runs a scenario as a parallel subtest.
func (s suite) run(name string, scenario func(t *testing.T, e *env)) {
	s.t.Run(name, func(t *testing.T) {
		t.Parallel()
		scenario(t, newEnv(t, s.open(t)))
	})
}
