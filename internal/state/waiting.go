package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Cause is why a record waits for people. Stores keep it, in the index of what waits.
type Cause string

// The causes. If a record has several, the first of them counts.
const (
	NoCause      Cause = ""
	CauseUnknown Cause = "unknown" // stuck, and a call that no phase records may have been made: people find out
	CauseStuck   Cause = "stuck"   // given up: people settle it
	CauseBlocked Cause = "blocked" // its program refuses to continue: people change the program, or settle it
	CauseParked  Cause = "parked"  // a job that can't be delivered: people redrive it
)

// Wait says which decision of people a record waits for, and where it stands; the
// zero Wait, for none. It holds no data of the request.
type Wait struct {
	Cause  Cause
	Phase  string // the recovery point, or the call with the unknown outcome; "" of a parked job
	Job    string // the first parked job, if Cause is CauseParked
	Kind   string // its kind
	Reason string // why it was parked
}

// OfJobs reports whether only the jobs of a record decide if it waits: it is neither
// stuck nor blocked.
func (w Wait) OfJobs() bool { return w.Cause == NoCause || w.Cause == CauseParked }

// WaitOf returns what a record waits for. Nothing but these facts of the record
// decides: neither time nor lease, so only a write begins or ends a wait.
func WaitOf(r *store.Record) (w Wait) {
	switch {
	case r.State == store.Stuck && begunOrInDoubt(r):
		w.Cause = CauseUnknown
	case r.State == store.Stuck:
		w.Cause = CauseStuck
	case r.State == store.Open && r.Blocked:
		w.Cause = CauseBlocked
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
			w = Wait{Cause: CauseParked, Job: name, Kind: job.Kind, Reason: job.Failed}
		}
	}
	return w
}

// WaitFrom sets since when r waits, if it does: from now on, unless it has waited
// before.
func WaitFrom(r *store.Record, now time.Time) {
	switch {
	case WaitOf(r).Cause == NoCause:
		r.WaitSince = time.Time{}
	case r.WaitSince.IsZero():
		r.WaitSince = Millis(now)
	}
}
