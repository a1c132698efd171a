package stream

import "sync"

// recent remembers the last jobs that were delivered. When a batch comes again
// because of one of them, the others are not delivered a second time, as long as
// it comes to the same process. Nothing rests on it.
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
