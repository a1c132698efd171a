package stream

import (
	"sync"

	"github.com/samekey/samekey/internal/base/lru"
)

// recent remembers the last delivered jobs. If the process gets a batch again because of a failed
// job, the other jobs are not delivered a second time. Without recent, delivery would still be
// correct.
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
