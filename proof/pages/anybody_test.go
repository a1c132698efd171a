package pages_test

import "github.com/samekey/samekey/idem"

// anybody treats all unverified callers as one, with the tables' short keys.
func anybody(o *idem.Options) {
	idem.OneScope(o)
	o.MinKey, o.CallerFromOp = 1, true
}

// ofNobody makes r a request of somebody whom nobody has verified.
func ofNobody(r *idem.Request) { r.Identity = idem.Identity{} }
