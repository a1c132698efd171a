package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Ticket names an operation as it was last seen. A Ticket is valid for one
// take-over, and void once the record has been written again. A Ticket contains
// nothing of the request, so a sender of tickets can't invent an identity.
//
// JSON contains only the fields that name the record. The queue keeps due time
// and address. The address comes from the record, and the receiver checks the
// address against the record: a wrong address changes nothing.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released reports whether the attempt gave the record back. Released only saves
	// a call, since the record itself decides.
	Released bool `json:"released,omitempty"`

	// Jobs, unless empty, makes the Ticket a ticket for a drain: Jobs is the id of
	// the operation whose jobs wait in the record. Such a ticket takes nothing over
	// and has no Owner and Ver.
	Jobs string `json:"jobs,omitempty"`

	Due      time.Time `json:"-"` // not to be used before Due
	Tries    int       `json:"-"` // number of unsuccessful uses
	Function string    `json:"-"` // function of the record's Handler
	Tenant   string    `json:"-"` // tenant of the record
}

// TicketFor returns a ticket for r as it is, due at once.
func TicketFor(r *store.Record) Ticket {
	return Ticket{
		PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Function: r.Handler.Function, Tenant: r.Tenant,
	}
}

// From returns t with Due set to due.
func (t Ticket) From(due time.Time) Ticket {
	t.Due = due
	return t
}

// Record returns the short name of the ticket's record in logs and metrics.
func (t Ticket) Record() string { return redact.Record(t.PK) }

// TicketQueue keeps tickets until they are due. A TicketQueue is safe for
// concurrent use.
//
// A queue may return a ticket more than once, late, or a little early: using a
// ticket twice is safe, and the receiver checks Due.
type TicketQueue interface {
	// Put adds tickets. Put returns nil if all were added, else one error for each
	// ticket, nil for each added ticket.
	Put(ctx context.Context, tickets []Ticket) []error
}

var (
	// ErrMoved matches errors from an outdated [Ticket]: the record has been written
	// since, so nothing is left to do for the ticket.
	ErrMoved = errors.New("the record has moved on")
	// ErrNotMine matches errors from a [Ticket] of another handler's or another
	// tenant's operation: nothing was changed, and the ticket is still valid.
	ErrNotMine = errors.New("the operation is another handler's")
)
