package sink

import (
	"sync"
	"time"
)

const (
	// trust is how long an accepted job counts as evidence that the sink is set up.
	trust = time.Minute
	// suspicion is how long a job stays the only suspect after a refusal that counted,
	// while the sink accepts nothing. suspicion is longer than the pause between two
	// tries of a job, so that a job that is refused at each try stays the suspect.
	suspicion = 3 * time.Minute
)

// evidence is what earlier rounds in this process have shown about a sink. It is for
// rounds with a single job: such a round alone can't distinguish a bad job from a sink
// that refuses everything. The zero value means no evidence. evidence is safe for
// concurrent use.
type evidence struct {
	mu       sync.Mutex
	accepted time.Time // when the sink most recently accepted a job
	suspect  string    // the id of the job for which suspects returned true most recently
	refused  time.Time // when suspects most recently returned true
}

// evidence.accepts notes that the sink accepted a job.
func (e *evidence) accepts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted = time.Now()
}

// evidence.suspects reports whether a refusal of unknown cause counts against the job
// with the id job. Call suspects only if the sink accepted nothing in the round. The
// refusal doesn't count while another job is the suspect, unless the sink has just
// accepted a job (trust). If the refusal counts, its job becomes the suspect.
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
