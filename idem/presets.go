package idem

import (
	"net/http"
	"time"
)

// Stripe sets the contract of Stripe's API v2: keys on POST and DELETE, kept
// for 30 days, failures run again, errors in Stripe's shape. A DELETE without a
// key passes, since Stripe's clients send none to paths that begin with /v1/.
func Stripe(o *Options) {
	o.Retention = 30 * 24 * time.Hour
	o.Methods = []string{http.MethodPost, http.MethodDelete}
	o.KeyOptionalOn = []string{http.MethodDelete}
	o.Stored = storedBy(false, http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests)
	o.Problem, o.stripe = stripeJSON, true
}

// StripeV1 sets the contract of Stripe's API v1: optional keys on POST, kept for
// 24 hours. Server errors in the handler's answer are stored and replayed like
// any other answer. (An error that the handler returns, or a panic, frees the
// key.)
func StripeV1(o *Options) {
	o.Retention = 24 * time.Hour
	o.Methods = []string{http.MethodPost}
	o.Key = KeyOptional
	o.Stored = storedBy(true, http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests)
	o.Problem, o.stripe = stripeJSON, true
}

// IETF sets the contract of draft-ietf-httpapi-idempotency-key-header: quoted
// keys on POST and PATCH. The earlier result is replayed, success or error,
// except answers that ask for a repetition.
func IETF(o *Options) {
	o.Methods = []string{http.MethodPost, http.MethodPatch}
	o.StrictKey = true
	o.Stored = storedBy(false, http.StatusUnauthorized, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests)
	o.Problem = ProblemJSON
}

// OneScope treats all callers that nobody verifies as one caller, for public routes:
//
//	idem.New(store, idem.OneScope)
//
// Those callers see each other's answers if they know the key and the request, so
// their keys must be random: without [Options.MinKey] at least 22 characters. Only
// with [Options.StatusURL] is there a status resource for them, since it needs the
// key alone. Callers with a verified identity stay apart, and so do tenants.
// OneScope has no effect beside [Options.Scope].
func OneScope(o *Options) { o.oneScope = true }
