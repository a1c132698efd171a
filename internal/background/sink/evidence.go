package sink

import (
	"sync"
	"time"
)

const (
	// trust is how long an accepted job counts as evidence that the sink is set up.
	trust = time.Minute
	// suspicion is how long a job stays the only suspect after its refusal, while the sink accepts
	// nothing. It is longer than the pause between two tries of a job, so that a job stays the
	// suspect if it is refused at each try.
	suspicion = 3 * time.Minute
)

// evidence is what earlier rounds in this process have shown about a sink. A round can have a
// single job, since a ticket delivers the jobs of one operation only. Such a round can't
// distinguish a bad job from a sink that refuses everything. The zero value means no evidence.
// evidence is safe for concurrent use.
type evidence struct {
	mu       sync.Mutex
	accepted time.Time // when the sink most recently accepted a job
	suspect  string    // the id of the job against which a refusal counted most recently
	refused  time.Time // when that refusal counted
}

// evidence.accepts notes that the sink accepted a job.
func (e *evidence) accepts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted = time.Now()
}

// evidence.suspects reports whether a refusal of unknown cause counts against the job with the id
// job, in a round in which the sink accepted nothing. The refusal doesn't count while another job
// is the suspect, unless the sink has just accepted a job (trust). If the refusal counts, its job
// becomes the suspect.
func (e *evidence) suspects(job string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if job != e.suspect && now.Sub(e.refused) < suspicion && now.Sub(e.accepted) >= trust {
		return false
	}
	e.suspect, e.refused = job, now
	return true
}
