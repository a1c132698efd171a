package model

import (
	"hash/maphash"
	"slices"
)

// outcome is what exploring a configuration has shown.
type outcome struct {
	states   int
	depth    int // steps of the longest of the shortest schedules
	broken   Invariant
	schedule []Step // the shortest schedule that breaks it
}

// parent is how a state was reached first: by which step of which state.
type parent struct {
	from int32
	nth  uint16
}

// explore visits every state that m can reach, breadth-first, and stops at the first
// that breaks an invariant. A visited state is remembered by a hash of 64 bits: two
// of ten million states have the same with a probability below one in 300,000.
func explore(m *Model) outcome {
	start := m.start()
	seed := maphash.MakeSeed()
	seen := newSet(1 << 12)
	seen.add(maphash.Comparable(seed, start))
	parents := []parent{{from: -1}}
	type reached struct {
		w  world
		id int32
	}
	level := []reached{{w: start}}
	var out outcome
	for ; len(level) > 0 && out.broken == Holds; out.depth++ {
		var next []reached
		for _, at := range level {
			n := -1
			m.steps(at.w, func(_ Step, w world) {
				if n++; out.broken != Holds || !seen.add(maphash.Comparable(seed, w)) {
					return
				}
				id := int32(len(parents))
				parents = append(parents, parent{from: at.id, nth: uint16(n)})
				if out.broken = m.check(&w); out.broken != Holds {
					out.schedule = m.replay(start, parents, id)
					return
				}
				next = append(next, reached{w, id})
			})
			if out.broken != Holds {
				break
			}
		}
		level = next
	}
	out.states = len(parents)
	return out
}

// replay returns the steps that lead to a state.
func (m *Model) replay(start world, parents []parent, id int32) []Step {
	var nths []uint16
	for ; parents[id].from >= 0; id = parents[id].from {
		nths = append(nths, parents[id].nth)
	}
	slices.Reverse(nths)
	all := make([]Step, 0, len(nths))
	at := start
	for _, nth := range nths {
		n := -1
		from := at
		m.steps(from, func(s Step, w world) {
			if n++; n == int(nth) {
				all, at = append(all, s), w
			}
		})
	}
	return all
}

// set is a set of hashes, with open addressing: a map takes several times the room.
type set struct {
	slots []uint64
	n     int
}

func newSet(size int) *set { return &set{slots: make([]uint64, size)} }

// add adds h, and reports whether it was new.
func (s *set) add(h uint64) bool {
	if h == 0 {
		h = 1
	}
	if 4*s.n >= 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, 2*len(old))
		for _, h := range old {
			if h != 0 {
				s.slots[s.slot(h)] = h
			}
		}
	}
	k := s.slot(h)
	if s.slots[k] == h {
		return false
	}
	s.slots[k] = h
	s.n++
	return true
}

// slot finds the place of h: where it is, or where it belongs.
func (s *set) slot(h uint64) int {
	mask := len(s.slots) - 1
	k := int(h) & mask
	for s.slots[k] != 0 && s.slots[k] != h {
		k = (k + 1) & mask
	}
	return k
}
