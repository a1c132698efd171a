// Package prove decides how many cases of a long test run. A test with hundreds of cases, such as a
// kill at each point, runs a sample in make test, and all cases in make prove. The sample covers
// every rule, and is the same in each run.
package prove

import (
	"os"
	"testing"
)

// env names the variable that make prove sets to "all".
const env = "PROVE"

// All reports whether all cases run, as in make prove.
func All() bool { return os.Getenv(env) == "all" }

// Some returns sample, or all in make prove.
func Some[T any](sample, all T) T {
	if All() {
		return all
	}
	return sample
}

// Sample returns n evenly spread elements of all, beginning with the first. In make prove, or if
// all has at most n elements, it returns all.
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
