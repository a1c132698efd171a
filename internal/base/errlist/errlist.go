// Package errlist completes lists of errors that implementations of an interface return.
package errlist

import "errors"

// Pad completes the errors of a batch of n deliveries or tickets to a list of n. A
// nil list stands for n successes. A missing entry becomes an error.
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
