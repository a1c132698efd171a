// Package callertest has options that identify callers, for tests that are not about
// callers.
package callertest

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// Anybody makes an engine treat all unverified callers as one caller, and accept keys of
// any length.
func Anybody(o *idem.Options) {
	idem.OneScope(o)
	o.MinKey, o.CallerFromOp = 1, true
}

// ByToken makes an engine treat each value of the header Authorization as a caller.
func ByToken(o *idem.Options) {
	o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
		return "token:" + r.Header.Get("Authorization"), nil
	}
	o.CallerFromOp = true
}
