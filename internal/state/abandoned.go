package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Abandoned reports whether rec is open, its key is not free, and no attempt holds it.
func Abandoned(rec *store.Record, now time.Time) bool {
	return rec.State == store.Open && !rec.Lease.After(now) && !Free(rec, now)
}

// Completable reports whether an operation can be finished without its client.
func Completable(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// Unfinished reports whether work would be lost if the record expired. If an attempt freed
// the key, the record holds no such work, and the client got an error.
func Unfinished(r *store.Record) bool {
	return r.State == store.Stuck || r.State == store.Open && !Freed(r)
}

// LeftUntil returns the time until which an operation without a stored request is left to
// its client: one retention after the most recent attempt. Nobody else can continue the
// operation, since only the client's retry contains the request.
func LeftUntil(r *store.Record) time.Time { return r.Run.Add(r.Retention) }

// FoundBySweep returns the reason why a sweep reports an operation; NoReason if no sweep
// reports it. An open operation counts as abandoned once it is due, or if its lease is
// [Overheld]. The result since is the time at which the operation became due, or will be due.
func FoundBySweep(r *store.Record, now time.Time, grace time.Duration) (w Reason, since time.Time) {
	since = Due(r, r.Run, grace)
	overdue := now.After(since) || Overheld(r, now)
	switch {
	case r.State == store.Stuck:
		return WaitOf(r).Reason, since
	case r.State != store.Open || Freed(r):
		return NoReason, since
	case !overdue && r.Blocked: // no need to wait for the grace: the program refuses to continue the operation
		return ReasonBlocked, since
	case !overdue:
		return NoReason, since
	case r.Keep == store.KeepNothing:
		return ReasonExpiring, since
	case Completable(r):
		return ReasonOpen, since
	}
	return ReasonNoRequest, since
}

// maxHold is longer than any attempt can work.
const maxHold = 24 * time.Hour

// Overheld reports whether a lease ends so late that the attempt's clock must have been wrong. No
// ticket is made for such a lease: the sweep finds the operation.
func Overheld(r *store.Record, now time.Time) bool { return WrongClock(r.Lease, now) }

// WrongClock reports whether a lease ends so late that only a wrong clock can have set the end.
func WrongClock(end, now time.Time) bool { return end.Sub(now) > maxHold }

// KeepsRequest is how long the stored request of a stuck operation stays after the last work
// on the operation. If the record's retention is longer, the request stays for the retention.
// People should settle the operation within that time.
const KeepsRequest = 30 * 24 * time.Hour

// RequestOutlived reports whether a stuck operation has waited for a decision for so long that
// its stored request must be removed.
func RequestOutlived(r *store.Record, now time.Time) bool {
	return r.State == store.Stuck && r.Input != nil && now.Sub(r.Run) > max(r.Retention, KeepsRequest)
}

// Emptied returns a copy of the stuck record held, without its stored request. The facts that
// people need for a decision stay. If the operation continues later, the client's retry brings
// the request.
func Emptied(held *store.Record) *store.Record {
	r := *held
	r.Input = nil
	return &r
}
