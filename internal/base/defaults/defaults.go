// Package defaults has the defaults and the bounds of idem's options.
package defaults

import (
	"net/http"
	"time"
)

// Defaults and bounds of idem.Options, idem.Remembers and idem.LookUp.
const (
	Retention    = 24 * time.Hour
	MinRetention = time.Hour // longer than a copy of a claim can be delayed in the network

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
	Within = 15 * time.Minute // how long a call may be on its way, plus how far a look-up may lag behind
)

// Methods returns the HTTP methods whose requests have keys by default, at the server (package
// idem) and at the client (package idem/client). Both need the same list: if the client's list
// had a method that the server's list lacks, the client would repeat requests that the server runs
// again. PUT and DELETE are idempotent by definition (RFC 9110, 9.2.2), so they need no keys.
func Methods() []string { return []string{http.MethodPost, http.MethodPatch} }
