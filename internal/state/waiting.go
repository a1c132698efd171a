package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Wait says what people must decide about a record, and at which point the operation stopped. The
// zero Wait means that the record doesn't wait for people. A Wait holds no data of the request.
type Wait struct {
	Reason Reason
	Phase  string // the recovery point, or the call with the unknown outcome; "" for a parked job
	Job    string // the first parked job by name, if Reason is ReasonParked
	Kind   string // the kind of Job
	Failed string // why Job was parked
	Tries  int    // the number of failed deliveries of Job
}

// OfJobs reports whether the record is neither stuck nor blocked. Such a record waits
// for people only if it has a parked job.
func (w Wait) OfJobs() bool { return w.Reason == NoReason || w.Reason == ReasonParked }

// WaitOf returns the wait of a record. It looks neither at the time nor at the lease, so only a
// write of the record can begin or end a wait.
func WaitOf(r *store.Record) (w Wait) {
	switch {
	case r.State == store.Stuck && begunOrInDoubt(r):
		w.Reason = ReasonUnknown
	case r.State == store.Stuck:
		w.Reason = ReasonStuck
	case r.State == store.Open && r.Blocked:
		w.Reason = ReasonBlocked
	default:
		return parked(r)
	}
	if n := len(r.Phases); n > 0 {
		w.Phase = r.Phases[n-1].Name
	}
	return w
}

func begunOrInDoubt(r *store.Record) bool {
	n := len(r.Phases)
	return len(r.Doubts) > 0 || n > 0 && r.Phases[n-1].Intent
}

func parked(r *store.Record) (w Wait) {
	for name, job := range r.Jobs {
		if job.Failed != "" && (w.Job == "" || name < w.Job) {
			w = Wait{Reason: ReasonParked, Job: name, Kind: job.Kind, Failed: job.Failed, Tries: job.Tries}
		}
	}
	return w
}

// WaitFrom updates r.WaitSince. If r begins to wait, the field gets the time now. If r was waiting
// already, the field keeps its time. If r doesn't wait, the field becomes zero.
func WaitFrom(r *store.Record, now time.Time) {
	switch {
	case WaitOf(r).Reason == NoReason:
		r.WaitSince = time.Time{}
	case r.WaitSince.IsZero():
		r.WaitSince = Millis(now)
	}
}
