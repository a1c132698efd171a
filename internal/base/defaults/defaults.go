// Package defaults has the defaults and the bounds of idem's options.
package defaults

import (
	"net/http"
	"time"
)

// Defaults and bounds of idem.Options, idem.Remembers and idem.LookUp.
const (
	Retention    = 24 * time.Hour
	MinRetention = time.Hour // longer than the network delays a copy of a claim

	Lease          = 30 * time.Second
	LeaseMargin    = 2 * time.Second
	MinLeaseMargin = time.Second
	RenewFor       = 15 * time.Minute // the longest Lambda invocation
	Reserve        = 500 * time.Millisecond

	MaxKey     = 255
	MaxBody    = 256 << 10
	MaxMaxBody = 6 << 20
	MaxRequest = 10 << 20
	MaxInput   = 256 << 10
	// MaxStoredRequest is the largest body of a stored request (store.Input).
	MaxStoredRequest = 10 << 20
	MaxTries         = 10

	WaitMax       = 10 * time.Second
	MaxRetryAfter = 5 * time.Second

	Memory = 24 * time.Hour   // how long a provider remembers a key
	Within = 15 * time.Minute // longer than it takes until a look-up shows a call
)

// Methods returns the HTTP methods whose requests have keys by default, at the server
// (package idem) and at the client (package idem/client). The client repeats requests
// with these methods, and relies on the server to run each request once. So the client
// and the server need the same list. PUT and DELETE are idempotent by definition (RFC
// 9110, 9.2.2), so they need no keys.
func Methods() []string { return []string{http.MethodPost, http.MethodPatch} }
