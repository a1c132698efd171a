package idem

import (
	"fmt"
	"net/http"
)

// DefaultStored is the default of [Options.Stored]: successes and definitive
// answers, such as a declined card (402), are stored. Not stored are answers after
// which the client may correct or repeat the request because nothing was done (400,
// 401, 403, 408, 409, 422, 423, 425, 428, 429), and unexpected errors (5xx).
func DefaultStored(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusUnprocessableEntity, http.StatusLocked, http.StatusTooEarly, http.StatusPreconditionRequired,
		http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

// storedBy returns a policy that stores all statuses below 500 but except;
// serverErrors decides about 5xx.
func storedBy(serverErrors bool, except ...int) func(int) bool {
	not := make(map[int]bool, len(except))
	for _, status := range except {
		not[status] = true
	}
	return func(status int) bool {
		if status >= http.StatusInternalServerError {
			return serverErrors
		}
		return !not[status]
	}
}

// final reports whether a client takes an answer with this status for the outcome.
// After a 5xx it doesn't know the outcome, and retries.
func final(status int) bool { return status < http.StatusInternalServerError }

// notCalled describes an answer that can't end the operation.
func notCalled(status int) string {
	return fmt.Sprintf("the handler answered %d without the call that an earlier attempt may have made in its place", status)
}

// notStored describes an answer that the policy doesn't store.
func notStored(status int) string {
	return fmt.Sprintf("the handler answered %d, which is not stored", status)
}
