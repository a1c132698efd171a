package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
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
		Entries                 []Reason
		Jobs, LetGo             int
		Tickets, GiveUps, Empty int
		Left                    int           // to the stream's readers
		Young                   time.Duration // until the last of those is late
		Open                    bool
	}
	for name, tt := range map[string]struct {
		r    *store.Record
		want short
	}{
		"in flight":                          {open(0, held(time.Minute)), short{Left: 1, Young: time.Minute + grace + late, Open: true}},
		"due":                                {open(grace), short{Left: 1, Young: late, Open: true}},
		"abandoned":                          {open(grace + 1), short{Entries: []Reason{ReasonOpen}, Left: 1, Young: late - 1, Open: true}},
		"for as long as the stream may take": {open(grace + late), short{Entries: []Reason{ReasonOpen}, Left: 1, Open: true}},
		"for longer":                         {open(grace + late + 1), short{Entries: []Reason{ReasonOpen}, Tickets: 1, Open: true}},
		"its program refuses to go on":       {open(grace+late+1, blocked), short{Entries: []Reason{ReasonBlocked}, Tickets: 1, Open: true}},
		"held by a clock that was wrong":     {open(grace+late+1, held(25*time.Hour)), short{Entries: []Reason{ReasonOpen}, Open: true}},
		"its request isn't stored":           {open(24*time.Hour, noRequest), short{Entries: []Reason{ReasonNoRequest}, Open: true}},
		"and its client will not come back":  {open(24*time.Hour+1, noRequest), short{Entries: []Reason{ReasonNoRequest}, GiveUps: 1, Open: true}},
		"given back to its client":           {open(time.Hour, freed), short{}},
		"stuck":                              {open(30*24*time.Hour, stuck), short{Entries: []Reason{ReasonStuck}}},
		"stuck for 30 days":                  {open(30*24*time.Hour+1, stuck), short{Entries: []Reason{ReasonStuck}, Empty: 1}},
		"stuck for 30 days, without request": {open(30*24*time.Hour+1, stuck, noRequest), short{Entries: []Reason{ReasonStuck}}},
		"a job":                              {done(late, job), short{Left: 1}},
		"a job that the stream has missed":   {done(late+1, job), short{Entries: []Reason{ReasonUndelivered}, Jobs: 1}},
		"a job that waits for people":        {done(late+1, map[string]store.Job{"0.0": {Failed: "bad"}}), short{Entries: []Reason{ReasonParked}}},
		"a job to come":                      {done(time.Hour, at(-time.Minute)), short{}},
		"a job whose time has come":          {done(time.Hour, at(late)), short{Left: 1}},
		"a job whose time was missed":        {done(time.Hour, at(late+1)), short{Entries: []Reason{ReasonUndelivered}, Jobs: 1}},
		"a job that was late from the first": {done(time.Minute, at(time.Hour)), short{Left: 1, Young: late - time.Minute}},
		"kept for nothing, as yet":           {done(late, nil), short{}},
		"kept for nothing":                   {done(late+1, nil), short{Entries: []Reason{ReasonKept}, LetGo: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Sweep{opt: SweepOptions{Late: late, Grace: grace}}
			var f findings
			s.examine(&f, tt.r, now)
			got := short{Left: f.young, Tickets: len(f.tickets), GiveUps: len(f.giveUps), Empty: len(f.emptied), Open: !f.oldestOpen.IsZero()}
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

// The oldest open operation of a page is told, and until when the last of those is young.
func TestFindingsOfAPage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &Sweep{opt: SweepOptions{Late: time.Minute, Grace: time.Minute}}
	var f findings
	for _, age := range []time.Duration{time.Second, time.Hour, 30 * time.Second} {
		s.examine(&f, &store.Record{State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Created: now.Add(-age), Run: now.Add(-age)}, now)
	}
	if !f.oldestOpen.Equal(now.Add(-time.Hour)) || f.young != 2 || !f.youngUntil.Equal(now.Add(2*time.Minute-time.Second)) || len(f.tickets) != 1 {
		t.Errorf("got %+v", f)
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
	f := findings{
		tickets: []jobs.Ticket{{PK: "refused"}, {PK: "queued"}},
		giveUps: []*store.Record{rec("stuck fails"), rec("moved"), rec("at work"), rec("stuck"), rec("refused")},
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
	f.emptied = f.giveUps
	if failed, err := s.act(t.Context(), f, &rep); failed != nil || err != nil || rep.Queued+rep.MadeStuck+rep.Emptied != 0 {
		t.Errorf("a sweep that only lists: failed are %q, %+v, %v", failed, rep, err)
	}
}

// A sweep whose writes fail tells so, and tries their records again.
func TestActTellsOfWrites(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, nil)
	s := NewSweep(poison{}, st, func(o *SweepOptions) {
		o.MarkStuck = func(context.Context, jobs.Ticket, string) error { return nil }
	})
	f := findings{
		todos: []*todo{{image: rec, letGo: true}}, misplaced: []*store.Record{{PK: "v1##elsewhere", ID: "e"}}, unreadable: []finding{{pk: "u", why: errBroken, reason: ReasonUnreadable}},
	}
	db.fails = errForbidden
	var rep Report
	failed, err := s.act(t.Context(), f, &rep)
	if !errors.Is(err, errForbidden) || !slices.Equal(failed, []string{"u", "v1##elsewhere", rec.PK}) || rep.LetGo+rep.Placed != 0 {
		t.Errorf("failed are %q, %+v, %v", failed, rep, err)
	}
	db.fails = nil
	if failed, err := s.act(t.Context(), f, &rep); len(failed) != 0 || err != nil || rep.LetGo != 1 || rep.Placed != 1 {
		t.Errorf("failed are %q, %+v, %v", failed, rep, err)
	}
	reviews := findings{reviews: []finding{{pk: "u", reason: ReasonUnreadable}}}
	db.fails = errForbidden
	if err := Refer(t.Context(), s.store, jobs.Ticket{PK: "u"}, errBroken); !errors.Is(err, errForbidden) {
		t.Errorf("referred: %v", err)
	}
	if failed, err := s.act(t.Context(), reviews, &rep); !errors.Is(err, errForbidden) || !slices.Equal(failed, []string{findingPK("u")}) {
		t.Errorf("failed are %q, %v", failed, err)
	}
}

// What a sweep looks at: records, unreadable items and its own findings. Companions, other
// sweeps' places and what is somebody else's it passes over.
func TestLook(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
	var skipped []Skipped
	s := NewSweep(poison{}, st, func(o *SweepOptions) {
		o.Hooks.Skipped = func(_ context.Context, s Skipped) { skipped = append(skipped, s) }
	})
	w := jobWriter{st.Table()}
	for _, pk := range []string{"v1##u", state.NoTicket + "1"} {
		if err := w.list(t.Context(), finding{pk: pk, reason: ReasonUnreadable, why: errBroken}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := putCursor(t.Context(), w.table, "", cursor{ver: 1}); err != nil {
		t.Fatal(err)
	}
	var v item.Values
	items := append(db.Items(fakeTable),
		item.Map{"pk": v.Str("v1##u"), "v": v.Num(99), "st": v.Str("open")}, item.Map{"pk": v.Str("v1##c#o#1"), "v": v.Num(2)}, item.Map{"pk": v.Str("order#1")})
	f := s.look(t.Context(), items)
	if len(f.reviews) != 1 || f.reviews[0].pk != "v1##u" || len(f.unreadable) != 1 || f.unreadable[0].pk != "v1##u" || len(f.entries) != 1 || f.entries[0].PK != "v1##u" {
		t.Errorf("reviews %+v, unreadable %+v, listed %+v", f.reviews, f.unreadable, f.entries)
	}
	if len(skipped) != 1 || skipped[0].Reason != SkipUnreadable || len(f.misplaced) != 0 || f.young != 1 {
		t.Errorf("skipped %+v, misplaced %+v, %d young", skipped, f.misplaced, f.young)
	}
	db.edit(t, rec.PK, "SET waits = :x", nil, item.Map{":x": v.Str("parked#1")})
	if f := s.look(t.Context(), []item.Map{db.Item(fakeTable, rec.PK)}); len(f.misplaced) != 1 {
		t.Errorf("misplaced are %+v", f.misplaced)
	}
	for _, edit := range []string{"", "REMOVE wait_ms", "REMOVE waits"} { // as an earlier version has left it
		db := &restless{}
		_, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail", Tries: 5, Failed: "bad"}})
		if edit != "" {
			db.edit(t, rec.PK, edit, nil, nil)
		}
		if f := s.look(t.Context(), []item.Map{db.Item(fakeTable, rec.PK)}); (len(f.misplaced) == 1) != (edit != "") {
			t.Errorf("after %q misplaced are %+v", edit, f.misplaced)
		}
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
			Input: &store.Input{Method: "POST", Route: "POST /a", Path: "/a", Body: []byte("{}")}, WaitSince: now,
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
