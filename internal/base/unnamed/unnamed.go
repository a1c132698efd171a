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

// Add counts one more unnamed handler in the group that among names, and returns the
// group's new count. A group is, for example, a namespace.
func (h *Handlers) Add(among string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = make(map[string]int)
	}
	h.n[among]++
	return h.n[among]
}
