// Package callertest has options that identify callers, for engines in tests of other
// subjects.
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

// ByToken makes each value of Authorization a caller.
func ByToken(o *idem.Options) {
	o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
		return "token:" + r.Header.Get("Authorization"), nil
	}
	o.CallerFromOp = true
}
