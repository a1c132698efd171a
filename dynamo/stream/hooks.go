package stream

import (
	"context"

	"github.com/samekey/samekey/idem/jobs"
)

// Hooks are called as [Drain], [Completer] and [Sweep] work; a nil one is
// skipped. Several may be called at once; they must neither block nor panic.
// What is retried is told again.
type Hooks struct {
	// Skipped is told of a record that is passed over. Companions are ordinary;
	// anything else is worth a look.
	Skipped func(context.Context, Skipped)

	Delivered func(context.Context, jobs.Delivery)        // a job was handed on
	Failed    func(context.Context, jobs.Delivery, error) // it was not, this time
	Parked    func(context.Context, Entry)                // it won't be, without an operator

	// Aside is told of a ticket for jobs that could not be delivered
	// ([DrainOptions.Aside]).
	Aside func(context.Context, jobs.Ticket)

	Queued  func(context.Context, jobs.Ticket) // an operation was handed to the completer's queue
	GivenUp func(context.Context, Entry)       // an operation nobody can complete is stuck now

	// ExpiredOpen is told of an operation whose record is gone though it was not
	// finished. There is no other trace of it: the entry is for an alarm and for
	// whoever looks after what has been left undone.
	ExpiredOpen func(context.Context, Entry)

	// JobLost is told of a parked job whose record is gone: it was never delivered,
	// and nobody can redrive it. What was staged in the record besides, and still
	// waited, is delivered.
	JobLost func(context.Context, Entry)
}

// Skip says why a stream record, or an item of the table, is passed over.
type Skip string

// The reasons to pass over.
const (
	SkipCompanion  Skip = "companion"  // it holds a body, and belongs to a record of its own; or the sweep's place
	SkipForeign    Skip = "foreign"    // it is not of this package
	SkipNoImage    Skip = "no image"   // the stream must have new and old images
	SkipUnreadable Skip = "unreadable" // of another layout, state or form: see docs/item.md
)

// Skipped is a record that was passed over.
type Skipped struct {
	Why      Skip
	Record   string // its short name in logs; "" where it has none
	Sequence string // of the stream record; "" for an item of the table
	Err      error  // what is wrong with it, where that can be said
}
