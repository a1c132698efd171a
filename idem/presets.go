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

// StripeV1 sets the contract of Stripe's API v1: optional keys on POST, kept
// for 24 hours, server errors that the handler answers with stored and replayed
// like any other answer. (An error it returns, or a panic, frees the key.)
func StripeV1(o *Options) {
	o.Retention = 24 * time.Hour
	o.Methods = []string{http.MethodPost}
	o.Key = KeyOptional
	o.Stored = storedBy(true, http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests)
	o.Problem, o.stripe = stripeJSON, true
}

// The headers of Stripe's answers. Its clients obey stripeShouldRetry before
// their own judgement.
const (
	stripeShouldRetry     = "Stripe-Should-Retry"
	stripeRequestID       = "Request-Id"
	stripeOriginalRequest = "Original-Request"
)

// stripeHeaders adds to a kept answer what Stripe's has: that an error will be the same
// the next time, and which request was the first. The header must be the
// answer's own copy.
func stripeHeaders(r *Response) {
	if id, there := r.Header[stripeRequestID]; there {
		r.Header[stripeOriginalRequest] = id
	}
	if r.Status >= http.StatusBadRequest {
		r.Header[stripeShouldRetry] = []string{"false"}
	}
}

// IETF sets the contract of draft-ietf-httpapi-idempotency-key-header: quoted
// keys on POST and PATCH; the earlier result is given again, success or error,
// but for what asks to be repeated.
func IETF(o *Options) {
	o.Methods = []string{http.MethodPost, http.MethodPatch}
	o.StrictKey = true
	o.Stored = storedBy(false, http.StatusUnauthorized, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests)
	o.Problem = ProblemJSON
}
