package lambda

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/samekey/samekey/idem"
)

// BatchError says which records of an event have failed, where the source can't
// be told in the answer.
type BatchError struct {
	Total   int           // records of the event
	Records []RecordError // the failed ones, in the event's order
}

// RecordError is the failure of one record.
type RecordError struct {
	ID  string // what the source knows it by
	Err error  // why: the handler's own error, or the engine's
}

func (e *BatchError) Error() string {
	const most = 3 // it ends up in logs and failure destinations
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

// PanicError is a handler's panic over one record. The others of its event go
// on, so that a record nobody can work on doesn't keep them from being done.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where, as of debug.Stack
}

// Error has the value only where the Go runtime made it: another one may hold
// what was in the record.
func (e *PanicError) Error() string {
	return "lambda: handler " + idem.PanicText(e.Value)
}

// Unwrap returns the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func panicked(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }
