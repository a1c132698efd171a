// Package lru has a map that forgets the least recently used entries.
package lru

import "container/list"

// Map holds a limited number of entries, so that strangers who choose keys can't fill
// the memory. When a Map is full, a new entry replaces the least recently used entry.
// Make a Map with [New]. A Map is not safe for concurrent use.
type Map[K comparable, V any] struct {
	most   int
	entry  map[K]*list.Element // elements are pair[K, V]
	recent list.List
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty map. The parameter most is the largest number of entries.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, entry: make(map[K]*list.Element)}
}

// Get returns the value of a key and marks the key as used. If there is no value, ok is false.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	el := m.entry[k]
	if el == nil {
		return v, false
	}
	m.recent.MoveToFront(el)
	return el.Value.(pair[K, V]).value, true
}

// Put sets the value of a key and marks the key as used.
func (m *Map[K, V]) Put(k K, v V) {
	m.Drop(k)
	m.entry[k] = m.recent.PushFront(pair[K, V]{k, v})
	if m.recent.Len() > m.most {
		m.Drop(m.recent.Back().Value.(pair[K, V]).key)
	}
}

// Drop forgets a key.
func (m *Map[K, V]) Drop(k K) {
	if el := m.entry[k]; el != nil {
		m.recent.Remove(el)
		delete(m.entry, k)
	}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entry) }
