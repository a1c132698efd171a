package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Completable reports whether an operation can be finished without its client.
func Completable(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// Unfinished reports whether an operation would be forgotten undone. A released
// operation whose key was free is not unfinished: its client was told.
func Unfinished(r *store.Record) bool {
	return r.State == store.Stuck || r.State == store.Open && !Freed(r)
}

// Pending reports whether a job waits for its delivery; a parked job doesn't. r
// may be nil.
func Pending(r *store.Record, name string) bool {
	if r == nil {
		return false
	}
	job, there := r.Jobs[name]
	return there && job.Failed == ""
}

// Later reports whether a job waits for its time.
func Later(j store.Job, now time.Time) bool { return j.At.After(now) }

// MayCancel reports whether a person may cancel a job: it has a time, and no drain has begun to
// deliver it. No clock is asked: a job whose time is over waits too, as while the worker is off.
func MayCancel(r *store.Record, name string) bool {
	j := r.Jobs[name]
	return Pending(r, name) && !j.At.IsZero() && j.Begun.IsZero()
}

// Cancellable returns the jobs, of the named or of all, that a person may cancel, in the order of
// their names.
func Cancellable(r *store.Record, names []string) (all []string) {
	for name := range r.Jobs {
		if MayCancel(r, name) && (len(names) == 0 || slices.Contains(names, name)) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// LastJobs reports whether names are all jobs of a finished record: once they are
// delivered, the record need not be kept.
func LastJobs(r *store.Record, names []string) bool {
	if r.State != store.Done || len(r.Jobs) != len(names) {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := r.Jobs[name]; return !ok })
}

// KeptForNothing reports whether a finished record is kept for jobs but has none
// left: the record can be let go.
func KeptForNothing(r *store.Record) bool {
	return r.State == store.Done && r.Keep == store.KeepJobs && len(r.Jobs) == 0
}

// maxHold is longer than any attempt works.
const maxHold = 24 * time.Hour

// Overheld reports whether a lease ends so late that the clock of its attempt was
// wrong. Such a lease makes no ticket: the sweep finds its operation.
func Overheld(r *store.Record, now time.Time) bool { return WrongClock(r.Lease, now) }

// WrongClock reports whether nobody can have set this end of a lease by a right clock.
func WrongClock(end, now time.Time) bool { return end.Sub(now) > maxHold }

// Waits judges an operation as a sweep does: an open operation is abandoned once it is
// due, or overheld. since is when it became due.
func Waits(r *store.Record, now time.Time, grace time.Duration) (w Reason, since time.Time) {
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
