package stream

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	n.at = []place{{done: true}, {done: true}}
	if n.begin(2, now); n.at[0].done || !n.began.Equal(now) {
		t.Errorf("the next pass begins with %+v", n)
	}
}

// What a pass has found counts alone once it is whole; until then as much as the last pass has
// found, at least.
func TestFoundByAPass(t *testing.T) {
	t.Parallel()
	stuck := func(n int) tally { return tally{by: map[Reason]found{ReasonStuck: {n, time.Time{}}}} }
	c := cursor{last: stuck(5), at: []place{{found: stuck(1)}, {found: stuck(2), done: true}}}
	if got := c.found().by[ReasonStuck].count; got != 5 {
		t.Errorf("under way: found %d, want 5", got)
	}
	c.at[0].done = true
	if got := c.found().by[ReasonStuck].count; got != 3 {
		t.Errorf("whole: found %d, want 3", got)
	}
	if c.at = c.at[:1]; c.coverage() != 1 {
		t.Errorf("one segment of one is %v of the table", c.coverage())
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

// places is a table in memory that notes how the place of a sweep is stored.
type places struct {
	restless
	left     time.Duration // for the last write
	ended    error
	eventual int // reads
}

func (p *places) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	deadline, _ := ctx.Deadline()
	p.left, p.ended = time.Until(deadline), ctx.Err()
	return p.restless.UpdateItem(ctx, in, opts...)
}

func (p *places) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if !aws.ToBool(in.ConsistentRead) {
		p.eventual++
	}
	return p.restless.GetItem(ctx, in, opts...)
}

// The place of a pass is stored after each 50 pages, over what this run has stored before; also
// as the time of the run ends.
func TestPlaceIsStoredNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &places{}
		p := &pass{now: time.Now, table: &item.Table{Access: db, Name: fakeTable}}
		p.begin(1, time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range int64(3*savePages - 1) {
			if !p.moved(ctx, 0, place{after: "k", seen: i + 1}) {
				t.Fatal("the pass is lost")
			}
		}
		stored, err := getCursor(t.Context(), *p.table, "")
		if err != nil || db.updates != 2 || stored.at[0].seen != 2*savePages || stored.ver != 2 || db.eventual != 0 {
			t.Errorf("stored %d times, last %+v after %d eventual reads, %v", db.updates, stored, db.eventual, err)
		}
		if db.left != 5*time.Second || db.ended != nil {
			t.Errorf("it has %v, %v", db.left, db.ended)
		}
		p.at[0].done = true
		p.save(ctx)
		if db.updates != 3 || p.passed.IsZero() || !p.began.Equal(stored.began) {
			t.Errorf("whole, it is stored %d times; passed at %v", db.updates, p.passed)
		}
		p.lost = true
		if p.save(ctx); db.updates != 3 {
			t.Error("a lost pass is stored")
		}
		if p.lost, p.table = false, nil; p.err != nil {
			t.Error(p.err)
		}
		p.save(ctx) // where nothing is stored
	})
}

// A pass that another sweep has ended is lost. What failed in it is stored with the other's, as
// far as the other lacks it.
func TestPassEndedByAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own, theirs []failure
		updates     int
		want        []failure
	}{
		"nothing has failed":             {nil, nil, 1, nil},
		"the other has failed":           {nil, []failure{{"b", 1}}, 1, []failure{{"b", 1}}},
		"both have failed":               {[]failure{{"a", 1}}, []failure{{"b", 1}}, 2, []failure{{"a", 1}, {"b", 1}}},
		"both, and another is meanwhile": {[]failure{{"a", 1}}, []failure{{"b", 1}}, 3, []failure{{"a", 1}, {"b", 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			p := &pass{now: time.Now, table: &item.Table{Access: db, Name: fakeTable}, tried: make(map[string]int64)}
			p.begin(1, time.Now())
			p.again = tt.own
			if _, err := putCursor(t.Context(), *p.table, "", cursor{ver: 1, passed: time.Now(), again: tt.theirs}); err != nil {
				t.Fatal(err)
			}
			db.updates = 0
			db.before = func() {
				if db.updates == 2 && tt.updates == 3 {
					db.edit(t, cursorPK(""), "SET ver = ver + :one", nil, item.Map{":one": new(item.Values).Num(1)})
				}
			}
			p.save(t.Context())
			stored, err := getCursor(t.Context(), *p.table, "")
			if err != nil || p.err != nil || !p.lost || db.updates != tt.updates || !p.began.IsZero() || !stored.began.IsZero() || !cmp.Equal(stored.again, tt.want, private) {
				t.Errorf("lost %v after %d updates; stored %+v, %v, %v", p.lost, db.updates, stored, err, p.err)
			}
		})
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
	later := c
	later.ver = 7
	if held, err := putCursor(t.Context(), table, "gone", later); err != nil || held == nil || held.ver != 0 {
		t.Errorf("stored over a place that is gone: %+v, %v", held, err)
	}
	for _, attribute := range []string{item.AttrVer, cursorBegan, cursorPassed, cursorBusy} { // as an earlier version has left them out
		it := maps.Clone(db.Items(fakeTable)[0])
		delete(it, attribute)
		if b := cursorOf(it); len(b.at) != 2 || len(b.again) != 1 || b.began.IsZero() != (attribute == cursorBegan) {
			t.Errorf("without %s: %+v", attribute, b)
		}
	}
	for list, parts := range map[string][]string{cursorAt: {placeAfter, placeSeen}, cursorAgain: {failurePK, failureRuns}} {
		for _, part := range parts {
			it := maps.Clone(db.Items(fakeTable)[0])
			one := maps.Clone(it[list].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberM).Value)
			delete(one, part)
			it[list] = &types.AttributeValueMemberL{Value: []item.Value{&types.AttributeValueMemberM{Value: one}}}
			if b := cursorOf(it); !b.began.IsZero() || b.at != nil || b.again != nil {
				t.Errorf("without %s in %s: %+v", part, list, b)
			}
		}
	}
	for _, attribute := range []string{cursorBegan, cursorPassed, cursorBusy, cursorLast, cursorOpen, cursorAt, cursorAgain} {
		it := maps.Clone(db.Items(fakeTable)[0])
		it[attribute] = new(item.Values).Str("broken")
		b := cursorOf(it)
		if b.ver != 2 || !b.began.IsZero() || b.at != nil || b.again != nil || b.last.by != nil || !b.last.open.IsZero() {
			t.Errorf("%s is broken: %+v", attribute, b)
		}
	}
}
