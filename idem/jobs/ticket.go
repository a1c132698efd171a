package jobs

import (
	"errors"
	"time"

	"github.com/samekey/samekey/internal/base/redact"
)

// Ticket names the operation of a record. The receiver of a Ticket reads the record, and
// acts on the record's present contents. So a queue stores only PK, Operation, Jobs and
// Due. A Ticket contains nothing of the request, so a sender of tickets can't invent an
// identity.
//
// Owner and Ver are the record's owner and version when the record was read. If the record
// has been written since, a take-over or an operator's decision by this Ticket is refused.
// The JSON of a Ticket is sent to the function that takes the operation over. That function
// reads everything else from the record.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released reports whether the last attempt released the record. A wrong value only
	// costs a call, since the record itself decides.
	Released bool `json:"released,omitempty"`

	Operation string `json:"-"` // the operation's id
	// Jobs means that the Ticket asks a drain to deliver the jobs in the record. A Ticket
	// with Jobs takes no operation over.
	Jobs bool `json:"-"`

	Due      time.Time `json:"-"` // time before which the Ticket is not used
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
	// ErrNotMine matches errors from a [Ticket] for an operation of another handler or
	// another tenant. Nothing was changed.
	ErrNotMine = errors.New("the operation is another handler's")
)
