// Package errlist completes the list of errors that a sink or a queue returns for a
// batch.
package errlist

import "errors"

// Pad completes errs to n entries, one for each delivery or ticket of a batch. A nil list
// means n successes. A missing entry becomes an error.
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
