package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Abandoned reports whether rec is open and no attempt holds it.
func Abandoned(rec *store.Record, now time.Time) bool {
	return rec.State == store.Open && !rec.Lease.After(now) && !Free(rec, now)
}

// Completable reports whether an operation can be finished without its client.
func Completable(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// Unfinished reports whether an operation would be forgotten undone. A released
// operation whose key was free is not unfinished: its client was told.
func Unfinished(r *store.Record) bool {
	return r.State == store.Stuck || r.State == store.Open && !Freed(r)
}

// LeftUntil returns until when an operation without its request is left to its client,
// whose retry brings the request again: for one retention after the last attempt.
func LeftUntil(r *store.Record) time.Time { return r.Run.Add(r.Retention) }

// FoundBySweep judges an operation as a sweep does: an open operation is abandoned once it is
// due, or overheld. since is when it became due.
func FoundBySweep(r *store.Record, now time.Time, grace time.Duration) (w Reason, since time.Time) {
	since = Due(r, r.Run, grace)
	overdue := now.After(since) || Overheld(r, now)
	switch {
	case r.State == store.Stuck:
		return WaitOf(r).Reason, since
	case r.State != store.Open || Freed(r):
		return NoReason, since
	case !overdue && r.Blocked: // waiting doesn't help
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

// maxHold is longer than any attempt works.
const maxHold = 24 * time.Hour

// Overheld reports whether a lease ends so late that the clock of its attempt was
// wrong. Such a lease makes no ticket: the sweep finds its operation.
func Overheld(r *store.Record, now time.Time) bool { return WrongClock(r.Lease, now) }

// WrongClock reports whether nobody can have set this end of a lease by a right clock.
func WrongClock(end, now time.Time) bool { return end.Sub(now) > maxHold }

// KeepsRequest is for how long a stored request outlives the work on its operation, unless
// its key is remembered for longer: for longer than people should need to settle a stuck
// operation.
const KeepsRequest = 30 * 24 * time.Hour

// RequestOutlived reports whether nobody has decided about a stuck operation for so long
// that the contents of its request must go.
func RequestOutlived(r *store.Record, now time.Time) bool {
	return r.State == store.Stuck && r.Input != nil && now.Sub(r.Run) > max(r.Retention, KeepsRequest)
}

// Emptied returns held, which is stuck, without its stored request. Everything that
// people decide by stays, and its client's retry brings the request again.
func Emptied(held *store.Record) *store.Record {
	r := *held
	r.Input = nil
	return &r
}
