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

// Add counts one more unnamed handler in a group, such as a namespace, and returns the group's new
// count on this store. The parameter among names the group.
func (h *Handlers) Add(among string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = make(map[string]int)
	}
	h.n[among]++
	return h.n[among]
}
