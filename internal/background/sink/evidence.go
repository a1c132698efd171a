package sink

import (
	"sync"
	"time"
)

const (
	// trust is how long an accepted job counts as evidence that the sink is set up.
	trust = time.Minute
	// suspicion is how long a sink that accepts nothing has a single suspect: longer
	// than the pause between two tries of a job.
	suspicion = 3 * time.Minute
)

// evidence is the knowledge about a sink from earlier rounds of this process. A ticket
// brings the jobs of one operation, so a single round can't tell a bad job from a sink
// that refuses everything. The zero value knows nothing. It is safe for concurrent use.
type evidence struct {
	mu       sync.Mutex
	accepted time.Time // the last accepted job
	suspect  string    // the job whose refusal counted last
	refused  time.Time // its last refusal
}

// accepts notes that the sink accepted a job.
func (e *evidence) accepts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted = time.Now()
}

// suspects reports whether a refusal of unknown cause counts against job, in a round without an
// accepted job. The refusal doesn't count while another job is the suspect.
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
