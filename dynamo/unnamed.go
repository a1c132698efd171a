package dynamo

import "sync"

// unnamed counts handlers without a name, by what they are among.
type unnamed struct {
	mu sync.Mutex
	n  map[string]int
}

// AddUnnamed counts a handler without a name among others, such as those of a
// namespace, and returns how many there are on this store. It is for
// [idem.Engine.AddHandler] and [idem.Engine.AddOperation]: engines of one process
// share a store, and neither a ticket nor a key must reach another engine's handler.
func (s *Store) AddUnnamed(among string) int {
	s.unnamed.mu.Lock()
	defer s.unnamed.mu.Unlock()
	if s.unnamed.n == nil {
		s.unnamed.n = make(map[string]int)
	}
	s.unnamed.n[among]++
	return s.unnamed.n[among]
}
