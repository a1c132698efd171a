// Package errlist completes lists of errors that implementations of an interface return.
package errlist

import "errors"

// Pad completes what a batch of n deliveries or tickets returned to a list of n. A
// nil list stands for n successes. An entry that is missing is an error.
func Pad(errs []error, n int) []error {
	if len(errs) == n {
		return errs
	}
	all := make([]error, n)
	if errs == nil {
		return all
	}
	for i := copy(all, errs); i < n; i++ {
		all[i] = errors.New("the sink did not say what became of it")
	}
	return all
}
