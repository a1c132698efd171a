package stream

import (
	"context"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/hook"
)

// Hooks are called as [Drain], [Completer], [Sweep] and the worker work; nil hooks are
// skipped. Calls may be concurrent; hooks must neither block nor panic. If Lambda sends
// a stream record or a ticket again, its hooks are called again. [Join] combines
// several Hooks.
type Hooks struct {
	// Skipped is called for a skipped stream record or item. The reason SkipCompanion
	// is normal; investigate any other reason.
	Skipped func(context.Context, Skipped)

	Delivered func(context.Context, jobs.Delivery)        // a job was delivered
	Failed    func(context.Context, jobs.Delivery, error) // a job was not delivered: its delivery failed, or it was held back
	Parked    func(context.Context, Entry)                // a job was parked: it waits for an operator

	// Delayed is called for each ticket that was queued because jobs failed or were held back
	// ([DrainOptions.Delayed]). It isn't called for the tickets of jobs with a time.
	Delayed func(context.Context, jobs.Ticket)

	Queued    func(context.Context, jobs.Ticket) // an operation's ticket was put into the completer's queue
	MadeStuck func(context.Context, Entry)       // an operation that can't be completed was marked as stuck

	// ExpiredOpen is called for an unfinished operation whose record was deleted or
	// replaced. Only the Entry is left of the operation, so use the Entry for an alarm,
	// and to repair the unfinished work.
	ExpiredOpen func(context.Context, Entry)

	// JobLost is called for a job that was parked or waited for its time when its
	// record was deleted or replaced. Nobody can deliver this job any more. The drain
	// still delivers the other jobs of the record.
	JobLost func(context.Context, Entry)

	// Tried is called by a worker after each try of a due ticket. If [jobs.Ticket].Jobs
	// is set, the worker tried to deliver jobs. Otherwise the worker tried to finish
	// the operation.
	Tried func(context.Context, Try)

	// Swept is called after each scan of [Sweep.Run] or [Sweep.GoOn], even after a
	// failed scan. A hook must not change the Report.
	Swept func(context.Context, *Report, error)

	// Counted is called after each [Waiting.Count] of a worker, for a gauge of what
	// waits for people. A hook must not change the Counted.
	Counted func(context.Context, *Counted)
}

// Try is the outcome of trying a ticket.
type Try struct {
	Ticket  jobs.Ticket
	Outcome string // a completer.TicketOutcomeKind: "done", "moved", "in_flight", "stuck", "failed", "not_mine" or "unreadable"
	Err     string // the error text of the outcome; "" if none
}

// Join returns Hooks that call all of the given hooks, in order. A hook that is nil in all of them
// stays nil.
func Join(all ...Hooks) Hooks {
	var j Hooks
	for _, h := range all {
		j.Skipped = hook.Both(j.Skipped, h.Skipped)
		j.Delivered = hook.Both(j.Delivered, h.Delivered)
		j.Failed = hook.Both2(j.Failed, h.Failed)
		j.Parked = hook.Both(j.Parked, h.Parked)
		j.Delayed = hook.Both(j.Delayed, h.Delayed)
		j.Queued = hook.Both(j.Queued, h.Queued)
		j.MadeStuck = hook.Both(j.MadeStuck, h.MadeStuck)
		j.ExpiredOpen = hook.Both(j.ExpiredOpen, h.ExpiredOpen)
		j.JobLost = hook.Both(j.JobLost, h.JobLost)
		j.Tried = hook.Both(j.Tried, h.Tried)
		j.Swept = hook.Both2(j.Swept, h.Swept)
		j.Counted = hook.Both(j.Counted, h.Counted)
	}
	return j
}

// Skip is the reason why a stream record, or an item of the table, was skipped.
type Skip string

// The reasons to skip.
const (
	SkipCompanion  Skip = "companion"  // an item without a state: part of a body, a sweep's cursor, or an entry of the list for people
	SkipForeign    Skip = "foreign"    // not an item of Samekey
	SkipNoImage    Skip = "no image"   // the stream record lacks its image: the stream must have new and old images
	SkipUnreadable Skip = "unreadable" // the layout, state or form is unknown: see docs/operate/item.md
)

// Skipped is a stream record, or an item of the table, that was skipped.
type Skipped struct {
	Reason   Skip
	Record   string // the name in logs; "" if the item's key is not a string
	Sequence string // sequence number of the stream record; "" for an item of the table
	Err      error  // why the item is unreadable; nil unless Reason is SkipUnreadable
}
