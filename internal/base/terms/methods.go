// Package terms has the lists of the HTTP contract of which several parts make use.
package terms

import "net/http"

// Keyed returns the methods that carry keys by default, at the server (package idem)
// and at the client (package idem/client). A method that only one half knows is not
// protected: the client would repeat requests that the server runs again. PUT and
// DELETE are idempotent by definition (RFC 9110, 9.2.2), so both halves leave them
// out.
func Keyed() []string { return []string{http.MethodPost, http.MethodPatch} }
