package sink

import (
	"sync"
	"time"
)

const (
	// trust is how long an accepted job counts as evidence that the sink is set up.
	trust = time.Minute
	// suspicion is how long a job stays the only suspect after a refusal, while the sink accepts
	// nothing. suspicion is longer than the pause between two tries of a job.
	suspicion = 3 * time.Minute
)

// evidence is what earlier rounds in this process have shown about a sink. A ticket delivers the
// jobs of one operation only, so a single round can't distinguish a bad job from a sink that
// refuses everything. The zero value means no evidence. evidence is safe for concurrent use.
type evidence struct {
	mu       sync.Mutex
	accepted time.Time // the last accepted job
	suspect  string    // the job whose refusal counted last
	refused  time.Time // the suspect's last refusal
}

// evidence.accepts notes that the sink accepted a job.
func (e *evidence) accepts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted = time.Now()
}

// evidence.suspects reports whether a refusal of unknown cause counts against job. It is called if
// the round has no accepted job. The refusal doesn't count while another job is the suspect.
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
