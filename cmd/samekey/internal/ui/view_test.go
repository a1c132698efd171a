package ui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What was settled elsewhere is read again: the index has it no longer.
func TestViewDropsWhatOthersSettled(t *testing.T) {
	t.Parallel()
	v := newView(10)
	v.put(Row{PK: "a", Reasons: []string{"stuck"}}, Row{PK: "b", Reasons: []string{"stuck"}}, Row{PK: "c"})
	if got := v.waitingBut([]Row{{PK: "b"}}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, want a", got)
	}
}

// A filter is what its address says, within bounds.
func TestFilters(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]filter{
		"": {size: 100}, "from=-1&to=x&page=-1&size=-1": {size: 100}, "size=0&order=newest": {size: 1}, "size=10001": {size: 10_000},
		"kind=open&reason=stuck&route=a&from=1&to=2&page=3&size=4&order=oldest": {kind: "open", reason: "stuck", route: "a", from: 1, to: 2, page: 3, size: 4, oldestFirst: true},
		"from=9007199254740993&to=9007199254740993&page=1048577":                {from: 1 << 53, to: 1 << 53, page: 1 << 20, size: 100},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := filterOf(q); got != want {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
	row := Row{State: "open", Reasons: []string{"blocked"}, Route: "a", Created: 0}
	for _, f := range []filter{{}, {kind: "waiting"}, {reason: "blocked"}, {route: "a"}, {to: 1}} {
		if !f.selects(row) {
			t.Errorf("%+v doesn't select %+v", f, row)
		}
	}
	if (filter{from: 1}).selects(row) {
		t.Error("from 1 on there is nothing at 0")
	}
	row.Created = -5
	if !(filter{}).selects(row) {
		t.Error("no bound leaves a record out")
	}
	row.Created = 5
	for _, f := range []filter{{kind: "open"}, {reason: "stuck"}, {route: "b"}, {from: 6}, {to: 5}, {from: 6, to: 7}} {
		if f.selects(row) {
			t.Errorf("%+v selects %+v", f, row)
		}
	}
}

// A page of the list has the counts of all rows, and a chart of those that match.
func TestListing(t *testing.T) {
	t.Parallel()
	rows := []Row{
		{PK: "a", State: "done", Route: "b", Created: 600_001},
		{PK: "b", State: "open", Route: "b", Created: 600_000},
		{PK: "c", State: "stuck", Reasons: []string{"stuck", "parked"}, Route: "c", Created: 300_001},
		{PK: "d", State: "done", Route: "a", Created: 1},
		{PK: "e", Reasons: []string{"parked"}, Created: 0},
	}
	chart := chart{From: 1, Step: 10_001, Buckets: make([][3]int, 60)}
	chart.Buckets[0], chart.Buckets[29], chart.Buckets[59] = [3]int{1, 0, 0}, [3]int{0, 0, 1}, [3]int{1, 1, 0}
	want := listing{
		Total: 5, Matched: 5, Page: 1, Pages: 3, Rows: rows[2:4], Kinds: map[string]int{"done": 2, "open": 1, "waiting": 2}, Counted: map[string]int{"stuck": 1, "parked": 2},
		Routes: []counted{{"b", 2}, {"a", 1}, {"c", 1}}, Chart: chart,
	}
	if diff := cmp.Diff(want, list(rows, filter{page: 1, size: 2}), cmp.AllowUnexported(counted{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := list(rows, filter{kind: "done", page: 9, size: 1, oldestFirst: true})
	if got.Matched != 2 || got.Page != 1 || got.Pages != 2 || got.Rows[0].PK != "a" || got.Chart.Buckets[0] != [3]int{1, 0, 0} {
		t.Errorf("%+v", got)
	}
	if got := list(rows, filter{kind: "none", size: 2}); got.Pages != 1 || got.Page != 0 || got.Rows == nil || got.Chart.Buckets != nil {
		t.Errorf("%+v", got)
	}
	if got := chartOf(rows[:2]); got.Step != 1000 || got.From != 600_000 || got.Buckets[0] != [3]int{1, 1, 0} {
		t.Errorf("%+v", got)
	}
	if got := chartOf(rows[3:]); got.From != 1 || got.Buckets[0] != [3]int{1, 0, 0} {
		t.Errorf("%+v", got)
	}
	if got := chartOf(rows[4:]); got.Buckets != nil {
		t.Errorf("%+v", got)
	}
	var many []Row
	for n := range 101 {
		many = append(many, Row{Route: fmt.Sprint(n)})
	}
	if got := list(append(many, Row{Route: "100"}), filter{size: 1}); len(got.Routes) != 100 || got.Routes[0] != (counted{"100", 2}) || got.Routes[99].Name != "98" {
		t.Errorf("%d routes, %+v", len(got.Routes), got.Routes)
	}
}

// A pass over the table puts what it meets, but for what was read alone meanwhile; what a whole
// pass has not met goes.
func TestPasses(t *testing.T) {
	t.Parallel()
	v := newView(10)
	shows := func(want string) {
		t.Helper()
		var got []string
		rows, _, _ := v.snapshot()
		for _, r := range rows {
			got = append(got, r.PK+r.State)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("shows %q, want %q", got, want)
		}
	}
	row := func(pk, state string) Row { return Row{PK: pk, State: state} }
	_, before, _ := v.snapshot()
	v.put(row("b", "1"), row("a", "1"), row("c", "1"))
	shows("a1 b1 c1")
	v.begin()
	v.read("a", row("a", "3"), true)
	v.read("b", Row{}, false)
	shows("a3 c1")
	v.meet(row("a", "2"), row("b", "2"), row("d", "2"))
	shows("a3 c1 d2")
	if alone := v.end(false); !slices.Equal(slices.Sorted(slices.Values(alone)), []string{"a", "b"}) {
		t.Errorf("alone: %q", alone)
	}
	shows("a3 c1 d2")
	v.begin()
	v.meet(row("a", "4"))
	shows("a4 c1 d2")
	if alone := v.end(true); len(alone) > 0 {
		t.Errorf("alone: %q", alone)
	}
	shows("a4")
	v.read("a", row("a", "5"), true) // no pass runs
	v.begin()
	v.meet(row("a", "6"))
	v.end(true)
	shows("a6")
	if _, after, _ := v.snapshot(); after == before {
		t.Error("the version stays")
	}
}

// Beyond the limit the oldest rows go first, and those that wait for people last. There is some
// room before rows go.
func TestShrinks(t *testing.T) {
	t.Parallel()
	v := newView(4)
	rows := make([]Row, 0, 1005)
	for n := range 1005 {
		rows = append(rows, Row{PK: fmt.Sprintf("%04d", n), State: "done", Created: int64(n)})
	}
	rows[0].Reasons, rows[1].Reasons = []string{"stuck"}, []string{"parked"}
	v.add(rows, nil)
	if len(v.rows) != 1005 || v.dropped {
		t.Errorf("%d rows, dropped: %t", len(v.rows), v.dropped)
	}
	_, version, dropped := v.snapshot()
	var got []string
	for _, r := range v.inOrder() {
		got = append(got, r.PK)
	}
	if !slices.Equal(got, []string{"1004", "1003", "0001", "0000"}) || !dropped {
		t.Errorf("%q, dropped: %t", got, dropped)
	}
	once := v.inOrder()
	if again, same, _ := v.snapshot(); same != version || &again[0] != &once[0] {
		t.Error("nothing has changed, and it is sorted again")
	}
	v.begin()
	if v.dropped {
		t.Error("a new pass has dropped nothing")
	}
	for n := range 5 {
		rows[n].Reasons = []string{"stuck"}
	}
	v.put(append(rows, Row{PK: "x", State: "done"})...) // one more than there is room for
	if len(v.rows) != 4 || !v.dropped {
		t.Errorf("%d rows", len(v.rows))
	}
	if rows, _, _ := v.snapshot(); rows[0].PK != "0004" || rows[3].PK != "0001" {
		t.Errorf("%+v", rows)
	}
}

// trace is a source that notes when it is asked for what.
type trace struct {
	Source
	local   bool
	began   time.Time
	follow  func(ctx context.Context, started func(), changed func([]string)) error
	waiting func() ([]Row, error)
	browse  func(ctx context.Context, see func([]Row, Progress)) error
	row     func(pk string) (Row, bool, error)

	mu    sync.Mutex
	calls []string
}

func (s *trace) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprint(time.Since(s.began), " ", call))
}

func (s *trace) About() About { return About{Local: s.local} }

func (s *trace) Follow(ctx context.Context, started func(), changed func([]string)) error {
	s.note("follow")
	return s.follow(ctx, started, changed)
}

func (s *trace) Waiting(_ context.Context, most int) ([]Row, error) {
	s.note(fmt.Sprint("waiting ", most))
	return s.waiting()
}

func (s *trace) Browse(ctx context.Context, see func([]Row, Progress)) error {
	s.note("browse")
	return s.browse(ctx, see)
}

func (s *trace) Row(_ context.Context, pk string) (Row, bool, error) {
	s.note("row " + pk)
	return s.row(pk)
}

// A local table is read at once, and again and again while a page looks if its changes can't be
// followed; of others only what waits for people is.
func TestLoads(t *testing.T) {
	t.Parallel()
	none := func(context.Context, func(), func([]string)) error { return ErrNoStream }
	stream := func(ctx context.Context, started func(), changed func([]string)) error {
		started()
		<-time.After(time.Second)
		changed([]string{"a", "b", "broken"})
		<-ctx.Done()
		return ctx.Err()
	}
	breaks := func(context.Context, func(), func([]string)) error { return errors.New("no right to follow") }
	noQuery := func() ([]Row, error) { return nil, ErrNoQuery }
	row := func(pk string) (Row, bool, error) {
		if pk == "broken" {
			return Row{}, true, errors.New("throttled")
		}
		return Row{PK: pk + "!"}, pk == "a", nil
	}
	waits := func() ([]Row, error) { return []Row{{PK: "w"}}, nil }
	fails := func() ([]Row, error) { return nil, errors.New("denied") }
	slow := func() ([]Row, error) {
		<-time.After(time.Minute)
		return nil, errors.New("canceled")
	}
	whole := func(_ context.Context, see func([]Row, Progress)) error {
		see([]Row{{PK: "b"}}, Progress{Scanned: 1, Units: 2})
		<-time.After(time.Second)
		see([]Row{{PK: "c"}}, Progress{Scanned: 2, Units: 3})
		return nil
	}
	torn := func(_ context.Context, see func([]Row, Progress)) error {
		see([]Row{{PK: "b"}}, Progress{Scanned: 1})
		return errors.New("throttled")
	}
	for name, tt := range map[string]struct {
		src    *trace
		unseen bool // no page looks
		watch  time.Duration
		calls  []string
		rows   string
		state  scanState
	}{
		"local": {
			src: &trace{local: true, follow: none, waiting: noQuery, browse: whole}, watch: 15 * time.Second, calls: []string{"0s follow", "0s waiting 10", "0s browse", "2s browse", "13s browse"},
			rows: "b c", state: scanState{Complete: true, Live: true, Ended: 14_000, Progress: Progress{2, 3}},
		},
		"local, nobody looks": {
			src: &trace{local: true, follow: none, waiting: noQuery, browse: whole}, watch: 15 * time.Second, unseen: true, calls: []string{"0s follow", "0s waiting 10", "0s browse"},
			rows: "b c", state: scanState{Complete: true, Live: true, Ended: 1000, Progress: Progress{2, 3}},
		},
		"local, with a stream": {
			src: &trace{local: true, follow: stream, waiting: noQuery, browse: whole, row: row}, watch: 15 * time.Second,
			calls: []string{"0s follow", "0s waiting 10", "0s browse", "1s row a", "1s row b", "1s row broken"},
			rows:  "a! c", state: scanState{Complete: true, Live: true, Ended: 1000, Progress: Progress{2, 3}},
		},
		"local, fast": {
			src: &trace{local: true, follow: none, waiting: noQuery, browse: torn}, watch: 6 * time.Second, calls: []string{"0s follow", "0s waiting 10", "0s browse", "1s browse", "3s browse", "5s browse"},
			rows: "b", state: scanState{Live: true, Error: "throttled", Ended: 5000, Progress: Progress{1, 0}},
		},
		"far away": {
			src: &trace{follow: none, waiting: waits}, watch: 46 * time.Second, calls: []string{"0s follow", "0s waiting 10", "15s waiting 10", "30s waiting 10", "45s waiting 10"},
			rows: "w", state: scanState{Query: true},
		},
		"far away, nobody looks": {src: &trace{follow: none, waiting: waits}, watch: time.Minute, unseen: true, calls: []string{"0s follow", "0s waiting 10"}, rows: "w", state: scanState{Query: true}},
		"far away, with a stream": {
			src: &trace{follow: stream, waiting: waits, row: row}, watch: time.Minute, calls: []string{"0s follow", "0s waiting 10", "1s row a", "1s row b", "1s row broken"}, rows: "a! w",
			state: scanState{Query: true, Live: true},
		},
		"no right": {src: &trace{follow: breaks, waiting: noQuery}, watch: time.Second, calls: []string{"0s follow", "0s waiting 10"}, state: scanState{Error: "no right to follow"}},
		"its stream ends": {
			src: &trace{follow: func(context.Context, func(), func([]string)) error { return nil }, waiting: noQuery}, watch: time.Second, calls: []string{"0s follow", "0s waiting 10"},
		},
		"ends while it asks": {src: &trace{follow: none, waiting: slow}, watch: time.Second, calls: []string{"0s follow", "0s waiting 10"}},
		"no right to either": {src: &trace{follow: none, waiting: fails}, watch: time.Second, calls: []string{"0s follow", "0s waiting 10"}, state: scanState{Error: "denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				src := tt.src
				src.began = time.Now()
				l := &loader{src: src, view: newView(10), hub: &hub{}}
				if !tt.unseen {
					l.hub.join()
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); l.run(ctx) }()
				<-time.After(tt.watch - time.Millisecond)
				got := l.state()
				if got.Ended > 0 {
					got.Ended -= src.began.UnixMilli()
				}
				if diff := cmp.Diff(tt.state, got); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
				cancel()
				<-ended
				if after := l.state(); after.Error != tt.state.Error {
					t.Errorf("its end is an error: %+v", after)
				}
				if diff := cmp.Diff(tt.calls, src.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				rows, _, _ := l.view.snapshot()
				var names []string
				for _, r := range rows {
					names = append(names, r.PK)
				}
				if strings.Join(names, " ") != tt.rows {
					t.Errorf("rows %q, want %s", names, tt.rows)
				}
			})
		})
	}
}

// One scan runs at a time. What was read alone during it is read once more, if nothing tells of
// later changes; a person may stop it.
func TestScans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &trace{began: time.Now(), row: func(pk string) (Row, bool, error) { return Row{PK: pk}, true, nil }}
		src.browse = func(ctx context.Context, see func([]Row, Progress)) error {
			see([]Row{{PK: "a"}}, Progress{Scanned: 1})
			<-ctx.Done()
			return ctx.Err()
		}
		l := &loader{src: src, view: newView(10), hub: &hub{}}
		l.stop() // nothing runs
		l.start(t.Context())
		synctest.Wait()
		l.start(t.Context())
		l.scan(t.Context())
		l.changed(t.Context(), []string{"b"})
		if got := l.state(); got != (scanState{Running: true, Progress: Progress{Scanned: 1}}) {
			t.Errorf("%+v", got)
		}
		<-time.After(time.Second)
		l.stop()
		l.wg.Wait()
		if got := l.state(); got != (scanState{Ended: time.Now().UnixMilli(), Progress: Progress{Scanned: 1}}) {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{"0s browse", "0s row b", "1s row b"}, src.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		p := l.hub.join()
		l.set(func(s *scanState) { s.Error = "old" })
		if len(p.wake) != 1 {
			t.Error("the page is not told")
		}
		src.browse = func(context.Context, func([]Row, Progress)) error {
			if got := l.state(); got.Error != "" || got.Scanned != 0 {
				t.Errorf("a new scan begins with %+v", got)
			}
			return nil
		}
		l.scan(t.Context())
		src.follow = func(context.Context, func(), func([]string)) error { return ErrNoStream }
		src.waiting = func() ([]Row, error) { return nil, ErrNoQuery }
		src.browse = func(ctx context.Context, _ func([]Row, Progress)) error {
			<-ctx.Done()
			<-time.After(time.Second)
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.start(ctx)
		if l.run(ctx); l.state().Running {
			t.Error("a scan runs on after the server's end")
		}
	})
}

// ear hears what is told, from another goroutine.
type ear struct {
	mu      sync.Mutex
	header  http.Header
	said    strings.Builder
	flushed bool
}

func (e *ear) Header() http.Header { return e.header }
func (e *ear) WriteHeader(int)     {}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushed = false
	return e.said.Write(p)
}

func (e *ear) Flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushed = true
}

// hears returns what was said since it was asked last, if it was sent on.
func (e *ear) hears() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.said.Len() > 0 && !e.flushed {
		return "not sent on: " + e.said.String()
	}
	defer e.said.Reset()
	return e.said.String()
}

// Pages hear which records were written, up to a number, once for each burst, and that the
// server is still there.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{hub: &hub{}, loader: &loader{}}
		s.hub.tell("nobody hears")
		heard := &ear{header: make(http.Header)}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		serve := func() {
			defer close(left)
			s.events(heard, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events", http.NoBody))
		}
		go serve()
		const scan = `{"scan":{"running":false,"complete":false,"live":false,"query":false,"scanned":0,"units":0}`
		hears := func(d time.Duration, want string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if got := heard.hears(); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		}
		change := func(more string) string { return "event: change\ndata: " + scan + more + "}\n\n" }
		hears(0, change(""))
		if !s.hub.watched() || heard.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("watched: %t, %v", s.hub.watched(), heard.header)
		}
		s.hub.tell("b", "a")
		s.hub.tell("a")
		hears(249*time.Millisecond, "")
		hears(time.Millisecond, change(`,"pks":["a","b"]`))
		<-time.After(time.Second)
		s.hub.tell()
		hears(0, change(""))
		many := make([]string, 201)
		for n := range many {
			many[n] = fmt.Sprint(n)
		}
		<-time.After(time.Second)
		s.hub.tell(many[:200]...)
		hears(0, change(`,"pks":["`+strings.Join(slices.Sorted(slices.Values(many[:200])), `","`)+`"]`))
		s.hub.tell(many...)
		s.hub.tell("a")
		hears(time.Second, change(`,"many":true`))
		s.hub.tell("a")
		hears(time.Second, change(`,"pks":["a"]`))
		hears(15*time.Second, ": still here\n\n")
		hears(15*time.Second, ": still here\n\n")
		s.hub.tell("a")
		hears(time.Second, change(`,"pks":["a"]`))
		cancel()
		<-left
		if got := heard.hears(); s.hub.watched() || got != "" {
			t.Errorf("the page has left, and hears %q", got)
		}
		one, other := s.hub.join(), s.hub.join()
		s.hub.tell("a")
		for _, p := range []*page{one, other} {
			if pks, many := s.hub.take(p); !slices.Equal(pks, []string{"a"}) || many {
				t.Errorf("%q, %t", pks, many)
			}
			s.hub.leave(p)
		}
		for _, pause := range []time.Duration{0, time.Second} { // in the pause after an event, and where it waits
			ctx, cancel = context.WithCancel(t.Context())
			left = make(chan struct{})
			began := time.Now()
			go serve()
			<-time.After(pause)
			synctest.Wait()
			cancel()
			<-left
			if took := time.Since(began); took != pause || s.hub.watched() {
				t.Errorf("it ends after %v, want %v", took, pause)
			}
		}
		for _, w := range []http.ResponseWriter{gone{httptest.NewRecorder()}, struct{ http.ResponseWriter }{httptest.NewRecorder()}} {
			began := time.Now()
			s.events(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/events", http.NoBody))
			if time.Since(began) > 0 {
				t.Error("it writes on to a page that is gone")
			}
		}
	})
}

// gone can't be written to.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }

func (gone) Flush() {}

// A server whose port is gone says so, and ends.
func TestServeFails(t *testing.T) {
	t.Parallel()
	s, err := Listen(t.Context(), 0, 0, &trace{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if got := encode(math.NaN()); string(got) != "{}" {
		t.Errorf("what is no JSON is %s", got)
	}
}
