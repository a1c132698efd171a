// Package lru has a map that forgets.
package lru

import "container/list"

// Map holds at most a number of entries: beyond it, it forgets those that were used least
// recently. So keys that strangers choose take no more memory than that. Make one with
// [New]. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	most   int
	entry  map[K]*list.Element // elements are pair[K, V]
	recent list.List
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty map of at most so many entries.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, entry: make(map[K]*list.Element)}
}

// Get returns the value of a key, which counts as used; the zero value if there is none.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	el := m.entry[k]
	if el == nil {
		return v, false
	}
	m.recent.MoveToFront(el)
	return el.Value.(pair[K, V]).value, true
}

// Put sets the value of a key, which counts as used.
func (m *Map[K, V]) Put(k K, v V) {
	m.Drop(k)
	m.entry[k] = m.recent.PushFront(pair[K, V]{k, v})
	if m.recent.Len() > m.most {
		m.Drop(m.recent.Back().Value.(pair[K, V]).key)
	}
}

// Drop forgets a key, if it is there.
func (m *Map[K, V]) Drop(k K) {
	if el := m.entry[k]; el != nil {
		m.recent.Remove(el)
		delete(m.entry, k)
	}
}

// Len is the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entry) }
