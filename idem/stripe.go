package idem

import (
	"errors"
	"net/http"
	"strconv"
)

// Headers of Stripe's answers. Stripe's clients obey stripeShouldRetry instead of their
// own rules for retries.
const (
	stripeShouldRetry     = "Stripe-Should-Retry"
	stripeOriginalRequest = "Original-Request"
)

// stripeHeaders adds Stripe's headers to a stored answer: the id of the first request, and
// the advice not to retry an error. r's header map must not be shared.
func stripeHeaders(r *Response) {
	if id, there := r.Header[requestID]; there {
		r.Header[stripeOriginalRequest] = id
	}
	if r.Status >= http.StatusBadRequest {
		r.Header[stripeShouldRetry] = []string{"false"}
	}
}

func stripeJSON(p Problem) Response {
	type stripeError struct {
		Code    string `json:"code,omitempty"`
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	e := stripeError{Code: p.Code, Message: p.Title + ". " + p.Detail, Type: "api_error"}
	switch {
	case errors.Is(p.Err, ErrMismatch):
		e = stripeError{Type: "idempotency_error", Message: "Keys for idempotent requests can only be used with the same parameters " +
			"they were first used with. Try using a key other than the one you sent if you meant to execute a different request."}
	case errors.Is(p.Err, ErrInFlight):
		e = stripeError{Type: "idempotency_error", Code: "idempotency_key_in_use", Message: "There is currently another in-progress " +
			"request using this Idempotent Key (that probably means you submitted twice, and the other request is still going " +
			"through). Please try again later."}
	case errors.Is(p.Err, ErrQuota):
		e = stripeError{Type: "invalid_request_error", Code: "rate_limit", Message: "Request rate limit exceeded. " + p.Detail}
	case p.Status < http.StatusInternalServerError && p.Status != http.StatusBadRequest && p.Status != http.StatusRequestEntityTooLarge:
		e.Type = "idempotency_error"
	case p.Status < http.StatusInternalServerError:
		e.Type = "invalid_request_error"
	}
	if p.Status == http.StatusUnprocessableEntity {
		p.Status = http.StatusBadRequest // on the paths of Stripe's v1 API, Stripe's clients report an idempotency error only if the status is 400
	}
	resp := problemResponse(p, "application/json", struct {
		Error stripeError `json:"error"`
	}{e})
	resp.Header[stripeShouldRetry] = []string{strconv.FormatBool(p.RetryAfter > 0 || p.Code == failed.Code)}
	return resp
}
