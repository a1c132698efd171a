package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

var errInjected = errors.New("injected")

// sick is a sweep's surroundings, which fail for a while.
type sick struct {
	fails func(pk string) bool // nil: never
	asked []string             // whom it was about, in order
	out   outbox
}

func (s *sick) ask(pk string) error {
	s.asked = append(s.asked, pk)
	if s.fails != nil && s.fails(pk) {
		return errInjected
	}
	return nil
}

// options let a sweep do all it can, two days later.
func (s *sick) options(tab *table) func(*stream.SweepOptions) {
	queue := &tickets{fail: func(t jobs.Ticket) error { return s.ask(t.PK) }}
	s.out.fail = func(d jobs.Delivery) error {
		if s.ask(d.JobID) != nil {
			return jobs.ErrSinkDown
		}
		return nil
	}
	return func(o *stream.SweepOptions) {
		in(48 * time.Hour)(o)
		o.Queue, o.Drain = queue, stream.NewDrain(tab.Store, &s.out)
		o.MarkStuck = func(_ context.Context, t jobs.Ticket, _ string) error { return s.ask(t.PK) }
	}
}

func always(string) bool { return true }

// What a run couldn't do, the next one does first, wherever in the table it is: the
// pass itself may come by only in a day.
func TestFailedActIsTriedByTheNextRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		put func(*testing.T, *table)
		did func(*stream.Report) int
	}{
		"a ticket": {func(t *testing.T, tab *table) {
			t.Helper()
			begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), nothing)
		}, func(r *stream.Report) int { return r.Queued }},
		"a delivery": {func(t *testing.T, tab *table) {
			t.Helper()
			run(t, idem.New(tab.Store, callertest.Anybody), one("job"))
		}, func(r *stream.Report) int { return r.Delivered }},
		"a letting go": {func(t *testing.T, tab *table) { t.Helper(); tab.finished(t, nil) }, func(r *stream.Report) int { return r.LetGo }},
		"a giving up":  {func(t *testing.T, tab *table) { t.Helper(); tab.Put(t, item(t, open(map[string]any{"req": nil}))) }, func(r *stream.Report) int { return r.MadeStuck }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, s := newTable(t), &sick{fails: always}
			many(t, tab, 30)
			tt.put(t, tab)
			if name == "a letting go" {
				tab.Transport.Reset()
				tab.Transport.Fault = tabletest.On("UpdateItem", 1, dynamotest.AnswerError(400, "AccessDeniedException", "injected"))
			}
			rep, err := tab.runsAnd(t, 1000, nil, s.options(tab))
			if !rep.Complete || tt.did(rep) != 0 || (err == nil) != (name == "a delivery") { // the drain tells of those
				t.Fatalf("the run that fails: %+v, %v", rep, err)
			}
			tab.Transport.Fault, s.fails = nil, nil
			rep = tab.runs(t, 2, s.options(tab))
			if tt.did(rep) != 1 || rep.Complete {
				t.Errorf("the next run: %+v", rep)
			}
			did := 0
			for !rep.Complete {
				rep = tab.runs(t, 20, s.options(tab))
				did += tt.did(rep)
			}
			if did > 1 { // a ticket, as its record is still open when the pass comes by
				t.Errorf("done %d times more by the pass", did)
			}
		})
	}
}

// A record that fails for ever doesn't hold up the pass: each run tries it, and
// goes on through the table as if it weren't there.
func TestPoisonRecordHoldsUpNobody(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	many(t, tab, 20)
	tab.Put(t, item(t, open(map[string]any{"pk": text("v1##poison"), "req": nil})))
	s := &sick{fails: always}
	visits, runs := make(map[string]int), 0
	for complete := false; !complete; runs++ {
		if runs > 20 {
			t.Fatal("the pass doesn't come to its end")
		}
		rep, err := tab.runsAnd(t, 4, nil, s.options(tab))
		if err != nil && !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		complete = rep.Complete
		var listed []string
		for _, e := range rep.Entries {
			visits[e.PK]++
			listed = append(listed, e.PK)
		}
		if slices.Sort(listed); len(listed) != len(slices.Compact(slices.Clone(listed))) {
			t.Errorf("a run lists %v", listed)
		}
	}
	// 22 items with the place, and the end of each of 3 segments. Of a run's 4 pages, its end
	// may cut those of two segments off: they are read again.
	if runs > 25/2+1 || len(visits) != 21 {
		t.Errorf("%d runs saw %d records", runs, len(visits))
	}
	for pk, n := range visits {
		if pk != "v1##poison" && n != 1 {
			t.Errorf("%s was visited %d times", pk, n)
		}
	}
	before := len(s.asked)
	if _, err := tab.runsAnd(t, 1, nil, s.options(tab)); !errors.Is(err, errInjected) || len(s.asked) != before+1 {
		t.Errorf("the run after it asks %v, %v", s.asked[before:], err)
	}
}

// Of two sweeps at once neither forgets what failed with the other.
func TestTwoSweepsKeepWhatFailed(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string]int{"within a pass": 5, "though the other ended the pass": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			for i := range 12 {
				tab.Put(t, item(t, open(map[string]any{"pk": text(fmt.Sprintf("v1##%d", i)), "req": nil})))
			}
			one := func(o *stream.SweepOptions) { o.Segments = 1 }
			tab.runs(t, 1, one) // so that the pass has begun
			slow, fast := &sick{fails: always}, &sick{}
			fast.fails = func(pk string) bool { return !slices.Contains(slow.asked, pk) }
			_, err := tab.runsAnd(t, 8, func() {
				if _, err := tab.runsAnd(t, pages, nil, fast.options(tab), one); err != nil && !errors.Is(err, errInjected) {
					t.Error(err)
				}
			}, slow.options(tab), one)
			if !errors.Is(err, errInjected) {
				t.Fatalf("got %v", err)
			}
			want := slices.Concat(slow.asked, fast.asked)
			slices.Sort(want)
			next := &sick{}
			tab.runs(t, 1, next.options(tab), one)
			slices.Sort(next.asked)
			missing := slices.DeleteFunc(slices.Compact(want), func(pk string) bool { return slices.Contains(next.asked, pk) })
			if len(missing) > 0 {
				t.Errorf("the next run asks about %v, and not about %v", next.asked, missing)
			}
		})
	}
}
