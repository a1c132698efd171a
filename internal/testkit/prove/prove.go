// Package prove decides how many cases of a long test run. A test with hundreds of
// cases, such as a kill at each point, runs a sample of its cases in make test, and all
// of them in make prove. The sample covers every rule, and is the same in each run.
package prove

import (
	"os"
	"testing"
)

// env is the name of the environment variable that "make prove" sets to "all".
const env = "PROVE"

// All reports whether all cases must run, as in make prove.
func All() bool { return os.Getenv(env) == "all" }

// Some returns all in make prove, and sample in other runs.
func Some[T any](sample, all T) T {
	if All() {
		return all
	}
	return sample
}

// Sample returns n evenly spread elements of the slice all. The first element is always
// one of them. Sample returns the whole slice in make prove, or if the slice has at
// most n elements.
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
