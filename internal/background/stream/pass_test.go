package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// short lets a run of a sweep see so many pages, and ends its time then.
type short struct {
	stream.ScanAPI
	mu     sync.Mutex
	left   int
	end    context.CancelFunc
	before func() // the last page; nil: nothing
}

func (s *short) Scan(ctx context.Context, in *dynamodb.ScanInput, optFns ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	s.mu.Lock() // the segments take turns, so that pages can be counted
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.left--; s.left <= 0 && s.before != nil {
		s.before()
	}
	out, err := s.ScanAPI.Scan(ctx, in, optFns...)
	if s.left <= 0 {
		s.end()
	}
	return out, err
}

// runs lets a sweep run for so many pages.
func (tab *table) runs(t testing.TB, pages int, optFns ...func(*stream.SweepOptions)) *stream.Report {
	t.Helper()
	rep, err := tab.runsAnd(t, pages, nil, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// runsAnd does something before the last of them.
func (tab *table) runsAnd(t testing.TB, pages int, before func(), optFns ...func(*stream.SweepOptions)) (*stream.Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fast := func(o *stream.SweepOptions) { o.PagesPerSecond, o.PageSize, o.Segments = 1e6, 1, 3 }
	return stream.NewSweep(&short{ScanAPI: tab.Client, left: pages, end: cancel, before: before}, tab.Store, append([]func(*stream.SweepOptions){fast}, optFns...)...).Run(ctx)
}

// many fills a table with stuck records, which every visit lists.
func many(t testing.TB, tab *table, n int) {
	t.Helper()
	for i := range n {
		it := entryItem(state.ReasonStuck, fmt.Sprintf("v1##%d", i), 1)
		maps.Copy(it, item(t, open(map[string]any{"pk": text(fmt.Sprintf("v1##%d", i)), "st": text("stuck")})))
		tab.Put(t, it)
	}
}

// rest is how many pages the pass under way takes to its end.
func (tab *table) rest(t testing.TB, optFns ...func(*stream.SweepOptions)) int {
	t.Helper()
	rep := tab.runs(t, 1000, optFns...)
	if !rep.Complete {
		t.Fatalf("got %+v", rep)
	}
	return rep.Pages
}

// A table that is larger than a run's time is seen to its end all the same: each
// run goes on where the one before it had to stop.
func TestEveryRecordIsVisited(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	const records, pages = 40, 4
	many(t, tab, records)
	for pass := range 2 {
		visits := make(map[string]int)
		n, complete := 0, false
		for ; n < 60 && !complete; n++ {
			rep := tab.runs(t, pages)
			complete = rep.Complete
			for _, e := range rep.Entries {
				visits[e.PK]++
			}
		}
		if len(visits) != records || !complete || n > records/pages+3 {
			t.Errorf("pass %d: %d runs saw %d of %d records, complete %v", pass, n, len(visits), records, complete)
		}
		for pk, n := range visits {
			if n != 1 {
				t.Errorf("pass %d: %s was visited %d times", pass, pk, n)
			}
		}
	}
}

// Of two sweeps at once the slower one doesn't put back what the other has seen,
// nor is what it has seen itself forgotten.
func TestTwoSweepsLoseNoProgress(t *testing.T) {
	t.Parallel()
	one := func(o *stream.SweepOptions) { o.Segments = 1 }
	for name, tt := range map[string]struct{ slow, fast, rest int }{
		"the other came further": {4, 15, 20 - 15},
		"this one came further":  {15, 4, 20 - 15},
		"the other ended it":     {4, 1000, 20},
		"this one ended it":      {1000, 4, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			many(t, tab, 18)
			tab.runs(t, 1, one) // so that the pass has begun; the 19th item is its place, the 20th page the end
			slow, err := tab.runsAnd(t, min(tt.slow, 19), func() { tab.runs(t, tt.fast, one) }, one)
			if err != nil {
				t.Fatal(err)
			}
			if rest := tab.rest(t, one); rest > tt.rest || slow.Overdue {
				t.Errorf("%d pages to the end, want at most %d; the slower one: %+v", rest, tt.rest, slow)
			}
		})
	}
}

// A run that is killed repeats what it has seen since its place was stored, and no
// more.
func TestKilledSweepGoesOnFromItsLastStoredPlace(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	many(t, tab, 70)
	one := func(o *stream.SweepOptions) { o.Segments = 1 }
	rep, err := tab.runsAnd(t, 60, func() {
		tab.Transport.Fault = tabletest.On("UpdateItem", 2, dbfault.AnswerError(400, "AccessDeniedException", "injected")) // the first was sent before
	}, one)
	if err == nil || rep.Pages != 60 {
		t.Fatalf("%d pages, %v: the end was stored", rep.Pages, err)
	}
	tab.Transport.Fault = nil
	if rest := tab.rest(t, one); rest > 72-50 {
		t.Errorf("%d pages to the end, though 50 of 72 had been stored", rest)
	}
}

// Where a sweep stands is nobody else's business: it is no record to the list, to
// the sweep, or to the readers of the stream.
func TestPlaceOfASweepIsNoRecord(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	tab.runs(t, 1000)
	if n := len(tab.Items(t)); n != 1 {
		t.Fatalf("%d items, want the place", n)
	}
	var skipped []stream.Skip
	hooks := stream.Hooks{Skipped: func(_ context.Context, s stream.Skipped) { skipped = append(skipped, s.Reason) }}
	rep := look(t, tab, in(48*time.Hour), func(o *stream.SweepOptions) { o.Hooks = hooks })
	if len(rep.Entries) != 0 || len(skipped) != 0 {
		t.Errorf("listed %+v, skipped %v", rep.Entries, skipped)
	}
	ev, queue, out := feed.event(t), &tickets{}, &outbox{}
	if len(ev.Records) == 0 {
		t.Fatal("nothing in the stream")
	}
	for _, reader := range []interface {
		Invoke(context.Context, []byte) ([]byte, error)
	}{
		stream.NewCompleter(queue, func(o *stream.CompleterOptions) { o.Hooks = hooks }),
		stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) { o.Hooks = hooks }),
	} {
		skipped = nil
		if seq := handle(t, reader, ev); seq != "" || len(queue.all()) != 0 || len(out.byID) != 0 {
			t.Errorf("%T: reported %q", reader, seq)
		}
		for _, why := range skipped {
			if why != stream.SkipCompanion { // which is ordinary
				t.Errorf("%T skipped it as %s", reader, why)
			}
		}
	}
}

// Sweeps of two names have two places; another number of segments, or a place that
// somebody has broken, begins the pass again.
func TestPlaceThatDoesNotFit(t *testing.T) {
	t.Parallel()
	one := func(o *stream.SweepOptions) { o.Segments = 1 }
	pk := map[string]types.AttributeValue{"pk": tabletest.Str("samekey#sweep#")}
	for name, tt := range map[string]struct {
		opt    func(*stream.SweepOptions)
		change func(t *testing.T, tab *table)
	}{
		"another name":        {func(o *stream.SweepOptions) { o.Segments, o.Name = 1, "two" }, func(*testing.T, *table) {}},
		"other segments":      {func(o *stream.SweepOptions) { o.Segments = 2 }, func(*testing.T, *table) {}},
		"its places are gone": {one, func(t *testing.T, tab *table) { t.Helper(); tab.edit(t, "samekey#sweep#", "REMOVE segs", nil) }},
		"its version is gone": {one, func(t *testing.T, tab *table) { t.Helper(); tab.edit(t, "samekey#sweep#", "REMOVE ver, segs", nil) }},
		"it is gone": {one, func(t *testing.T, tab *table) {
			t.Helper()
			if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.Name, Key: pk}); err != nil {
				t.Fatal(err)
			}
		}},
		"its places are broken": {one, func(t *testing.T, tab *table) {
			t.Helper()
			tab.edit(t, "samekey#sweep#", "SET segs = :s", map[string]types.AttributeValue{":s": &types.AttributeValueMemberL{Value: []types.AttributeValue{tabletest.Str("?")}}})
		}},
		"its times are broken": {one, func(t *testing.T, tab *table) {
			t.Helper()
			tab.edit(t, "samekey#sweep#", "SET began_ms = :s", map[string]types.AttributeValue{":s": tabletest.Str("?")})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			many(t, tab, 10)
			tab.runs(t, 5, one)
			tt.change(t, tab)
			rep := tab.runs(t, 1000, tt.opt)
			if !rep.Complete || len(rep.Entries) != 10 {
				t.Errorf("got %+v", rep)
			}
			if rep := tab.runs(t, 1000, tt.opt); !rep.Complete || len(rep.Entries) != 10 {
				t.Errorf("the next pass: %+v", rep)
			}
		})
	}
}

// A place that can't be read or stored is an error, and the run does its work.
func TestSweepWithoutItsPlace(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"GetItem", "UpdateItem"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			many(t, tab, 3)
			tab.Transport.Fault = tabletest.On(call, 1, dbfault.AnswerError(400, "AccessDeniedException", "injected"))
			rep, err := tab.sweep().Run(t.Context())
			var denied interface{ ErrorCode() string }
			if !errors.As(err, &denied) || denied.ErrorCode() != "AccessDeniedException" || len(rep.Entries) != 3 || !rep.Complete {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
	}
}

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
				tab.Transport.Fault = tabletest.On("UpdateItem", 1, dbfault.AnswerError(400, "AccessDeniedException", "injected"))
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
