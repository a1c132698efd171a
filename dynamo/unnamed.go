package dynamo

import "sync"

// unnamed counts handlers without a name, by namespace.
type unnamed struct {
	mu sync.Mutex
	n  map[string]int
}

// AddUnnamed counts a handler without a name of a namespace, and returns how many
// there are on this store. It is for [idem.Engine.AddHandler]: engines of one
// process share a store, and tickets must not reach another engine's handler.
func (s *Store) AddUnnamed(namespace string) int {
	s.unnamed.mu.Lock()
	defer s.unnamed.mu.Unlock()
	if s.unnamed.n == nil {
		s.unnamed.n = make(map[string]int)
	}
	s.unnamed.n[namespace]++
	return s.unnamed.n[namespace]
}
