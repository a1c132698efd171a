// Package prove decides how many of its cases a long test runs. A test with hundreds of cases, such
// as a kill at each point, runs a sample in make test, and all cases in make prove. The sample
// covers every rule, and is the same in each run.
package prove

import (
	"os"
	"testing"
)

// env is the name of a variable. The command "make prove" sets the variable to "all".
const env = "PROVE"

// All reports whether all cases must run, as in make prove.
func All() bool { return os.Getenv(env) == "all" }

// Some returns the parameter sample in make test, and the parameter all in make prove.
func Some[T any](sample, all T) T {
	if All() {
		return all
	}
	return sample
}

// Sample returns n evenly spread elements of the slice all, beginning with the slice's first. In
// make prove, or if the slice has at most n elements, Sample returns the whole slice.
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
