package stream

import (
	"context"

	"github.com/samekey/samekey/idem/jobs"
)

// Hooks are called as [Drain], [Completer] and [Sweep] work; nil hooks are skipped.
// Calls may be concurrent; hooks must neither block nor panic. A retry calls them
// again.
type Hooks struct {
	// Skipped is called for a skipped record. Companions are ordinary; other reasons
	// are worth a look.
	Skipped func(context.Context, Skipped)

	Delivered func(context.Context, jobs.Delivery)        // a job was delivered
	Failed    func(context.Context, jobs.Delivery, error) // a delivery failed, and may be retried
	Parked    func(context.Context, Entry)                // a job won't be delivered without an operator

	// Aside is called for a ticket for jobs that could not be delivered
	// ([DrainOptions.Aside]).
	Aside func(context.Context, jobs.Ticket)

	Queued  func(context.Context, jobs.Ticket) // an operation was put into the completer's queue
	GivenUp func(context.Context, Entry)       // an operation that can't be completed is stuck now

	// ExpiredOpen is called for an operation whose record is gone unfinished. There
	// is no other trace of the operation: use the entry for an alarm and for
	// repairing unfinished work.
	ExpiredOpen func(context.Context, Entry)

	// JobLost is called for a parked job whose record is gone: it was never
	// delivered, and can't be redriven. Other jobs of the record that still waited
	// are delivered.
	JobLost func(context.Context, Entry)
}

// Skip is the reason to skip a stream record, or an item of the table.
type Skip string

// The reasons to skip.
const (
	SkipCompanion  Skip = "companion"  // holds a body of another record, or a sweep's cursor
	SkipForeign    Skip = "foreign"    // not an item of this package
	SkipNoImage    Skip = "no image"   // the stream must have new and old images
	SkipUnreadable Skip = "unreadable" // of another layout, state or form: see docs/item.md
)

// Skipped is a record that was skipped.
type Skipped struct {
	Why      Skip
	Record   string // short name in logs; "" if it has none
	Sequence string // of the stream record; "" for an item of the table
	Err      error  // why the record is unreadable; nil for other reasons
}
