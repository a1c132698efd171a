package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Abandoned reports whether rec is open, its key is not free, and no attempt holds it.
func Abandoned(rec *store.Record, now time.Time) bool {
	return rec.State == store.Open && !rec.Lease.After(now) && !Free(rec, now)
}

// Completable reports whether an operation can be finished without its client: the
// record is open and kept, and the request is stored.
func Completable(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// Unfinished reports whether work would be lost if the record expired: the operation is
// stuck, or it is open and its key is not freed.
func Unfinished(r *store.Record) bool {
	return r.State == store.Stuck || r.State == store.Open && !Freed(r)
}

// LeftUntil returns the time until which an operation without a stored request is left
// to its client: one retention after r.Run. Until then only the client can continue the
// operation, because only the client's retry contains the request.
func LeftUntil(r *store.Record) time.Time { return r.Run.Add(r.Retention) }

// FoundBySweep returns the reason why a sweep reports an operation; NoReason if no
// sweep reports it. An open operation counts as abandoned once it is due, or if it is
// [Overheld]. The result since is the time from which the operation is [Due].
func FoundBySweep(r *store.Record, now time.Time, grace time.Duration) (w Reason, since time.Time) {
	since = Due(r, r.Run, grace)
	overdue := now.After(since) || Overheld(r, now)
	switch {
	case r.State == store.Stuck:
		return WaitOf(r).Reason, since
	case r.State != store.Open || Freed(r):
		return NoReason, since
	case !overdue && r.Blocked: // report it without the grace, because the program refuses to continue the operation
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

// Overheld reports whether r's lease was set by a wrong clock ([WrongClock]). No ticket
// is made for such an operation. Instead, the sweep reports it.
func Overheld(r *store.Record, now time.Time) bool { return WrongClock(r.Lease, now) }

// WrongClock reports whether the end of a lease is so far in the future that only a
// wrong clock can have set it.
func WrongClock(end, now time.Time) bool { return end.Sub(now) > maxHold }

// KeepsRequest is how long the stored request of a stuck operation stays after the last
// work on the operation. If the record's retention is longer, the request stays for the
// retention. People should settle the operation before the request is removed.
const KeepsRequest = 30 * 24 * time.Hour

// RequestOutlived reports whether the stored request of a stuck operation must be
// removed, because [KeepsRequest] and the retention are over.
func RequestOutlived(r *store.Record, now time.Time) bool {
	return r.State == store.Stuck && r.Input != nil && now.Sub(r.Run) > max(r.Retention, KeepsRequest)
}

// Emptied returns a copy of the record of a stuck operation, without the stored
// request. The facts that people need for a decision stay. If the operation continues
// later, the client's retry brings the request.
func Emptied(held *store.Record) *store.Record {
	r := *held
	r.Input = nil
	return &r
}
