package idem

import "net/http"

// Outcome is what another system's answer means for the [Foreign] that called
// it (R64).
type Outcome int

// The outcomes of a call.
const (
	// Succeeded: return the result.
	Succeeded Outcome = iota
	// Unknown: no answer, a timeout, 5xx, 408 or 429. Return the error: the client's
	// retry, or the completer, calls again with the same derived key.
	Unknown
	// Pending: 409, an earlier call with this key is still running. Wait and call
	// again with the same key, or return the error.
	Pending
	// Declined: 402. Tell the user, by [Respond].
	Declined
	// Rejected: any other answer, and a redirect. Calling again with the same
	// request won't help: answer by [Respond], or mend the program.
	Rejected
)

// Classify says what a status, or the error in place of one, means. An answer
// that can't be read to its end is an error, whatever its status: a torn 200 is
// Unknown.
func Classify(status int, err error) Outcome {
	switch {
	case err != nil, status >= http.StatusInternalServerError,
		status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status < http.StatusOK:
		return Unknown
	case status < http.StatusMultipleChoices:
		return Succeeded
	case status == http.StatusConflict:
		return Pending
	case status == http.StatusPaymentRequired:
		return Declined
	default:
		return Rejected
	}
}

// Retry reports whether the same call may succeed later, with the same key.
func (o Outcome) Retry() bool { return o == Unknown || o == Pending }

func (o Outcome) String() string {
	names := [...]string{"succeeded", "unknown", "pending", "declined", "rejected"}
	if o < 0 || int(o) >= len(names) {
		return "invalid"
	}
	return names[o]
}
