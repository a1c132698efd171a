package lambda

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/redact"
)

var (
	// ErrNotRun matches errors of records whose handler was not run although the record is sound.
	// There are three reasons: an earlier record of the same group failed, the handler of an
	// earlier record with the same key has not returned, or no time was left (then the error also
	// matches [idem.ErrNoTime]). The source delivers the record again. A queue counts the delivery
	// as a receive, although the handler was not run.
	ErrNotRun = errors.New("not tried")

	// ErrOverdue matches the error of a record whose handler ran past the end of its
	// context and had not returned when the report was sent. The handler may have had
	// its effect.
	ErrOverdue = errors.New("the handler has not returned, although its time is over")

	errHeldBack = fmt.Errorf("%w: an earlier record of its group failed", ErrNotRun)
	errSameKey  = fmt.Errorf("%w: the handler of an earlier record with its key has not returned", ErrNotRun)
	errGone     = errors.New("the handler ended its goroutine")
)

// noTime returns the error for a record that was not begun because too little time was left.
func noTime(ctx context.Context) error {
	err := fmt.Errorf("%w: %w", ErrNotRun, idem.ErrNoTime)
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &idem.Error{Op: "start", Err: err}
}

// BatchError lists the failed records of an event with several records. [EachHandler.Handle]
// returns it if the source takes no report of single records, or if all records failed.
type BatchError struct {
	Total   int           // the number of records in the event
	Records []RecordError // the failed records, in the event's order
}

// RecordError is the failure of one record.
type RecordError struct {
	ID  string // the source's id of the record
	Err error  // the handler's own error, or the engine's
}

func (e *BatchError) Error() string {
	const most = 3 // the text goes to logs and failure destinations, so keep it short
	var b strings.Builder
	fmt.Fprintf(&b, "lambda: %d of %d records failed", len(e.Records), e.Total)
	for i, r := range e.Records[:min(len(e.Records), most)] {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s: %v", sep, r.ID, r.Err)
	}
	if more := len(e.Records) - most; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// Unwrap returns the errors of the records.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Records))
	for i, r := range e.Records {
		errs[i] = r.Err
	}
	return errs
}

// PanicError is the error of a record whose handler panicked. The other records of the event
// continue.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack trace, from debug.Stack
}

// Error includes the panic's value only if the Go runtime made the value, because any
// other value may hold data of the record.
func (e *PanicError) Error() string {
	return "lambda: handler " + redact.Panic(e.Value)
}

// Unwrap returns the panic's value if the value is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func panicked(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }

// ownError marks an error as the handler's, not the engine's.
type ownError struct{ err error }

func (o *ownError) Error() string { return o.err.Error() }

func (o *ownError) Unwrap() error { return o.err }

// engineError wraps an error of the engine that isn't an [*idem.Error] yet.
func engineError(err error) error {
	if _, ok := err.(*idem.Error); ok || err == nil { //nolint:errorlint // a joined one is not
		return err
	}
	return &idem.Error{Op: "do", Err: err}
}

// errorTypes names the engine's errors, because Step Functions and log filters see no
// Go errors and match on errorType. If an error matches several entries, the first of
// these gives the name. The names are part of the API.
var errorTypes = []struct {
	err  error
	name string
}{
	{idem.ErrKeyMissing, "IdempotencyKeyMissing"},
	{idem.ErrKeyInvalid, "IdempotencyKeyInvalid"},
	{idem.ErrMismatch, "IdempotencyKeyMismatch"},
	{idem.ErrNotKept, "IdempotencyAnswerNotKept"},
	{idem.ErrStuck, "IdempotencyStuck"},
	{idem.ErrInFlight, "IdempotencyInFlight"},
	{idem.ErrLeaseLost, "IdempotencyLeaseLost"},
	{idem.ErrUnfinished, "IdempotencyUnfinished"},
	{idem.ErrNoTime, "IdempotencyNoTimeLeft"},
	{idem.ErrQuota, "IdempotencyQuotaExceeded"},
	{idem.ErrCorrupt, "IdempotencyRecordCorrupt"},
	{idem.ErrIncomparable, "IdempotencyIncomparable"},
	{idem.ErrScope, "IdempotencyScopeUnknown"},
	{idem.ErrUnavailable, "IdempotencyStoreUnavailable"},
	{idem.ErrTooLarge, "IdempotencyRequestTooLarge"},
	{idem.ErrRequest, "IdempotencyRequestInvalid"},
}

// reported returns err in the form in which the runtime reports it. An error of the engine gets a
// name from [errorTypes]. Any other error is unchanged, and the runtime names it by its Go type.
func reported(err error) error {
	if _, ours := err.(*idem.Error); !ours { //nolint:errorlint // an engine error inside of another error doesn't count
		return err
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return messages.InvokeResponse_Error{Message: err.Error(), Type: t.name}
		}
	}
	return err
}
