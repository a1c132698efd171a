package store

import "errors"

// Errors of a [Store]. Compare with errors.Is.
var (
	// ErrUnknown means that the write may or may not have been applied.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrConflict means that the write was not applied: another write was in
	// progress, or an item that was read has changed.
	ErrConflict = errors.New("conflict with another write")
	// ErrCondition means that a user-supplied condition was false; nothing was
	// written.
	ErrCondition = errors.New("condition is false")
	// ErrWrite means that the user's writes can't be sent at all.
	ErrWrite = errors.New("write can't be committed")
	// ErrCorrupt means that a stored record is unreadable.
	ErrCorrupt = errors.New("record is corrupt")
	// ErrSealed means that the contents of a stored record are encrypted, and that
	// their data key can't be had now, or not by this program. A record that a store
	// returns beside it lacks them, and the store refuses a write that needs them.
	ErrSealed = errors.New("the record's contents are sealed, and their key can't be had")
	// ErrTooLarge means that a record is larger than the store's limit, and was not
	// written: the same write never fits.
	ErrTooLarge = errors.New("the record is too large")
	// ErrNotKept means that a body is missing or differs from the stored body.
	ErrNotKept = errors.New("the answer was not kept")
)
