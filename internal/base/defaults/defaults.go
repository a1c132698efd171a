// Package defaults has the defaults and the bounds of idem's options.
package defaults

import (
	"net/http"
	"time"
)

// Defaults and bounds of idem.Options and idem.Remembers.
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
	Within = 15 * time.Minute // how late a call may arrive, and how late a look-up may show the call
)

// Methods returns the methods that carry keys by default, at the server (package idem)
// and at the client (package idem/client). Server and client must agree: otherwise the
// client would repeat requests that the server runs again. PUT and DELETE are idempotent
// by definition (RFC 9110, 9.2.2), so they carry no keys.
func Methods() []string { return []string{http.MethodPost, http.MethodPatch} }
