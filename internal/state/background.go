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

const maxBackOff = time.Hour

// Due returns when an operation, last seen at seen, may be taken up: after the
// end of its lease, and after the time in which its client may still come back.
func Due(r *store.Record, seen time.Time, grace time.Duration) time.Time {
	if r.Lease.After(seen) {
		seen = r.Lease
	}
	return seen.Add(BackOff(grace, r.Tries))
}

// BackOff returns grace, doubled with each try up to an hour. A longer grace is
// not changed.
func BackOff(grace time.Duration, tries int) time.Duration {
	wait := grace
	for range min(tries, 16) {
		wait = max(grace, min(2*wait, maxBackOff))
	}
	return wait
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
