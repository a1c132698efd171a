package store

import "errors"

// The errors that a [Store] returns. Callers compare with errors.Is.
var (
	// ErrUnknown says that the write may or may not have been applied.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrConflict says that the write was not applied: another write was in
	// progress, or an item that was read has changed.
	ErrConflict = errors.New("conflict with another write")
	// ErrCondition says that a condition of the user's own was false: nothing was written.
	ErrCondition = errors.New("condition is false")
	// ErrWrite says that the user's writes can't be sent at all.
	ErrWrite = errors.New("write can't be committed")
	// ErrCorrupt says that a stored record can't be understood.
	ErrCorrupt = errors.New("record is corrupt")
	// ErrNotKept says that a body is missing, or isn't the body that was stored.
	ErrNotKept = errors.New("the answer was not kept")
)
