package idem

import (
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// What can go wrong. Callers compare with errors.Is; the table in problem.go
// maps each to its HTTP answer.
var (
	// ErrKeyMissing matches errors from a request without a key where one is required.
	ErrKeyMissing = errors.New("idempotency key is missing")
	// ErrKeyInvalid matches errors from a key that is empty, too long, sent twice or not visible ASCII.
	ErrKeyInvalid = errors.New("idempotency key is invalid")
	// ErrScope matches errors from a request whose scope could not be determined.
	ErrScope = errors.New("scope is unknown")
	// ErrRequest matches errors from a request that can't be decoded, such as a body that isn't base64.
	ErrRequest = errors.New("request can't be decoded")
	// ErrTooLarge matches errors from a request body over the limit.
	ErrTooLarge = errors.New("request body is too large")
	// ErrMismatch matches errors from a key that was first used with another request.
	ErrMismatch = errors.New("idempotency key was first used with another request")
	// ErrCredentials matches errors from a key that was first used with other
	// credentials, or on another host, where nobody has verified who is calling.
	ErrCredentials = errors.New("idempotency key was first used with other credentials")
	// ErrInFlight matches errors from a request whose key is held by another attempt.
	ErrInFlight = errors.New("a request with this idempotency key is in flight")
	// ErrStuck matches errors from a key that waits for an operator.
	ErrStuck = errors.New("the request with this idempotency key is stuck")
	// ErrKeyUnknown matches errors from asking for the status of a key of which nothing is known.
	ErrKeyUnknown = errors.New("nothing is known of this idempotency key")
	// ErrExpired matches errors from a key whose lifetime is over, where that is still known.
	ErrExpired = errors.New("idempotency key has expired")
	// ErrNotKept matches errors from a finished operation whose answer could not be kept.
	ErrNotKept = store.ErrNotKept
	// ErrLeaseLost matches errors from an attempt that another one overtook: it changed nothing after that.
	ErrLeaseLost = errors.New("lease lost to another attempt")
	// ErrNoTime matches errors from a request with too little time left to begin.
	ErrNoTime = errors.New("too little time left to begin")
	// ErrUnavailable matches errors from a store that can't be reached or refuses.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrSecret matches errors from a record whose fingerprint was keyed with a secret that isn't configured.
	ErrSecret = errors.New("the fingerprint's secret is not configured")

	// ErrPhaseOrder matches errors from a handler whose phases are not those that
	// are recorded, or that repeats, nests or overlaps them: a mistake in the program.
	ErrPhaseOrder = errors.New("phases out of order")
	// ErrPhaseFailed matches errors from a phase after one that has failed.
	ErrPhaseFailed = errors.New("an earlier phase has failed")
	// ErrResult matches errors from a result or an answer that can't be stored as it is.
	ErrResult = errors.New("result can't be stored")
	// ErrWrite matches errors from a write or a job that can't be committed: nothing was sent.
	ErrWrite = store.ErrWrite
	// ErrCondition matches errors from a commit whose user's own condition was false: nothing was written.
	ErrCondition = store.ErrCondition
	// ErrKeyReused matches errors from a phase that asked for one derived key twice.
	ErrKeyReused = errors.New("derived key is used twice: name the step")
	// ErrDeliveryKey matches errors from a phase that must not run under a key which
	// names only a delivery ([Request.DeliveryKey]): nothing was called or written.
	ErrDeliveryKey = errors.New("the key names a delivery and not the work")
	// ErrNoOperation matches errors from a phase outside of an operation.
	ErrNoOperation = errors.New("not in an operation")
	// ErrAnswered matches errors from a phase of an operation that already has its
	// answer, which is given whatever the handler returns.
	ErrAnswered = errors.New("the operation has its answer")

	// ErrConflict matches errors from a commit that was not applied: another write was in progress, or an item
	// that was read has changed.
	ErrConflict = store.ErrConflict
	// ErrCorrupt matches errors from a stored record that can't be understood.
	ErrCorrupt = store.ErrCorrupt
)

// Error says where an operation failed. Get at it with errors.As or
// errors.AsType[*Error].
type Error struct {
	Op         string        // what was being done: "key", "scope", "claim", "finish", …
	Record     string        // short hash that names the record in logs; "" before it is known
	RetryAfter time.Duration // when trying again makes sense; 0 = unknown
	Expires    time.Time     // end of the key's lifetime, where that is known
	Err        error

	phase bool // what a phase came to: the handler may pass it on
}

func (e *Error) Error() string {
	s := "idem: " + e.Op
	if e.Record != "" {
		s += " " + e.Record
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
