package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// What a sweep finds in a record, to the moment. Late is 15 minutes, and the grace is 5.
func TestFindingsOfARecord(t *testing.T) {
	t.Parallel()
	const late, grace = 15 * time.Minute, 5 * time.Minute
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	open := func(run time.Duration, mods ...func(*store.Record)) *store.Record {
		r := &store.Record{PK: "v1##a", ID: "a", State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Created: ago(run), Run: ago(run), Retention: 24 * time.Hour}
		for _, mod := range mods {
			mod(r)
		}
		return r
	}
	done := func(run time.Duration, jobs map[string]store.Job) *store.Record {
		return &store.Record{PK: "v1##a", ID: "a", State: store.Done, Keep: store.KeepJobs, Run: ago(run), Jobs: jobs}
	}
	blocked := func(r *store.Record) { r.Blocked = true }
	noRequest := func(r *store.Record) { r.Input = nil }
	stuck := func(r *store.Record) { r.State = store.Stuck }
	freed := func(r *store.Record) { r.Keep = store.KeepFreed }
	held := func(d time.Duration) func(*store.Record) { return func(r *store.Record) { r.Lease = now.Add(d) } }
	job := map[string]store.Job{"0.0": {}}
	at := func(d time.Duration) map[string]store.Job { return map[string]store.Job{"0.0": {At: ago(d)}} }
	type short struct {
		Entries               []state.Reason
		Jobs, LetGo           int
		Tickets, Stuck, Empty int
		Left                  int           // to the stream's readers
		Young                 time.Duration // until the last of those is late
		Open                  bool
	}
	for name, tt := range map[string]struct {
		r    *store.Record
		want short
	}{
		"in flight":                          {open(0, held(time.Minute)), short{Left: 1, Young: time.Minute + grace + late, Open: true}},
		"due":                                {open(grace), short{Left: 1, Young: late, Open: true}},
		"abandoned":                          {open(grace + 1), short{Entries: []state.Reason{state.ReasonOpen}, Left: 1, Young: late - 1, Open: true}},
		"for as long as the stream may take": {open(grace + late), short{Entries: []state.Reason{state.ReasonOpen}, Left: 1, Open: true}},
		"for longer":                         {open(grace + late + 1), short{Entries: []state.Reason{state.ReasonOpen}, Tickets: 1, Open: true}},
		"the program refuses to continue":    {open(grace+late+1, blocked), short{Entries: []state.Reason{state.ReasonBlocked}, Tickets: 1, Open: true}},
		"held by a clock that was wrong":     {open(grace+late+1, held(25*time.Hour)), short{Entries: []state.Reason{state.ReasonOpen}, Open: true}},
		"its request isn't stored":           {open(24*time.Hour, noRequest), short{Entries: []state.Reason{state.ReasonNoRequest}, Open: true}},
		"and its client will not come back":  {open(24*time.Hour+1, noRequest), short{Entries: []state.Reason{state.ReasonNoRequest}, Stuck: 1, Open: true}},
		"given back to its client":           {open(time.Hour, freed), short{}},
		"stuck":                              {open(30*24*time.Hour, stuck), short{Entries: []state.Reason{state.ReasonStuck}}},
		"stuck for 30 days":                  {open(30*24*time.Hour+1, stuck), short{Entries: []state.Reason{state.ReasonStuck}, Empty: 1}},
		"stuck for 30 days, without request": {open(30*24*time.Hour+1, stuck, noRequest), short{Entries: []state.Reason{state.ReasonStuck}}},
		"a job":                              {done(late, job), short{Left: 1}},
		"a job that the stream has missed":   {done(late+1, job), short{Entries: []state.Reason{state.ReasonUndelivered}, Jobs: 1}},
		"a job that waits for people":        {done(late+1, map[string]store.Job{"0.0": {Failed: "bad"}}), short{Entries: []state.Reason{state.ReasonParked}}},
		"a job to come":                      {done(time.Hour, at(-time.Minute)), short{}},
		"a job whose time has come":          {done(time.Hour, at(late)), short{Left: 1}},
		"a job whose time was missed":        {done(time.Hour, at(late+1)), short{Entries: []state.Reason{state.ReasonUndelivered}, Jobs: 1}},
		"a job that was late from the first": {done(time.Minute, at(time.Hour)), short{Left: 1, Young: late - time.Minute}},
		"no jobs left, as yet":               {done(late, nil), short{}},
		"no jobs left":                       {done(late+1, nil), short{Entries: []state.Reason{state.ReasonKept}, LetGo: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Sweep{opt: SweepOptions{Late: late, Grace: grace}}
			var f tasks
			s.examine(&f, tt.r, now)
			got := short{Left: f.young, Tickets: len(f.tickets), Stuck: len(f.stuck), Empty: len(f.emptied), Open: !f.oldestOpen.IsZero()}
			for _, e := range f.entries {
				got.Entries = append(got.Entries, e.Reason)
			}
			for _, td := range f.todos {
				if got.Jobs += len(td.jobs); td.letGo {
					got.LetGo++
				}
			}
			if f.young > 0 {
				got.Young = f.youngUntil.Sub(now)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(f.todos) != got.Jobs+got.LetGo {
				t.Errorf("%d todos, -want +got:\n%s", len(f.todos), diff)
			}
		})
	}
}

// What can't be carried out is an error, and its record is tried again, once however much of
// it has failed. The rest is done.
func TestActGoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	rec := func(pk string) *store.Record { return &store.Record{PK: pk, ID: pk, State: store.Open} }
	answers := map[string]error{"stuck fails": errBroken, "moved": jobs.ErrMoved, "at work": fmt.Errorf("x: %w", idem.ErrInFlight)}
	var queued, givenUp []string
	s := &Sweep{opt: SweepOptions{
		Queue: &ticketList{refuse: func(t jobs.Ticket) error {
			if t.PK == "refused" {
				return errBroken
			}
			return nil
		}},
		MarkStuck: func(_ context.Context, t jobs.Ticket, _ string) error { return answers[t.PK] },
		Hooks: Hooks{
			Queued:    func(_ context.Context, t jobs.Ticket) { queued = append(queued, t.PK) },
			MadeStuck: func(_ context.Context, e Entry) { givenUp = append(givenUp, e.PK+" "+string(e.Reason)) },
		},
	}}
	f := tasks{
		tickets: []jobs.Ticket{{PK: "refused"}, {PK: "queued"}},
		stuck:   []*store.Record{rec("stuck fails"), rec("moved"), rec("at work"), rec("stuck"), rec("refused")},
	}
	answers["refused"] = errBroken
	var rep Report
	failed, err := s.act(t.Context(), f, &rep)
	if !errors.Is(err, errBroken) || !slices.Equal(failed, []string{"refused", "stuck fails"}) || rep.Queued != 1 || rep.MadeStuck != 1 {
		t.Errorf("failed are %q, %+v, %v", failed, rep, err)
	}
	if !slices.Equal(queued, []string{"queued"}) || !slices.Equal(givenUp, []string{"stuck stuck"}) {
		t.Errorf("told of %q and %q", queued, givenUp)
	}
	s.opt.Queue, s.opt.MarkStuck, rep = nil, nil, Report{}
	f.emptied = f.stuck
	if failed, err := s.act(t.Context(), f, &rep); failed != nil || err != nil || rep.Queued+rep.MadeStuck+rep.Emptied != 0 {
		t.Errorf("a sweep that only lists: failed are %q, %+v, %v", failed, rep, err)
	}
}

// The request of a stuck operation goes by a write of the sweep's own, unless somebody decides
// meanwhile.
func TestRequestOfAStuckOperationGoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile string
		forbidden bool
		emptied   int
	}{"alone": {"", false, 1}, "somebody decides": {"ver", false, 0}, "it can't be written": {"", true, 0}} {
		db := &restless{}
		st, _ := db.open(t, nil)
		now := time.Now().Truncate(time.Millisecond)
		rec := &store.Record{
			PK: "v1##stuck", State: store.Stuck, Owner: "o", Ver: 2, ID: "s", Keep: store.KeepOpen, Fingerprint: "f", Created: now, Run: now,
			Input: &store.Input{Method: "POST", Path: "/a", Body: []byte("{}")}, WaitSince: now,
		}
		if held, err := st.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil || held != nil {
			t.Fatal(held, err)
		}
		db.updates = 0
		db.before = func() {
			if db.updates == 1 {
				db.meanwhile(t, rec.PK, tt.meanwhile)
			}
			if tt.forbidden {
				db.fails = errForbidden
			}
		}
		s := NewSweep(poison{}, st, func(o *SweepOptions) {
			o.MarkStuck = func(context.Context, jobs.Ticket, string) error { return nil }
		})
		var rep Report
		err := s.empty(t.Context(), rec, &rep)
		if db.fails = nil; (err != nil) != tt.forbidden || rep.Emptied != tt.emptied {
			t.Errorf("%s: %d emptied, %v", name, rep.Emptied, err)
		}
		got, err := st.Load(t.Context(), rec.PK)
		if err != nil || (got.Input == nil) != (tt.emptied == 1) || tt.emptied == 1 && (got.Ver != 3 || got.Owner == "o" || got.State != store.Stuck) {
			t.Errorf("%s: left is %+v, %v", name, got, err)
		}
	}
}

// GoOn goes on with a pass that nobody is at work on, and is one read otherwise.
func TestGoOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		stored *cursor
		broken bool
		runs   bool
	}{
		"no sweep has run":     {nil, false, false},
		"no pass is under way": {&cursor{ver: 1, passed: now}, false, false},
		"a pass is under way":  {&cursor{ver: 1, began: now, at: make([]place, 1)}, false, true},
		"a run is at work":     {&cursor{ver: 1, began: now, busy: now.Add(time.Hour), at: make([]place, 1)}, false, false},
		"a run was at work":    {&cursor{ver: 1, began: now, busy: now, at: make([]place, 1)}, false, true},
		"nobody knows":         {nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &glanced{broken: tt.broken}
			st, _ := db.open(t, nil)
			if tt.stored != nil {
				if _, err := putCursor(t.Context(), item.Table{Access: db, Name: fakeTable}, "", *tt.stored); err != nil {
					t.Fatal(err)
				}
			}
			s := NewSweep(poison{records: 2}, st, func(o *SweepOptions) {
				o.Segments, o.PagesPerSecond, o.PageSize, o.Now, o.Logger = 1, 1e6, 1, func() time.Time { return now }, slog.New(slog.DiscardHandler)
			})
			s.jobs = jobWriter{item.Table{Access: db, Name: fakeTable}}
			rep, err := s.GoOn(t.Context())
			if (rep != nil) != tt.runs || (err != nil) != tt.broken || db.reads != 1 {
				t.Errorf("got %+v, %v, after %d reads", rep, err, db.reads)
			}
		})
	}
}

// A finding leaves the list once its item is gone, or is readable and doesn't wait. It stays if
// somebody has renewed it meanwhile, and a review that can't be made is an error.
func TestReviewOfAFinding(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	var v item.Values
	soon := store.Job{Kind: "mail", At: now.Add(time.Hour)}
	for name, tt := range map[string]struct {
		jobs    map[string]store.Job
		reason  state.Reason
		pk      string
		edit    string
		values  item.Map
		renewed bool
		broken  bool
		fails   bool // its removal from the list
		listed  bool
		err     bool
	}{
		"it is readable":              {reason: state.ReasonUnreadable},
		"it is gone":                  {reason: state.ReasonUnreadable, pk: "v1##none"},
		"it can't be read":            {reason: state.ReasonUnreadable, edit: "SET st = :x", values: item.Map{":x": v.Str("?")}, listed: true},
		"blocked, and can't be read":  {reason: state.ReasonBlocked, edit: "SET st = :x", values: item.Map{":x": v.Str("?")}, listed: true},
		"blocked, with a job":         {reason: state.ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, listed: true},
		"unreadable once, with a job": {reason: state.ReasonUnreadable, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}},
		"blocked, with a job to come": {reason: state.ReasonBlocked, jobs: map[string]store.Job{"0.0": soon}},
		"blocked, with a parked job":  {reason: state.ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail", Failed: "bad"}}},
		"blocked, and finished":       {reason: state.ReasonBlocked},
		"blocked, and gone":           {reason: state.ReasonBlocked, pk: "v1##none"},
		"somebody has renewed it":     {reason: state.ReasonUnreadable, renewed: true, listed: true},
		"its item can't be seen":      {reason: state.ReasonUnreadable, broken: true, listed: true, err: true},
		"it can't be struck":          {reason: state.ReasonUnreadable, fails: true, listed: true, err: true},
		"blocked, and not renewed":    {reason: state.ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, fails: true, listed: true, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &glanced{broken: tt.broken}
			_, rec := db.open(t, tt.jobs)
			if tt.edit != "" {
				db.edit(t, rec.PK, tt.edit, nil, tt.values)
			}
			pk := rec.PK
			if tt.pk != "" {
				pk = tt.pk
			}
			w := jobWriter{item.Table{Access: db, Name: fakeTable}}
			if err := w.list(t.Context(), finding{pk: pk, reason: tt.reason, why: errors.New("why")}, now); err != nil {
				t.Fatal(err)
			}
			find := func() (item.Map, finding) {
				for _, it := range db.Items(fakeTable) {
					if f, ok := findingOf(it); ok {
						return it, f
					}
				}
				t.Fatal("there is no finding")
				return nil, finding{}
			}
			_, f := find()
			if f.pk != pk || f.reason != tt.reason || f.why.Error() != "why" || !f.ends.Equal(now.Add(findingLife)) {
				t.Errorf("the finding is %+v", f)
			}
			if tt.renewed {
				if err := w.list(t.Context(), f, now.Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			db.before = func() {
				if tt.fails {
					db.fails = errForbidden
				}
			}
			later := now.Add(time.Hour)
			err := w.review(t.Context(), f, now.Add(30*time.Minute), 5*time.Minute)
			db.fails = nil
			it, after := find()
			if _, waits := it[item.AttrWait]; waits != tt.listed || (err != nil) != tt.err {
				t.Errorf("listed %v, %v", waits, err)
			}
			if _, since := it[item.AttrSince]; since != tt.listed {
				t.Errorf("since when it waits: %v", it[item.AttrSince])
			}
			if struck := after.ends.Before(later); struck == tt.listed {
				t.Errorf("it lasts until %v", after.ends)
			}
		})
	}
}

// An operation whose ticket has ended waits on as long as nobody has gone on with it, and is
// not in flight.
func TestOperationWaitsOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	abandoned := func(ago time.Duration, mod func(*store.Record)) *store.Record {
		r := &store.Record{State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Run: now.Add(-ago)}
		if mod != nil {
			mod(r)
		}
		return r
	}
	for name, tt := range map[string]struct {
		r    *store.Record
		want bool
	}{
		"abandoned":     {abandoned(time.Hour, nil), true},
		"in flight":     {abandoned(0, nil), false},
		"stuck":         {abandoned(time.Hour, func(r *store.Record) { r.State = store.Stuck }), false},
		"no request":    {abandoned(0, func(r *store.Record) { r.Input = nil }), true},
		"held":          {abandoned(0, func(r *store.Record) { r.Input, r.Lease = nil, now.Add(1) }), false},
		"freed":         {abandoned(0, func(r *store.Record) { r.Input, r.Keep = nil, store.KeepFreed }), false},
		"a job waits":   {abandoned(0, func(r *store.Record) { r.Jobs = map[string]store.Job{"0.0": {At: now}} }), true},
		"a job to come": {abandoned(0, func(r *store.Record) { r.Jobs = map[string]store.Job{"0.0": {At: now.Add(1)}} }), false},
	} {
		if got := (finding{since: now}).lasts(tt.r, now, 5*time.Minute); got != tt.want {
			t.Errorf("%s: waits %v, want %v", name, got, tt.want)
		}
	}
}

var private = cmp.AllowUnexported(cursor{}, place{}, tally{}, found{}, failure{})

// What a pass has found counts alone once it is whole; until then as much as the last pass has
// found, at least.
func TestFoundByAPass(t *testing.T) {
	t.Parallel()
	stuck := func(n int) tally { return tally{by: map[state.Reason]found{state.ReasonStuck: {n, time.Time{}}}} }
	c := cursor{last: stuck(5), at: []place{{found: stuck(1)}, {found: stuck(2), done: true}}}
	if got := c.found().by[state.ReasonStuck].count; got != 5 {
		t.Errorf("under way: found %d, want 5", got)
	}
	c.at[0].done = true
	if got := c.found().by[state.ReasonStuck].count; got != 3 {
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

// A cursor comes back as it was stored.
func TestStoredCursor(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(time.Now().UnixMilli())
	some := tally{by: map[state.Reason]found{state.ReasonStuck: {2, now}, state.ReasonOpen: {1, time.Time{}}}, open: now.Add(-time.Hour)}
	c := cursor{
		ver: 1, began: now, passed: now.Add(-time.Minute), busy: now.Add(time.Minute), last: some, again: []failure{{"a", 3}},
		at: []place{{after: "k", seen: 7, found: some}, {done: true, found: tally{by: map[state.Reason]found{}}}},
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
}

// pages is a table of one segment, which counts half a unit for each page if it is asked to.
type pages struct {
	n      int
	silent bool     // about its units
	from   []string // with which the pages begin
}

func (p *pages) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.from = append(p.from, item.PK(in.ExclusiveStartKey))
	out := &dynamodb.ScanOutput{ScannedCount: 3}
	if in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal && !p.silent {
		out.ConsumedCapacity = &types.ConsumedCapacity{CapacityUnits: aws.Float64(0.5)}
	}
	if len(p.from) < p.n {
		out.LastEvaluatedKey = item.Key(strings.Repeat("k", len(p.from)))
	}
	return out, nil
}

// Browse goes on where a page ends, and tells how far it is. It begins no page once its context
// is over.
func TestBrowseGoesOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end   int // the page that ends the context
		units float64
		from  []string
		want  error
	}{
		"to the end":               {0, 1.5, []string{"", "k", "kk"}, nil},
		"until it is stopped":      {2, 1, []string{"", "k"}, context.Canceled},
		"where no units are known": {0, 0, []string{"", "k", "kk"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				api := &pages{n: 3, silent: tt.units == 0}
				s := &Sweep{api: api, opt: SweepOptions{Segments: 1, PagesPerSecond: 2}}
				began, last := time.Now(), Browsed{}
				err := s.Browse(ctx, func(_ []Glimpse, b Browsed) {
					if last = b; b.Pages == tt.end {
						cancel()
					}
				})
				n := len(tt.from)
				if !errors.Is(err, tt.want) || !slices.Equal(api.from, tt.from) || last != (Browsed{n, 3 * n, tt.units}) {
					t.Errorf("pages from %q, %+v: %v", api.from, last, err)
				}
				if took := time.Since(began); took != time.Duration(n)*time.Second/2 {
					t.Errorf("%d pages in %v", n, took)
				}
			})
		})
	}
}

// A pass that another sweep has ended reads no further page.
func TestLostPassReadsNoFurther(t *testing.T) {
	t.Parallel()
	p := &pass{tried: make(map[string]int64)}
	p.begin(1, time.Now())
	s := &scanner{api: poison{records: 3}, segments: 1, pageSize: 1, perSecond: 1e6}
	if err := s.each(t.Context(), time.Time{}, p, func([]item.Map) (tally, bool) { p.lost = true; return tally{}, true }); err != nil || s.pages != 1 || s.scanned != 1 {
		t.Errorf("%d pages with %d items: %v", s.pages, s.scanned, err)
	}
}

// What failed in a run waits for the next one, as far as there is room: the oldest gives way to
// what is new, and the young stay.
func TestRoomForWhatFails(t *testing.T) {
	t.Parallel()
	const young, old = 1, giveWayAfter
	for _, tt := range []struct {
		young, old, fresh int
		left, came        int
	}{
		{0, 0, maxAgain, 0, maxAgain},
		{maxAgain - 5, 0, 6, maxAgain - 5, 5},
		{maxAgain - 5, 1, 6, maxAgain - 5, 5},
		{0, maxAgain, 7, maxAgain - 7, 7}, // no more make way than have to
		{maxAgain + 9, 0, 1, maxAgain + 9, 0},
		{0, maxAgain + 9, 1, maxAgain - 1, 1}, // two sweeps made the list longer
	} {
		p := &pass{}
		p.again = append(slices.Repeat([]failure{{"young", young}}, tt.young), slices.Repeat([]failure{{"old", old}}, tt.old)...)
		p.later(slices.Repeat([]string{"new"}, tt.fresh))
		came := len(p.again) - len(slices.DeleteFunc(slices.Clone(p.again), func(f failure) bool { return f.pk == "new" }))
		if left := len(p.again) - came; left != tt.left || came != tt.came {
			t.Errorf("%+v: %d are left, and %d came", tt, left, came)
		}
	}
}
