package store

import (
	"errors"
)

// Errors of a [Store]. Compare them with errors.Is. Each error says what happened to a
// write, and whether another try of the same write can help:
//
//   - refused for good: the medium refuses the call ([ErrRefused]), or the write itself
//     can't succeed ([ErrWrite], [ErrTooLarge], [ErrCondition], [ErrChanged]). The refused
//     write changed nothing, and the same write is refused again.
//   - refused for now: [ErrConflict], unless the error matches ErrChanged. Nothing was
//     written; the same write may succeed soon.
//   - not reached, throttled, or no answer: [ErrUnknown]. The write may have been applied.
//     Even a throttled write may have been, by an earlier try of the medium's client. The
//     record shows whether the write was applied. The same write may be sent again.
//
// A read's error matches [ErrRefused] if the medium refuses the read for good.
// [ErrCorrupt], [ErrSealed] and [ErrNotKept] say what is wrong with the stored record.
// After any other error, the same read may succeed soon.
var (
	// ErrUnknown means that the write may or may not have been applied.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrRefused means that the medium answered, and refused the call. At least one of
	// these is wrong or missing: the program's rights or credentials, the table, the
	// table's encryption key. The refused call wrote and read nothing, but an earlier try
	// of the medium's client may have been applied. Another try helps only after people
	// have corrected the cause.
	ErrRefused = errors.New("the store refuses the call")
	// ErrConflict means that the write was not applied, because another write was in
	// progress, because the record's jobs have changed since they were read, or because
	// an item has changed since it was read ([ErrChanged]).
	ErrConflict = errors.New("conflict with another write")
	// ErrChanged means that an item has changed since it was read, so the same write can
	// never be applied. ErrChanged matches ErrConflict.
	ErrChanged error = changed{}
	// ErrCondition means that a user-supplied condition was false; nothing was
	// written.
	ErrCondition = errors.New("condition is false")
	// ErrWrite means that the user's writes can never be committed, for example because
	// there are too many.
	ErrWrite = errors.New("write can't be committed")
	// ErrCorrupt means that a stored record is unreadable.
	ErrCorrupt = errors.New("record is corrupt")
	// ErrSealed means that the store can't encrypt a record's contents, or can't decrypt
	// those of a stored record: the data key is unavailable at the moment, or this program
	// can't use it. With ErrSealed, Load may return the record without its contents. For
	// such a record, the store refuses each write that needs the contents.
	ErrSealed = errors.New("the record's contents are sealed, and their key can't be had")
	// ErrTooLarge means that a record was not written, because it is larger than the
	// store's limit. The same write never fits.
	ErrTooLarge = errors.New("the record is too large")
	// ErrNotKept means that a body is missing, or differs from the body that was stored.
	ErrNotKept = errors.New("the answer was not kept")
)

// Passing reports whether a write that failed with err may be sent again unchanged. This is
// so if the write was refused for now, or if its outcome is unknown. Passing returns false
// if err is nil.
func Passing(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrConflict) && !errors.Is(err, ErrChanged)
}

// changed is the type of ErrChanged. It exists because making ErrChanged with
// fmt.Errorf would cost time at each cold start.
type changed struct{}

func (changed) Error() string { return "conflict with another write: what was read has changed" }

func (changed) Unwrap() error { return ErrConflict }
