package stream

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// A sweep ends by its budget, or a tenth of the time before its context does, a second at
// least. Its last pages have half of that, and its place the rest.
func TestEndOfASweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		for name, tt := range map[string]struct {
			budget, deadline time.Duration
			end, work        time.Duration // 0: never
		}{
			"for ever":                  {0, 0, 0, 0},
			"a budget":                  {20 * s, 0, 20 * s, 0},
			"a context":                 {0, 60 * s, 54 * s, 57 * s},
			"a short context":           {0, 4 * s, 3 * s, 3*s + s/2},
			"a budget within a context": {20 * s, 60 * s, 20 * s, 57 * s},
			"a budget longer than that": {59 * s, 60 * s, 54 * s, 57 * s},
		} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tt.deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
			}
			end, work, stop := (&Sweep{opt: SweepOptions{Budget: tt.budget}}).end(ctx)
			left := time.Duration(0)
			if !end.IsZero() {
				left = time.Until(end)
			}
			limit := time.Duration(0)
			if deadline, ok := work.Deadline(); ok {
				limit = time.Until(deadline)
			}
			if left != tt.end || limit != tt.work {
				t.Errorf("%s: ends in %v, its work in %v; want %v, %v", name, left, limit, tt.end, tt.work)
			}
			if stop(); work.Err() == nil {
				t.Errorf("%s: its work goes on", name)
			}
			cancel()
		}
	})
}

// A run tells its entries, that no pass was whole in time, and what it came to.
func TestSweepTells(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rep  Report
		err  error
		want []string
	}{
		"all is well":  {Report{}, nil, []string{"INFO swept"}},
		"it failed":    {Report{}, errBroken, []string{"WARN swept"}},
		"overdue":      {Report{Overdue: true}, nil, []string{"ERROR no", "INFO swept"}},
		"with entries": {Report{Entries: []Entry{{}, {}}}, nil, []string{"WARN unfinished", "WARN unfinished", "INFO swept"}},
	} {
		var log bytes.Buffer
		s := &Sweep{opt: SweepOptions{Now: time.Now}, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.tell(t.Context(), &tt.rep, tt.err)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			level, msg, _ := strings.Cut(rest, " msg=")
			word, _, _ := strings.Cut(strings.Trim(msg, `"`), " ")
			got = append(got, level+" "+word)
		}
		if strings.Join(got, ", ") != strings.Join(tt.want, ", ") {
			t.Errorf("%s: told %q, want %q", name, got, tt.want)
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

// The ticket of jobs ends when none of them waits in its record, and waits while one does.
func TestRetryOfATicket(t *testing.T) {
	t.Parallel()
	parked := store.Job{Kind: "mail", Failed: "bad"}
	for name, tt := range map[string]struct {
		jobs      map[string]store.Job
		operation string
		pk        string
		edit      string
		broken    bool
		down      bool
		delivered int
		again     bool
		skipped   int
	}{
		"two jobs":            {jobs: map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": {Kind: "mail"}, "0.2": parked}, delivered: 2},
		"the sink is down":    {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, down: true, delivered: 1, again: true},
		"parked":              {jobs: map[string]store.Job{"0.0": parked}},
		"nothing is left":     {},
		"another operation's": {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, operation: "another"},
		"no record":           {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, pk: "v1##none"},
		"nobody can read it":  {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, edit: "SET st = :x", skipped: 1},
		"it can't be seen":    {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, broken: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &glanced{broken: tt.broken}
			_, rec := db.open(t, tt.jobs)
			if tt.edit != "" {
				db.edit(t, rec.PK, tt.edit, nil, item.Map{":x": new(item.Values).Str("?")})
			}
			ticket := jobs.Ticket{PK: rec.PK, Operation: rec.ID, Jobs: true}
			if tt.pk != "" {
				ticket.PK = tt.pk
			}
			if tt.operation != "" {
				ticket.Operation = tt.operation
			}
			var got []string
			errs := map[string]error{}
			if tt.down {
				errs["mail"] = jobs.ErrSinkDown
			}
			skipped := 0
			d := &Drain{jobs: jobWriter{item.Table{Access: db, Name: fakeTable}}, sink: byKind(errs, &got), opt: DrainOptions{Concurrency: 1, MaxTries: 5}}
			d.log, d.hooks = slog.New(slog.DiscardHandler), &Hooks{Skipped: func(context.Context, Skipped) { skipped++ }}
			if err := d.Retry(t.Context(), ticket); (err != nil) != tt.again || len(got) != tt.delivered || skipped != tt.skipped {
				t.Errorf("%v, delivered %q, skipped %d", err, got, skipped)
			}
			if tt.jobs == nil {
				if held, err := d.jobs.table.Glance(t.Context(), rec.PK); err != nil || held.Keep != "" {
					t.Errorf("not let go: %+v, %v", held, err)
				}
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
		reason  Reason
		pk      string
		edit    string
		values  item.Map
		renewed bool
		broken  bool
		fails   bool // its removal from the list
		listed  bool
		err     bool
	}{
		"it is readable":              {reason: ReasonUnreadable},
		"it is gone":                  {reason: ReasonUnreadable, pk: "v1##none"},
		"it can't be read":            {reason: ReasonUnreadable, edit: "SET st = :x", values: item.Map{":x": v.Str("?")}, listed: true},
		"blocked, and can't be read":  {reason: ReasonBlocked, edit: "SET st = :x", values: item.Map{":x": v.Str("?")}, listed: true},
		"blocked, with a job":         {reason: ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, listed: true},
		"unreadable once, with a job": {reason: ReasonUnreadable, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}},
		"blocked, with a job to come": {reason: ReasonBlocked, jobs: map[string]store.Job{"0.0": soon}},
		"blocked, with a parked job":  {reason: ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail", Failed: "bad"}}},
		"blocked, and finished":       {reason: ReasonBlocked},
		"blocked, and gone":           {reason: ReasonBlocked, pk: "v1##none"},
		"somebody has renewed it":     {reason: ReasonUnreadable, renewed: true, listed: true},
		"its item can't be seen":      {reason: ReasonUnreadable, broken: true, listed: true, err: true},
		"it can't be struck":          {reason: ReasonUnreadable, fails: true, listed: true, err: true},
		"blocked, and not renewed":    {reason: ReasonBlocked, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, fails: true, listed: true, err: true},
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
