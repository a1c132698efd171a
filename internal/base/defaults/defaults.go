// Package defaults has the defaults and the bounds of idem's options, for the packages
// that depend on them.
package defaults

import (
	"net/http"
	"time"
)

// Values of idem.Options, and of idem.Remembers.
const (
	Retention    = 24 * time.Hour
	MinRetention = time.Hour // longer than a copy of a claim can be in flight

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
	Within = 15 * time.Minute // how long a call may take to arrive, and how far a look-up may lag
)

// Methods returns the methods that carry keys by default, at the server (package idem)
// and at the client (package idem/client). Both halves must agree: otherwise the
// client would repeat requests that the server runs again. PUT and DELETE are
// idempotent by definition (RFC 9110, 9.2.2), so both halves omit them.
func Methods() []string { return []string{http.MethodPost, http.MethodPatch} }
