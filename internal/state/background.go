package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Completable reports whether an operation can be brought to an end without its
// client.
func Completable(r *store.Record) bool {
	return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil
}

// Unfinished reports whether an operation would be forgotten undone. An operation
// that was given back is not: its client was told, and the key was free.
func Unfinished(r *store.Record) bool {
	return r.State == store.Stuck || r.State == store.Open && !Freed(r)
}

const maxBackOff = time.Hour

// Due is when an operation, last seen at seen, may be taken up: not before its
// lease is over, and not while its client may still come back.
func Due(r *store.Record, seen time.Time, grace time.Duration) time.Time {
	if r.Lease.After(seen) {
		seen = r.Lease
	}
	return seen.Add(BackOff(grace, r.Tries))
}

// BackOff is grace, doubled with each try up to an hour. A longer grace stays as it is.
func BackOff(grace time.Duration, tries int) time.Duration {
	wait := grace
	for range min(tries, 16) {
		wait = max(grace, min(2*wait, maxBackOff))
	}
	return wait
}

// Pending reports whether a job waits to be delivered; a parked job doesn't. r may be
// nil.
func Pending(r *store.Record, name string) bool {
	if r == nil {
		return false
	}
	job, there := r.Jobs[name]
	return there && job.Failed == ""
}

// LastJobs reports whether names are all jobs of a finished record: once they are
// delivered, nothing keeps it.
func LastJobs(r *store.Record, names []string) bool {
	if r.State != store.Done || len(r.Jobs) != len(names) {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := r.Jobs[name]; return !ok })
}

// KeptForNothing reports whether a finished record is kept for jobs that it doesn't
// have any more: it can be let go.
func KeptForNothing(r *store.Record) bool {
	return r.State == store.Done && r.Keep == store.KeepJobs && len(r.Jobs) == 0
}
