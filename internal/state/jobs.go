package state

import (
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// JobID returns the id of a job: unique, and the same on every delivery. name is the job's key
// in store.Record.Jobs.
func JobID(operation, name string) string { return operation + "." + name }

// Merged returns the jobs of both maps in one map. It changes neither a nor b.
func Merged(a, b map[string]store.Job) map[string]store.Job {
	if len(b) == 0 {
		return a
	}
	m := make(map[string]store.Job, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// Pending reports whether a job is undelivered and not parked. r may be nil.
func Pending(r *store.Record, name string) bool {
	if r == nil {
		return false
	}
	job, there := r.Jobs[name]
	return there && job.Failed == ""
}

// Later reports whether a job's time has not come yet.
func Later(j store.Job, now time.Time) bool { return j.At.After(now) }

// MayCancel reports whether a person may cancel a job: the job isn't parked, it has a
// time, and no drain has begun to deliver it. The job's time may have passed, for
// example while the worker is off.
func MayCancel(r *store.Record, name string) bool {
	j := r.Jobs[name]
	return Pending(r, name) && !j.At.IsZero() && j.Begun.IsZero()
}

// Cancellable returns the sorted names of the jobs that a person may cancel. It considers only the
// jobs in names, or all jobs if names is empty.
func Cancellable(r *store.Record, names []string) (all []string) {
	for name := range r.Jobs {
		if MayCancel(r, name) && (len(names) == 0 || slices.Contains(names, name)) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// LastJobs reports whether the record is finished, and names has exactly the record's
// jobs. Once these jobs are delivered, the record can be let go.
func LastJobs(r *store.Record, names []string) bool {
	if r.State != store.Done || len(r.Jobs) != len(names) {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := r.Jobs[name]; return !ok })
}

// NoJobsLeft reports whether a finished record is kept for jobs but has none
// left: the record can be let go.
func NoJobsLeft(r *store.Record) bool {
	return r.State == store.Done && r.Keep == store.KeepJobs && len(r.Jobs) == 0
}

// SameJobs reports whether two records have the same jobs, and the same jobs parked.
func SameJobs(a, b *store.Record) bool {
	return maps.EqualFunc(a.Jobs, b.Jobs, func(a, b store.Job) bool { return (a.Failed == "") == (b.Failed == "") })
}

// DropsJobs reports whether a commit frees the key and removes undelivered jobs. Only a
// commit that forgets the operation does so.
func DropsJobs(prev, next *store.Record) bool {
	return Freed(next) && len(next.Jobs) == 0 && len(prev.Jobs) > 0
}
