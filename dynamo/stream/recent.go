package stream

import "sync"

// recent remembers the last delivered jobs. If a batch comes again to the same
// process because of a failed job, the other jobs are not delivered a second time.
// Correctness does not need it.
type recent struct {
	mu   sync.Mutex
	set  map[string]bool
	ring []string
	next int
}

const recentJobs = 4096

func (r *recent) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set[id]
}

func (r *recent) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.set[id]:
		return
	case r.set == nil:
		r.set = make(map[string]bool, recentJobs)
	}
	if len(r.ring) < recentJobs {
		r.ring = append(r.ring, id)
	} else {
		delete(r.set, r.ring[r.next])
		r.ring[r.next] = id
		r.next = (r.next + 1) % recentJobs
	}
	r.set[id] = true
}
