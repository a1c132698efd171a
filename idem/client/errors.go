package client

import (
	"errors"
	"fmt"
	"os"
)

// Errors of this package. Compare with errors.Is.
var (
	// ErrRequest matches errors from a request that no transport can send. Nothing was sent.
	ErrRequest = errors.New("request can't be sent")
	// ErrKeyInvalid matches errors from a caller's key that is empty, too long, set
	// twice or not visible ASCII. Nothing was sent. If the key contains a control
	// character other than a tab, the error is ErrRequest instead.
	ErrKeyInvalid = errors.New("idempotency key is invalid")
	// ErrBody matches errors from a keyed request whose body can't be sent a second
	// time. Nothing was sent. ErrBody also matches errors from a request whose GetBody
	// failed before a retry: [Error.Attempts] is then above 0.
	ErrBody = errors.New("request body can't be rewound")
	// ErrOperation matches errors from a named operation ([WithOperation]) if the name is
	// invalid or there is no journal. Nothing was sent.
	ErrOperation = errors.New("operation can't be remembered")
	// ErrMismatch matches errors from a request that differs from the first request of
	// its named operation, in method, host, URL, body or key. Nothing was sent.
	ErrMismatch = errors.New("operation was begun with another request")
	// ErrExpired matches errors from a request whose key the server may have forgotten,
	// or will forget soon. Sending the request now could run its operation twice, so
	// the request was not sent, or not sent again.
	ErrExpired = errors.New("the key's lifetime is over")

	// ErrLocked matches errors from opening a journal that is already open, in another
	// process or in another FileJournal of this process.
	ErrLocked = errors.New("journal is in use")
	// ErrCorrupt matches errors from a journal if its file is missing, is an earlier
	// copy, is not a journal, or has damage that no crash explains. The file is left
	// unchanged.
	ErrCorrupt = errors.New("journal is corrupt")
)

var errAttemptTimeout = fmt.Errorf("attempt timed out: %w", os.ErrDeadlineExceeded)

// Error describes how a request failed. [http.Client] wraps an Error in a *url.Error,
// so get the Error with errors.As or errors.AsType[*Error]. If Client.Timeout ends the
// request, http.Client returns its own error without the Error. To keep the Error, set
// a deadline in the request's context instead of Client.Timeout.
type Error struct {
	// Key is the request's key, as sent in the header; "" if the request has no key.
	// After a redirect to a request without a key, Key is the key of the redirected
	// request. A later request with this key is the same operation. The error's message
	// doesn't contain Key.
	Key string
	// Attempts is the number of attempts, including those that could not connect.
	Attempts int
	// Unknown is true if the server may have carried out the operation, or may be
	// working on the operation. If Unknown is false, the server has not carried out the
	// operation. Unknown is also true if an earlier request may have been the same
	// operation: always after a redirect, or if Key is a key that the caller set, and
	// for a named operation ([WithOperation]) unless the journal has told that the
	// operation is new.
	Unknown bool
	// GaveUp says why a failure was not retried although a retry could help. For other
	// failures, GaveUp is "". The values are:
	//
	//   - "retries": Options.MaxRetries is reached;
	//   - "retry-after": the server asks for a wait of more than a minute;
	//   - "lifetime": the key's lifetime would end before the retry;
	//   - "deadline": the context's deadline would come before the end of the wait;
	//   - "budget": the transport's budget for retries is used up (see Options.NoBudget);
	//   - "body": the body can't be sent again;
	//   - "refused": the server's header Stripe-Should-Retry forbids a retry;
	//   - "ignored": the server says that it ignores the key.
	GaveUp string
	// Err is the reason why the final attempt failed, or why nothing was sent.
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

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether e was caused by a timeout. The method Timeout of the
// *url.Error around e calls this method.
func (e *Error) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}
