package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Counts of two segments are added, and the older times count; what a pass has not seen yet
// counts as the last pass saw it.
func TestTallies(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	never := time.Time{}
	for name, tt := range map[string]struct{ a, b, want time.Time }{
		"none":            {never, never, never},
		"only the first":  {now, never, now},
		"only the second": {never, now, now},
		"the first":       {ago(1), now, ago(1)},
		"the second":      {now, ago(1), ago(1)},
	} {
		if got := earlier(tt.a, tt.b); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	one := tally{by: map[Reason]found{ReasonStuck: {2, ago(time.Hour)}, ReasonOpen: {3, ago(time.Minute)}, ReasonKept: {1, never}}, open: ago(time.Minute)}
	two := tally{by: map[Reason]found{ReasonStuck: {1, ago(2 * time.Hour)}, ReasonOpen: {4, ago(time.Second)}, ReasonParked: {1, now}}, open: ago(time.Hour)}
	sum := tally{by: map[Reason]found{ReasonStuck: {3, ago(2 * time.Hour)}, ReasonOpen: {7, ago(time.Minute)}, ReasonKept: {1, never}, ReasonParked: {1, now}}, open: ago(time.Hour)}
	if got := one.with(two); !cmp.Equal(got, sum, private) {
		t.Errorf("the sum (-want +got):\n%s", cmp.Diff(sum, got, private))
	}
	most := tally{by: map[Reason]found{ReasonStuck: {2, ago(time.Hour)}, ReasonOpen: {4, ago(time.Second)}, ReasonKept: {1, never}, ReasonParked: {1, now}}, open: ago(time.Hour)}
	if got := one.atLeast(two); !cmp.Equal(got, most, private) {
		t.Errorf("the most (-want +got):\n%s", cmp.Diff(most, got, private))
	}
	equal := tally{by: map[Reason]found{ReasonStuck: {2, now}}}
	if got := one.atLeast(equal).by[ReasonStuck].oldest; !got.Equal(ago(time.Hour)) {
		t.Errorf("of equal counts the last pass's is taken: %v", got)
	}
	var none tally
	none.add(Entry{Reason: ReasonStuck, Run: now})
	none.add(Entry{Reason: ReasonStuck, Run: ago(time.Minute)})
	if got := none.report(now); !cmp.Equal(got, map[Reason]Tally{ReasonStuck: {2, 60}}) {
		t.Errorf("reported %+v", got)
	}
	if len(one.by) != 3 || one.by[ReasonStuck].count != 2 {
		t.Errorf("a tally was changed: %+v", one)
	}
}

// Ages are whole seconds, and none for a time ahead.
func TestAges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		then time.Time
		want int64
	}{
		"never": {time.Time{}, 0}, "now": {now, 0}, "ahead": {now.Add(time.Hour), 0}, "almost two seconds ago": {now.Add(1 - 2*time.Second), 1}, "two seconds ago": {now.Add(-2 * time.Second), 2},
	} {
		if got := age(tt.then, now); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// The report of a run adds up what its pages came to.
func TestReportAddsUp(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &Report{}
	for i := range 2 {
		r.did(&Report{Delivered: 1, LetGo: 2, Queued: 3, MadeStuck: 4, Emptied: 5, Placed: 6})
		f := &findings{}
		f.leave(now.Add(time.Duration(i) * time.Hour))
		f.leave(now)
		r.leaves(f)
		r.list([]Entry{{PK: "a"}, {PK: "b"}}, 3)
	}
	r.leaves(&findings{})
	want := &Report{
		Delivered: 2, LetGo: 4, Queued: 6, MadeStuck: 8, Emptied: 10, Placed: 12, Young: 4, YoungUntil: now.Add(time.Hour),
		Entries: []Entry{{PK: "a"}, {PK: "b"}, {PK: "a"}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.list([]Entry{{PK: "c"}}, 2); len(r.Entries) != 3 {
		t.Errorf("%d entries", len(r.Entries))
	}
}
