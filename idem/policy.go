package idem

import (
	"net/http"
)

// DefaultStored is what is kept by default: success, and answers that are
// definitive, such as a declined card (402). Not kept is what says that nothing
// was done and the request may be corrected or repeated (400, 401, 403, 408,
// 409, 422, 423, 425, 428, 429), and what went wrong unexpectedly (5xx).
func DefaultStored(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusUnprocessableEntity, http.StatusLocked, http.StatusTooEarly, http.StatusPreconditionRequired,
		http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

// storedBy returns a policy that keeps all but what is listed, and 5xx as said.
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
