// Package prove says how much of a proof a test plays. A test that repeats its rules by
// force, such as a kill at each of hundreds of points, plays a sample of them in make
// test, and all of them in make prove. Every rule is in the sample. It is the same in each
// run, so a defect that the sample finds is found by make test alone.
package prove

import (
	"os"
	"testing"
)

// env has the value "all" in make prove.
const env = "PROVE"

// All reports whether everything is to be played, as in make prove.
func All() bool { return os.Getenv(env) == "all" }

// Some returns sample, or all in make prove.
func Some[T any](sample, all T) T {
	if All() {
		return all
	}
	return sample
}

// Sample returns n of all, from the first one on, spread evenly; or all of them in make
// prove, or if there are no more than n. It logs how many of how many they are.
func Sample[T any](t testing.TB, n int, all []T) []T {
	t.Helper()
	if All() || n >= len(all) {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	t.Logf("%d of %d; make prove plays them all", n, len(all))
	return some
}
