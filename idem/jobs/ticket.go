package jobs

import (
	"errors"
	"time"

	"github.com/samekey/samekey/internal/base/redact"
)

// Ticket names an operation of a record. The user of a Ticket reads the record, and acts on
// what the record says then: a queue keeps only PK, Operation, Jobs and Due. A Ticket holds
// nothing of the request, so a sender of tickets can't invent an identity.
//
// Owner and Ver are the record's owner and version when it was read: a take-over or an
// operator's decision is refused if the record has been written since. The JSON of a Ticket
// is for the function that takes over, which gets everything else from the record.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released reports whether the attempt gave the record back. Released only saves
	// a call, since the record itself decides.
	Released bool `json:"released,omitempty"`

	Operation string `json:"-"` // the operation's id
	// Jobs makes the Ticket a ticket for a drain, for the jobs that wait in the record.
	// Such a ticket takes nothing over.
	Jobs bool `json:"-"`

	Due      time.Time `json:"-"` // not to be used before Due
	Function string    `json:"-"` // function of the record's Handler
	Tenant   string    `json:"-"` // tenant of the record
}

// From returns t with Due set to due.
func (t Ticket) From(due time.Time) Ticket {
	t.Due = due
	return t
}

// Record returns the short name of the ticket's record in logs and metrics.
func (t Ticket) Record() string { return redact.Record(t.PK) }

var (
	// ErrMoved matches errors from an outdated [Ticket]: the record has been written since
	// the Ticket was made.
	ErrMoved = errors.New("the record has moved on")
	// ErrNotMine matches errors from a [Ticket] of another handler's or another
	// tenant's operation: nothing was changed.
	ErrNotMine = errors.New("the operation is another handler's")
)
