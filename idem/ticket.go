package idem

import (
	"context"
	"time"
)

// DefaultGrace is for how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// DueTicket is a [Ticket] that is not to be used before its time, and to whom it
// is to go. That is taken from the record, and checked against it by whoever gets
// the ticket: a wrong address changes nothing.
type DueTicket struct {
	Ticket
	Due      time.Time
	Tries    int    // how often it has come back without success
	Function string // of the record's Handler
	Tenant   string // the record's
}

// TicketDue returns a ticket for r as it is, to be used from due on.
func TicketDue(r *Record, due time.Time) DueTicket {
	return DueTicket{Ticket: TicketFor(r), Due: due, Function: r.Handler.Function, Tenant: r.Tenant}
}

// TicketQueue keeps tickets until they are due. It is safe for concurrent use.
//
// It may give a ticket back more than once, late, or a little early: what is
// done with one is safe to do twice, and whoever gets it looks at Due.
type TicketQueue interface {
	// Put adds tickets and says what became of each: nil if all were added, else
	// one error for each, nil for those that were.
	Put(ctx context.Context, tickets []DueTicket) []error
}
