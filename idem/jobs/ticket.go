package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
)

// DefaultGrace is for how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// Ticket names an operation as somebody saw it: it is good for one take-over,
// and worthless once anybody has written the record since. It holds nothing of
// the request, so whoever may send tickets can't invent an identity.
//
// As JSON it is what names the record: when it is due and to whom it goes is its
// queue's to keep. That is taken from the record, and checked against the record by
// whoever gets the ticket: a wrong address changes nothing.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released says that its attempt gave the record back. It only saves a call,
	// since the record itself decides.
	Released bool `json:"released,omitempty"`

	// Jobs makes it a ticket for a drain: it names the operation whose jobs wait in
	// the record, and takes nothing over. It has no Owner and no Ver.
	Jobs string `json:"jobs,omitempty"`

	Due      time.Time `json:"-"` // not to be used before
	Tries    int       `json:"-"` // how often it has come back without success
	Function string    `json:"-"` // of the record's Handler
	Tenant   string    `json:"-"` // the record's
}

// TicketFor returns a ticket for r as it is, to be used at once.
func TicketFor(r *store.Record) Ticket {
	return Ticket{
		PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Function: r.Handler.Function, Tenant: r.Tenant,
	}
}

// From returns t, to be used from due on.
func (t Ticket) From(due time.Time) Ticket {
	t.Due = due
	return t
}

// Record is the short name of its record in logs and metrics.
func (t Ticket) Record() string { return redact.Record(t.PK) }

// TicketQueue keeps tickets until they are due. It is safe for concurrent use.
//
// It may give a ticket back more than once, late, or a little early: what is
// done with one is safe to do twice, and whoever gets it looks at Due.
type TicketQueue interface {
	// Put adds tickets and says what became of each: nil if all were added, else
	// one error for each, nil for those that were.
	Put(ctx context.Context, tickets []Ticket) []error
}

var (
	// ErrMoved matches errors from a [Ticket] that is out of date: somebody has
	// written the record since, so there is nothing to do for its bearer.
	ErrMoved = errors.New("the record has moved on")
	// ErrNotMine matches errors from a [Ticket] of another handler's operation, or
	// of another tenant's: nothing was changed, and the ticket is still good.
	ErrNotMine = errors.New("the operation is another handler's")
)
