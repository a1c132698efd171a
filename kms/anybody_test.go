package kms_test

import "github.com/samekey/samekey/idem"

// anybody treats all unverified callers as one, with keys of any length: for tests of
// other things.
func anybody(o *idem.Options) {
	idem.OneScope(o)
	o.MinKey, o.CallerFromOp = 1, true
}
