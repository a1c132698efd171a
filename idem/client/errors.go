package client

import (
	"errors"
	"fmt"
	"os"
)

// What can go wrong besides the network. Callers compare with errors.Is.
var (
	// ErrRequest matches errors from a request that no transport can send. Nothing was sent.
	ErrRequest = errors.New("request can't be sent")
	// ErrKeyInvalid matches errors from a caller's key that is empty, too long, set twice or not visible ASCII.
	// Nothing was sent.
	ErrKeyInvalid = errors.New("idempotency key is invalid")
	// ErrBody matches errors from a keyed request whose body could not be sent a second time. Nothing was sent.
	ErrBody = errors.New("request body can't be rewound")
	// ErrOperation matches errors from [WithOperation] with a name that can't be used, or without a journal to
	// keep it. Nothing was sent.
	ErrOperation = errors.New("operation can't be remembered")
	// ErrMismatch matches errors from an operation that was begun with another request or key. Nothing was sent.
	ErrMismatch = errors.New("operation was begun with another request")
	// ErrExpired matches errors from an operation whose key the server has forgotten, or soon will: sending it
	// now could do it twice. It was not sent, or not again.
	ErrExpired = errors.New("the key's lifetime is over")
	// ErrAttemptTimeout matches errors from an attempt that took longer than [Options.AttemptTimeout].
	ErrAttemptTimeout = fmt.Errorf("attempt timed out: %w", os.ErrDeadlineExceeded)

	// ErrLocked matches errors from a journal that another process, or another FileJournal, has open.
	ErrLocked = errors.New("journal is in use")
	// ErrCorrupt matches errors from a journal's file that was damaged otherwise than by a crash, is gone, is an
	// earlier copy, or is no journal. It is left as it is.
	ErrCorrupt = errors.New("journal is corrupt")
	// ErrClosed matches errors from a journal that was closed.
	ErrClosed = errors.New("journal is closed")
)

// Error says how a request failed. Get at it with errors.As or
// errors.AsType[*Error]; under [http.Client] it is inside of the *url.Error,
// but not when Client.Timeout has passed: that replaces it by an error of its
// own. Bound requests by their context to keep it.
type Error struct {
	// Key is the request's key in the form it is sent; "" if it has none. A
	// later request that carries it is the same operation. It is not part of
	// the message.
	Key string
	// Attempts is how often the request was sent.
	Attempts int
	// Unknown is true where the server may have carried out the operation, or
	// may be doing it now. False means that it has not. With a key that the
	// caller set it is always true, since an earlier request may have had it.
	Unknown bool
	// GaveUp says why a failure that could have been retried was not; "" where
	// it was none of that kind.
	GaveUp Reason
	// Err is the cause: of the last attempt's failure, or of not sending.
	Err error
}

func (e *Error) Error() string {
	switch {
	case e.Attempts == 0:
		return "client: not sent: " + e.Err.Error()
	case e.GaveUp != "":
		return fmt.Sprintf("client: gave up after attempt %d (%s): %v", e.Attempts, e.GaveUp, e.Err)
	}
	return fmt.Sprintf("client: attempt %d: %v", e.Attempts, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout makes the *url.Error around e tell a timeout.
func (e *Error) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}
