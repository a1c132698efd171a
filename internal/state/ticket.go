package state

import (
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// DefaultGrace is how long a completer leaves an operation to its client.
const DefaultGrace = 5 * time.Minute

// TicketFor returns a ticket for r as it is, due at once.
func TicketFor(r *store.Record) jobs.Ticket {
	return jobs.Ticket{
		PK: r.PK, Operation: r.ID, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero(), Function: r.Handler.Function, Tenant: r.Tenant,
	}
}

// JobID returns the id of a job: the same on every delivery, and different from
// all others. name is the job's key in store.Record.Jobs.
func JobID(operation, name string) string { return operation + "." + name }
