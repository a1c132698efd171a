package jobs

import (
	"errors"
	"time"

	"github.com/samekey/samekey/internal/base/redact"
)

// Ticket names an operation and its record. The receiver of a Ticket reads the record,
// and acts on what the record then contains. So a Ticket in a queue has only PK,
// Operation, Jobs and Due. A Ticket contains nothing of the request. So nobody can send
// a Ticket that makes an operation run under an invented identity.
//
// Owner and Ver are the record's owner and version when the Ticket was made. If the
// record has been written since then, the Ticket permits no take-over and no operator's
// decision. The JSON of a Ticket is sent to the function that takes the operation over.
// That function reads everything else from the record.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released reports whether the last attempt released the record. A wrong value
	// costs one more call to the store, but has no other effect, since the record
	// itself is checked.
	Released bool `json:"released,omitempty"`

	Operation string `json:"-"` // the operation's id
	// Jobs means that the Ticket asks a drain to deliver the jobs in the record. If Jobs is
	// set, the operation isn't taken over.
	Jobs bool `json:"-"`

	Due      time.Time `json:"-"` // the Ticket must not be used before this time
	Function string    `json:"-"` // the record's Handler.Function
	Tenant   string    `json:"-"` // the record's Tenant
}

// From returns a copy of t with the given Due.
func (t Ticket) From(due time.Time) Ticket {
	t.Due = due
	return t
}

// Record returns the short name of the ticket's record in logs and metrics.
func (t Ticket) Record() string { return redact.Record(t.PK) }

var (
	// ErrMoved matches errors from a [Ticket] or an operator's decision that doesn't
	// fit the record. Usually the record has been written since it was read.
	ErrMoved = errors.New("the record has moved on")
	// ErrNotMine matches errors from a [Ticket] for an operation of another handler or
	// another tenant. Nothing was changed.
	ErrNotMine = errors.New("the operation is another handler's")
)
