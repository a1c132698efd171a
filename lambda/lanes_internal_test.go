package lambda

import (
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
)

// Records of a group or of a key have a lane; those of neither have one each.
func TestLanes(t *testing.T) {
	t.Parallel()
	one := func(group, scope, key string) *task {
		return &task{group: group, req: idem.Request{Scope: scope, Key: key}}
	}
	got := lanesOf([]*task{
		one("g", "", "k"), one("", "", "k"), one("g", "", "other"), one("", "", "k"), one("", "s", "k"), one("", "", ""), one("", "", ""), one("h", "", ""), one("h", "", ""),
	})
	want := [][]int{{0, 2}, {1, 3}, {4}, {5}, {6}, {7, 8}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("lanes %v, want %v", got, want)
	}
}

// A worker knows how many records wait behind its lane, and how many of them in one lane.
func TestLanesThatWait(t *testing.T) {
	t.Parallel()
	c := &course[int, int, int]{h: &EachHandler[int, int, int]{batch: Batch[int, int, int]{Concurrency: 1}}}
	first := c.queue([][]int{{0}, {1, 2}, {3, 4, 5}, {6}})
	if len(first) != 1 || c.workers != 1 {
		t.Errorf("%d workers have %v", c.workers, first)
	}
	want := []turn{{1, 6, 3, 1}, {2, 4, 3, 1}, {3, 1, 1, 1}, {1, 0, 0, 1}}
	got := []turn{c.turn(first[0])}
	for lane, next := c.next(); lane != nil; lane, next = c.next() {
		got = append(got, next)
	}
	if !slices.Equal(got, want) {
		t.Errorf("turns %+v, want %+v", got, want)
	}
}
