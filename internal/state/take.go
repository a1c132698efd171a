package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Taken returns held as it is taken over.
func Taken(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := Renewed(held, now, lease, retention)
	r.Run = Millis(now)
	if !held.Lease.IsZero() {
		// Its holder never came back to say what it had called.
		doubt(r, With(held.Doubts, store.AnyCall), doubtSince(held))
	}
	return r
}

// TakenByClient returns held as a retry of its client takes it over, with the
// retry's input, in the handler and for the tenant that serve it: these may have
// another name by now.
func TakenByClient(held *store.Record, now, lease time.Time, retention time.Duration, in *store.Input, by store.HandlerID, tenant string) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Input, r.Handler, r.Tenant = in, by, tenant
	return r
}

// TakenUp returns held as a completer or an operator takes it over. The try is
// counted in the take-over, so that a try which dies is counted too.
func TakenUp(held *store.Record, now, lease time.Time, retention time.Duration) *store.Record {
	r := Taken(held, now, lease, retention)
	r.Tries++
	return r
}

// Refusal is why a record must not be taken over by somebody who has a ticket.
type Refusal int

// The refusals.
const (
	Good         Refusal = iota // it may be taken over
	Moved                       // it is no longer what the ticket has seen
	Held                        // its lease is not over
	OtherHandler                // it is another handler's
	OtherTenant                 // it was invoked for another tenant
	NoRequest                   // its request isn't stored
)

// Fits decides about a ticket that has seen owner and ver, rec being the record as
// it is now: Good, Moved or Held.
func Fits(rec *store.Record, owner string, ver int64, now time.Time) Refusal {
	switch {
	case rec == nil || rec.Owner != owner || rec.Ver != ver || rec.State != store.Open || Over(rec.Expires, now):
		return Moved
	case rec.Lease.After(now):
		return Held
	}
	return Good
}

// MayTake decides about the take-over t of rec. Owner and version come first: they
// are no secret, while everything else that is said of a record is for those who know
// them.
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

// WithFrom returns t with its From.
func WithFrom(t store.Take) store.Take {
	t.From = func(rec *store.Record) *store.Record {
		if MayTake(rec, t) != Good {
			return nil
		}
		r := TakenUp(rec, t.Now, t.Lease, 0) // without an expiry, there is nothing to renew
		Stamp(r, rec, t.NewOwner)
		return r
	}
	return t
}

// Abandoned reports whether rec is open, and nobody holds it.
func Abandoned(rec *store.Record, now time.Time) bool {
	return rec.State == store.Open && !rec.Lease.After(now) && !Over(rec.Expires, now)
}

// LeftToClient reports whether an operation whose stored request is not there can
// wait for its client, whose retry brings it again: for as long after the last
// attempt as clients retry.
func LeftToClient(held *store.Record, now time.Time, retention time.Duration) bool {
	return now.Before(held.Run.Add(retention))
}
