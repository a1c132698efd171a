// Package unnamed counts the handlers without a name that share a store.
package unnamed

import "sync"

// Handlers is a part of a store: engines of a process share it, and neither a ticket nor
// a key must reach another engine's handler. The zero value is ready to use, from several
// goroutines at once.
type Handlers struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts a handler in a group, such as a namespace, and returns the group's number
// of handlers on this store.
func (h *Handlers) Add(among string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = make(map[string]int)
	}
	h.n[among]++
	return h.n[among]
}
