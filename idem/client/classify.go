package client

import (
	"net/http"
	"slices"
	"strings"
)

// Outcome says what another system's answer means for the idem.Foreign phase that called
// the system.
type Outcome int

// Outcomes of a call.
const (
	// Succeeded means a 2xx: return the result.
	Succeeded Outcome = iota
	// Unknown means no answer, a timeout, 5xx, 408, 425 or 429. A 401, 403 or 407 is
	// Unknown, since the call can succeed with other credentials. A 4xx with an error
	// code about the idempotency key is Unknown, since such an answer doesn't have the
	// call's result.
	// Return an error from the phase, so that the client's retry or the completer
	// repeats the call with the same derived key.
	Unknown
	// Pending means a 409: an earlier call with this key is still running. Wait and call
	// again with the same key, or return the error.
	Pending
	// Declined means a 402. Answer the client by idem.Respond.
	Declined
	// Rejected means any other answer, including a redirect. Another call with the same
	// request won't help. For a first call, Rejected is final: answer by idem.Respond,
	// or correct the program. If the call may have been made before (idem.Tx.Repeats),
	// treat Rejected as Unknown, since Rejected says nothing about the earlier call.
	Rejected
)

// Classify returns the Outcome for the status of an answer, or for err if there is no
// answer. If the answer's body can't be read to its end, pass the read error as err: even a
// 200 is then Unknown.
//
// The parameter codes holds the error codes in the provider's answer; a code may be "".
// For Stripe, pass the error's type and code. If a code in a 4xx is about the
// idempotency key, the Outcome is Unknown, since the answer doesn't have the call's
// result. Such codes are "idempotency_error",
// "IDEMPOTENCY_KEY_REUSED", "idempotent_creation_conflict", and those codes of package
// idem that begin with "idempotency_". If such a code says that the earlier call is
// still running ("in_use", "in_flight", "in_progress"), the Outcome is Pending.
func Classify(status int, err error, codes ...string) Outcome {
	switch {
	case err != nil, status >= http.StatusInternalServerError, status < http.StatusOK:
		return Unknown
	case status < http.StatusMultipleChoices:
		return Succeeded
	case slices.ContainsFunc(codes, running):
		return Pending
	case slices.ContainsFunc(codes, aboutKey):
		return Unknown
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return Unknown
	case http.StatusConflict:
		return Pending
	case http.StatusPaymentRequired:
		return Declined
	default:
		return Rejected
	}
}

// running reports whether an error code means that an earlier call with the key is
// still running.
func running(code string) bool {
	code = strings.ToLower(code)
	return aboutKey(code) && (strings.Contains(code, "in_use") || strings.Contains(code, "in_flight") || strings.Contains(code, "in_progress"))
}

// aboutKey reports whether an error code is about a call's key and not about the call.
func aboutKey(code string) bool { return strings.Contains(strings.ToLower(code), "idempoten") }

// Retry reports whether the same call with the same key may succeed later.
func (o Outcome) Retry() bool { return o == Unknown || o == Pending }

func (o Outcome) String() string {
	names := [...]string{"succeeded", "unknown", "pending", "declined", "rejected"}
	if o < 0 || int(o) >= len(names) {
		return "invalid"
	}
	return names[o]
}
