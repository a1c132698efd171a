package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// TicketFor returns a ticket for the current version of r, due at once.
func TicketFor(r *store.Record) jobs.Ticket {
	return jobs.Ticket{
		PK: r.PK, Operation: r.ID, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Function: r.Handler.Function, Tenant: r.Tenant,
	}
}

// Refusal is the reason why the bearer of a ticket must not take a record over.
type Refusal int

// The refusals.
const (
	Good         Refusal = iota // the take-over is allowed
	Moved                       // the record has been written since the ticket was made, has expired, or is gone
	Held                        // the lease has not ended
	OtherHandler                // the record belongs to another handler
	OtherTenant                 // the operation was invoked for another tenant
	NoRequest                   // the request isn't stored, or the record may expire
)

// Fits decides whether a ticket with owner and ver fits the current record rec:
// Good, Moved or Held.
func Fits(rec *store.Record, owner string, ver int64, now time.Time) Refusal {
	switch {
	case rec == nil || rec.Owner != owner || rec.Ver != ver || rec.State != store.Open || Free(rec, now):
		return Moved
	case rec.Lease.After(now):
		return Held
	}
	return Good
}

// MayTake decides whether t may take rec over. MayTake checks owner and version first,
// because only a bearer that knows them may learn other facts about the record.
func MayTake(rec *store.Record, t store.Take) Refusal {
	why := Fits(rec, t.Owner, t.Ver, t.Now)
	switch {
	case why != Good:
		return why
	case !slices.Contains(t.Handlers, rec.Handler):
		return OtherHandler
	case rec.Tenant != t.Tenant:
		return OtherTenant
	case rec.Input == nil || !rec.Expires.IsZero():
		return NoRequest
	}
	return Good
}

// WithFrom returns t with From set. From returns the record that the take-over writes, or nil if
// MayTake refuses.
func WithFrom(t store.Take) store.Take {
	t.From = func(rec *store.Record) *store.Record {
		if MayTake(rec, t) != Good {
			return nil
		}
		r := TakenUp(rec, t.Now, t.Lease, t.Retention)
		Stamp(r, rec, t.NewOwner)
		return r
	}
	return t
}
