package completer

import (
	"time"

	"github.com/samekey/samekey/lambda/internal/envelope"
)

// TicketOutcome says what came of a ticket that was due.
type TicketOutcome struct {
	Kind       TicketOutcomeKind
	RetryAfter time.Duration // of TicketInFlight: the rest of the lease, 0 if it isn't known
	Error      string        // of TicketFailed, TicketNotMine and TicketStuck, for logs
}

// TicketOutcomeKind is a kind of [TicketOutcome].
type TicketOutcomeKind string

// What can come of a ticket.
const (
	TicketDone     TicketOutcomeKind = "done"      // the operation has its answer
	TicketMoved    TicketOutcomeKind = "moved"     // another worker went on with the operation: there is nothing to do
	TicketInFlight TicketOutcomeKind = "in_flight" // a worker still holds the operation: try again later
	TicketStuck    TicketOutcomeKind = "stuck"     // the operation waits for an operator
	TicketFailed   TicketOutcomeKind = "failed"    // this try failed: try again later
	TicketNotMine  TicketOutcomeKind = "not_mine"  // the operation is another handler's: nothing was changed, and somebody must look why the ticket came here
)

func outcome(o envelope.Outcome) TicketOutcome {
	return TicketOutcome{TicketOutcomeKind(o.Kind), o.RetryAfter, o.Error}
}
