package store

import (
	"errors"
)

// Errors of a [Store]. Compare with errors.Is. Each error says what happened to a write,
// and whether another try of the same write can help:
//
//   - refused for good: the medium refuses the call ([ErrRefused]), or the write itself
//     can't succeed ([ErrWrite], [ErrTooLarge], [ErrCondition], [ErrChanged]). Nothing was
//     written, and the same write is refused again.
//   - refused for now: [ErrConflict], unless the error matches ErrChanged. Nothing was
//     written; the same write may succeed soon.
//   - not reached, throttled, or no answer: [ErrUnknown]. The write may have been applied,
//     also by an earlier try of the medium's client. The record shows whether the write was
//     applied. The same write may be sent again.
//
// If a read is refused for good, the error matches [ErrRefused], too. Any other failed
// read may succeed soon.
var (
	// ErrUnknown means that the write may or may not have been applied.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrRefused means that the medium answered, and refused the call: the program's
	// rights, its credentials, the table or its encryption key are missing or wrong.
	// Nothing was written or read, and another try helps only after people have corrected
	// the cause.
	ErrRefused = errors.New("the store refuses the call")
	// ErrConflict means that the write was not applied: another write was in
	// progress, or an item that was read has changed ([ErrChanged]).
	ErrConflict = errors.New("conflict with another write")
	// ErrChanged means that an item that was read has changed, so that the same write
	// can never be applied. ErrChanged matches ErrConflict.
	ErrChanged error = changed{}
	// ErrCondition means that a user-supplied condition was false; nothing was
	// written.
	ErrCondition = errors.New("condition is false")
	// ErrWrite means that the user's writes can't be sent at all.
	ErrWrite = errors.New("write can't be committed")
	// ErrCorrupt means that a stored record is unreadable.
	ErrCorrupt = errors.New("record is corrupt")
	// ErrSealed means that the contents of a stored record are encrypted, and that the
	// store can't decrypt them: the data key is unavailable at the moment, or to this
	// program. The store may return the record without its contents. In this case the
	// store refuses a write that needs the contents.
	ErrSealed = errors.New("the record's contents are sealed, and their key can't be had")
	// ErrTooLarge means that a record is larger than the store's limit, and was not
	// written: the same write never fits.
	ErrTooLarge = errors.New("the record is too large")
	// ErrNotKept means that a body is missing, or differs from the body that was stored.
	ErrNotKept = errors.New("the answer was not kept")
)

// Passing reports whether a write that failed with err may be sent again unchanged: the
// write was refused for now, or its outcome is unknown. Passing is false for nil.
func Passing(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrConflict) && !errors.Is(err, ErrChanged)
}

// changed is a type of its own: to build ErrChanged with fmt.Errorf would cost time at each
// cold start.
type changed struct{}

func (changed) Error() string { return "conflict with another write: what was read has changed" }

func (changed) Unwrap() error { return ErrConflict }
