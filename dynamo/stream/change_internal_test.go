package stream

import (
	"testing"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// People free an operation by a decision that ends the lease of its attempt.
func TestFreed(t *testing.T) {
	t.Parallel()
	lease := time.Now()
	first, second := store.Decision{By: "jane", What: "retry", At: lease}, store.Decision{By: "joe", What: "retry", At: lease.Add(time.Second)}
	rec := func(lease time.Time, settled ...store.Decision) *store.Record {
		return &store.Record{ID: "a", Lease: lease, Settled: settled}
	}
	other := rec(lease)
	other.ID = "b"
	for name, tt := range map[string]struct {
		old, new *store.Record
		want     bool
	}{
		"a decision ends the lease":       {rec(lease), rec(time.Time{}, first), true},
		"another decision ends the lease": {rec(lease, first), rec(time.Time{}, first, second), true},
		"the attempt gives it back":       {rec(lease), rec(time.Time{}), false},
		"it gives it back, after one":     {rec(lease, first), rec(time.Time{}, first), false},
		"there was no lease":              {rec(time.Time{}), rec(time.Time{}, first), false},
		"the lease goes on":               {rec(lease), rec(lease, first), false},
		"it is new":                       {nil, rec(time.Time{}, first), false},
		"another operation's":             {other, rec(time.Time{}, first), false},
	} {
		if got := (&change{old: tt.old, new: tt.new}).freed(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A part of a batch has as many records as there is room for, and one at least.
func TestPartOfABatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sizes    []int
		from, to int
	}{
		"all of them":           {[]int{1, 1, 1}, 0, 3},
		"from one on":           {[]int{mostAtOnce, 1, 1}, 1, 3},
		"as many as fit":        {[]int{mostAtOnce - 2, 1, 1, 1}, 0, 3},
		"one that is too large": {[]int{2 * mostAtOnce, 1}, 0, 1},
		"before one like that":  {[]int{1, 2 * mostAtOnce}, 0, 1},
		"the last":              {[]int{1, 1}, 1, 2},
	} {
		b := batch{n: len(tt.sizes), size: func(i int) int { return tt.sizes[i] }}
		if got := b.part(tt.from); got != tt.to {
			t.Errorf("%s: to %d, want %d", name, got, tt.to)
		}
	}
}
