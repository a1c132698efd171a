package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

var private = cmp.AllowUnexported(cursor{}, place{}, tally{}, found{}, failure{})

// Of two sweeps in a segment the one counts that has come further; what was done is done.
func TestFurther(t *testing.T) {
	t.Parallel()
	const a, b = "a", "b"
	for name, tt := range map[string]struct {
		a, b place
		want string
	}{
		"the first has seen more":  {place{after: a, seen: 2}, place{after: b, seen: 1}, a},
		"the second has seen more": {place{after: a, seen: 1}, place{after: b, seen: 2}, b},
		"both have seen the same":  {place{after: a, seen: 1}, place{after: b, seen: 1}, b},
		"the first is done":        {place{after: a, seen: 1, done: true}, place{after: b, seen: 2}, a},
		"the second is done":       {place{after: a, seen: 2}, place{after: b, seen: 1, done: true}, b},
		"both are done":            {place{after: a, seen: 1, done: true}, place{after: b, seen: 2, done: true}, a},
	} {
		if got := further(tt.a, tt.b).after; got != tt.want {
			t.Errorf("%s: %s counts, want %s", name, got, tt.want)
		}
	}
}

// A pass goes on where it is, unless it has another number of segments; it is whole when all
// are done, and the next one begins anew.
func TestPassGoesOn(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_001)
	c := cursor{again: []failure{{"a", 1}}}
	if c.whole() || c.coverage() != 0 {
		t.Error("a pass without segments is whole")
	}
	c.begin(4, now.Add(time.Microsecond))
	if !c.began.Equal(now) || len(c.at) != 4 {
		t.Errorf("began %v with %d segments", c.began, len(c.at))
	}
	c.at[1].done = true
	c.begin(4, now.Add(time.Hour))
	if !c.began.Equal(now) || c.coverage() != 0.25 || c.whole() {
		t.Errorf("goes on from %v, with %v of the table", c.began, c.coverage())
	}
	if n := c.next(now); n.ver != 1 || !n.began.Equal(now) || len(n.at) != 4 || !n.passed.IsZero() {
		t.Errorf("stored as %+v", n)
	}
	c.begin(2, now.Add(time.Hour))
	if !c.began.Equal(now) || len(c.at) != 2 || c.coverage() != 0 {
		t.Errorf("with other segments: %+v", c)
	}
	c.at[0].done, c.at[1].done = true, true
	c.at[0].found.add(Entry{Reason: ReasonStuck, Run: now})
	n := c.next(now.Add(time.Hour + time.Microsecond))
	if !c.whole() || n.ver != 1 || !n.began.IsZero() || n.at != nil || !n.passed.Equal(now.Add(time.Hour)) || n.last.by[ReasonStuck].count != 1 || len(n.again) != 1 {
		t.Errorf("whole, it is stored as %+v", n)
	}
	n.at = make([]place, 2)
	if n.begin(2, now); n.at[0].done || !n.began.Equal(now) {
		t.Errorf("the next pass begins with %+v", n)
	}
}

// Another sweep's progress in the same pass is merged, segment by segment; its other pass stands.
func TestJoinedPass(t *testing.T) {
	t.Parallel()
	now := time.Now()
	own := func() cursor {
		return cursor{ver: 1, began: now, at: []place{{after: "own", seen: 5}, {after: "own", seen: 1}}, again: []failure{{"own", 1}}}
	}
	theirs := cursor{ver: 3, began: now, passed: now.Add(-time.Hour), last: tally{open: now}, at: []place{{after: "their", seen: 2}, {after: "their", seen: 2}}, again: []failure{{"their", 1}}}
	c := own()
	want := cursor{ver: 3, began: now, passed: theirs.passed, last: theirs.last, at: []place{{after: "own", seen: 5}, {after: "their", seen: 2}}, again: own().again}
	if ok := c.join(theirs); !ok || !cmp.Equal(c, want, private) {
		t.Errorf("joined %v:\n%s", ok, cmp.Diff(want, c, private))
	}
	for name, other := range map[string]cursor{
		"another pass":      {ver: 3, began: now.Add(time.Second), at: make([]place, 2)},
		"none is under way": {ver: 3},
		"other segments":    {ver: 3, began: now, at: make([]place, 3)},
	} {
		c := own()
		if ok := c.join(other); ok || !cmp.Equal(c, other, private) {
			t.Errorf("%s: joined %v: %+v", name, ok, c)
		}
	}
}

// A pass is overdue if none has come to its end for longer than the limit; without any, since
// the first began.
func TestOverduePass(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		c    cursor
		want bool
	}{
		"before the first":               {cursor{}, false},
		"the first, in time":             {cursor{began: ago(time.Hour)}, false},
		"the first, late":                {cursor{began: ago(time.Hour + 1)}, true},
		"the last ended in time":         {cursor{began: ago(2 * time.Hour), passed: ago(time.Hour)}, false},
		"the last ended too long ago":    {cursor{passed: ago(2 * time.Hour)}, true},
		"it did, and the next has begun": {cursor{began: ago(time.Minute), passed: ago(2 * time.Hour)}, true},
	} {
		if got := tt.c.overdue(now, time.Hour); got != tt.want {
			t.Errorf("%s: overdue %v, want %v", name, got, tt.want)
		}
	}
}

// A pass that another sweep has ended goes on nowhere.
func TestLostPassEnds(t *testing.T) {
	t.Parallel()
	p := &pass{cursor: cursor{at: []place{{after: "a", seen: 1}}}}
	if got := p.place(0); got.after != "a" || got.done {
		t.Errorf("goes on from %+v", got)
	}
	if !p.moved(t.Context(), 0, place{after: "b", seen: 2}) || p.at[0].after != "b" {
		t.Errorf("moved to %+v", p.at)
	}
	p.lost = true
	if got := p.place(0); !got.done {
		t.Errorf("lost, it goes on from %+v", got)
	}
	if p.moved(t.Context(), 0, place{after: "c", seen: 3}) || p.at[0].after != "b" {
		t.Errorf("lost, it moved to %+v", p.at)
	}
}

// A cursor comes back as it was stored; a broken one begins a new pass, over its version.
func TestStoredCursor(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(time.Now().UnixMilli())
	some := tally{by: map[Reason]found{ReasonStuck: {2, now}, ReasonOpen: {1, time.Time{}}}, open: now.Add(-time.Hour)}
	c := cursor{
		ver: 1, began: now, passed: now.Add(-time.Minute), busy: now.Add(time.Minute), last: some, again: []failure{{"a", 3}},
		at: []place{{after: "k", seen: 7, found: some}, {done: true, found: tally{by: map[Reason]found{}}}},
	}
	db := &fakedynamo.DB{}
	table := item.Table{Access: db, Name: fakeTable}
	if held, err := putCursor(t.Context(), table, "n", c); held != nil || err != nil {
		t.Fatal(held, err)
	}
	got, err := getCursor(t.Context(), table, "n")
	if err != nil || !cmp.Equal(got, c, private) {
		t.Errorf("%v, -stored +read:\n%s", err, cmp.Diff(c, got, private))
	}
	if other, err := getCursor(t.Context(), table, "another"); err != nil || other.ver != 0 || !other.began.IsZero() {
		t.Errorf("another sweep's: %+v, %v", other, err)
	}
	if held, err := putCursor(t.Context(), table, "n", c); err != nil || held == nil || held.ver != 1 {
		t.Errorf("stored over another's: %+v, %v", held, err)
	}
	next := c
	next.ver = 2
	if held, err := putCursor(t.Context(), table, "n", next); held != nil || err != nil {
		t.Errorf("not stored over its predecessor: %+v, %v", held, err)
	}
	for _, attribute := range []string{cursorBegan, cursorPassed, cursorBusy, cursorLast, cursorOpen, cursorAt, cursorAgain} {
		it := item.Map{}
		for name, v := range db.Items(fakeTable)[0] {
			it[name] = v
		}
		it[attribute] = new(item.Values).Str("broken")
		b := cursorOf(it)
		if b.ver != 2 || !b.began.IsZero() || b.at != nil || b.again != nil || b.last.by != nil || !b.last.open.IsZero() {
			t.Errorf("%s is broken: %+v", attribute, b)
		}
	}
}
