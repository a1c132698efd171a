package completer

import (
	"time"

	"github.com/samekey/samekey/internal/envelope"
)

// TicketOutcome is the result of a ticket that was due.
type TicketOutcome struct {
	Kind       TicketOutcomeKind
	RetryAfter time.Duration // with TicketInFlight: the rest of the lease, 0 if unknown
	Error      string        // with TicketFailed, TicketNotMine, TicketStuck and TicketUnreadable: a text for logs

	// Unanswered is set with TicketFailed if the function gave no answer: the function
	// is throttled or out of reach, or it timed out or crashed. If several operations
	// get no answer at their first try, the function's other operations wait. A
	// TicketFailed without Unanswered doesn't count against the function.
	Unanswered bool
}

// TicketOutcomeKind is a kind of [TicketOutcome].
type TicketOutcomeKind string

// The kinds of outcomes.
const (
	TicketDone     TicketOutcomeKind = "done"      // the operation has its answer
	TicketMoved    TicketOutcomeKind = "moved"     // another attempt continued the operation: read the record again later
	TicketInFlight TicketOutcomeKind = "in_flight" // an attempt still holds the operation: try again later
	TicketStuck    TicketOutcomeKind = "stuck"     // the operation waits for an operator
	TicketFailed   TicketOutcomeKind = "failed"    // this try failed: try again later
	TicketNotMine  TicketOutcomeKind = "not_mine"  // the operation's handler was not found: nothing was changed, and an operator must find out why

	TicketUnreadable TicketOutcomeKind = "unreadable" // the record, or its sealed request, was altered by hand: a person must look at it
)

func outcome(o envelope.Outcome) TicketOutcome {
	return TicketOutcome{Kind: TicketOutcomeKind(o.Kind), RetryAfter: o.RetryAfter, Error: o.Error}
}
