// Package unnamed counts the unnamed handlers that share a store.
package unnamed

import "sync"

// Handlers counts a store's unnamed handlers, in all engines of a process. If there are two unnamed
// handlers, a ticket or a key could reach the wrong one. The zero value is ready to use, and safe
// for concurrent use.
type Handlers struct {
	mu sync.Mutex
	n  map[string]int
}

// Add adds a handler to the group among, such as a namespace, and returns the group's number of
// handlers on this store.
func (h *Handlers) Add(among string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = make(map[string]int)
	}
	h.n[among]++
	return h.n[among]
}
