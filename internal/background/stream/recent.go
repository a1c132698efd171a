package stream

import (
	"sync"

	"github.com/samekey/samekey/internal/base/lru"
)

// recent remembers the jobs that the process has most recently delivered. If a job
// fails, Lambda may send the batch again. Because of recent, the process then doesn't
// deliver the batch's other jobs a second time. recent may forget jobs, since a second
// delivery is allowed.
type recent struct {
	mu  sync.Mutex
	ids *lru.Map[string, struct{}]
}

const recentJobs = 4096

func (r *recent) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		return false
	}
	_, ok := r.ids.Get(id)
	return ok
}

func (r *recent) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = lru.New[string, struct{}](recentJobs)
	}
	r.ids.Put(id, struct{}{})
}
