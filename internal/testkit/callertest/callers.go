// Package callertest has who calls in tests: options for engines of tests of other things.
package callertest

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// Anybody treats all unverified callers as one, with keys of any length.
func Anybody(o *idem.Options) {
	idem.OneScope(o)
	o.MinKey, o.CallerFromOp = 1, true
}

// ByToken is a caller for each value of Authorization.
func ByToken(o *idem.Options) {
	o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
		return "token:" + r.Header.Get("Authorization"), nil
	}
	o.CallerFromOp = true
}
