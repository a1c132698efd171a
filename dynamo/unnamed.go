package dynamo

import "sync"

// unnamed counts handlers without a name, by group.
type unnamed struct {
	mu sync.Mutex
	n  map[string]int
}

// AddUnnamed counts a handler without a name in a group, such as a namespace, and
// returns the group's number of handlers on this store. [idem.Engine.AddHandler] and
// [idem.Engine.AddOperation] use it: engines of a process share a store, and neither
// a ticket nor a key must reach another engine's handler.
func (s *Store) AddUnnamed(among string) int {
	s.unnamed.mu.Lock()
	defer s.unnamed.mu.Unlock()
	if s.unnamed.n == nil {
		s.unnamed.n = make(map[string]int)
	}
	s.unnamed.n[among]++
	return s.unnamed.n[among]
}
