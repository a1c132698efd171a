package stream

import (
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Entry is a line in the list of what waits for people. It contains no idempotency key, no body and
// no data of the caller.
type Entry struct {
	Reason state.Reason `json:"reason"`
	PK     string       `json:"pk"`     // identifies the record for [Redrive] and for the engine's Settle
	Record string       `json:"record"` // the record's short name in logs
	ID     string       `json:"id,omitempty"`

	Function string `json:"function,omitempty"` // function that completes the operation
	Handler  string `json:"handler,omitempty"`  // handler in that function

	Route   string    `json:"route,omitempty"`
	Phase   string    `json:"phase,omitempty"` // the recovery point
	Tries   int       `json:"tries,omitempty"` // the completer's tries; in an entry about a job, the job's failed deliveries
	LastErr string    `json:"last_err,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Run     time.Time `json:"run,omitzero"`   // when the most recent attempt began
	Since   time.Time `json:"since,omitzero"` // when the wait for people began; zero if unknown

	Job  string `json:"job,omitempty"`  // the job's name in the record
	Kind string `json:"kind,omitempty"` // the job's kind
}

// Age returns how long ago the most recent attempt began.
func (e Entry) Age(now time.Time) time.Duration { return now.Sub(e.Run) }

func entry(why state.Reason, r *store.Record) Entry {
	e := Entry{
		Reason: why, PK: r.PK, Record: redact.Record(r.PK), ID: r.ID, Route: r.Route, Tries: r.Tries, LastErr: r.LastErr,
		Created: r.Created, Run: r.Run, Since: r.WaitSince, Function: r.Handler.Function, Handler: r.Handler.Name,
	}
	if n := len(r.Phases); n > 0 {
		e.Phase = r.Phases[n-1].Name
	}
	return e
}

func jobEntry(why state.Reason, r *store.Record, name string) Entry {
	e, job := entry(why, r), r.Jobs[name]
	e.Job, e.Kind, e.Tries, e.LastErr = name, job.Kind, job.Tries, job.Failed
	return e
}
