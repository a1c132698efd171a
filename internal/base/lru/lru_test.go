package lru_test

import (
	"testing"

	"github.com/samekey/samekey/internal/base/lru"
)

func TestMapForgetsWhatWasUsedLeastRecently(t *testing.T) {
	t.Parallel()
	m := lru.New[string, int](2)
	m.Put("a", 1)
	m.Put("b", 2)
	m.Get("a")
	m.Put("c", 3)
	m.Put("a", 4)
	for k, want := range map[string]int{"a": 4, "b": 0, "c": 3} {
		if got, ok := m.Get(k); got != want || ok != (want > 0) {
			t.Errorf("%s: %d, %t; want %d", k, got, ok, want)
		}
	}
	m.Drop("a")
	m.Drop("none")
	if _, ok := m.Get("a"); ok || m.Len() != 1 {
		t.Errorf("a is there: %t; %d entries, want 1", ok, m.Len())
	}
	for i := range 1000 {
		m.Put(string(rune(i)), i)
	}
	if m.Len() != 2 {
		t.Errorf("%d entries, want 2", m.Len())
	}
}
