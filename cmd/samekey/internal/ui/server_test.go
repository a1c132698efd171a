package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// listing is the answer to /api/requests.
type listing struct {
	Version                     int
	Total, Matched, Page, Pages int
	Dropped                     bool
	Rows                        []ui.Row
	Kinds, Counted              map[string]int
	Routes                      []struct {
		Name  string
		Count int
	}
	Chart struct {
		From, Step int64
		Buckets    [][3]int
	}
	Scan struct {
		Running, Complete, Live bool
		Error                   string
		Scanned                 int
	}
}

// loaded waits until the table has been read.
func loaded(v *visitor) listing {
	v.t.Helper()
	var l listing
	localtest.Eventually(v.t, "the table is read", func() bool {
		l = get[listing](v, "/api/requests?size=10000")
		return !l.Scan.Running && (l.Scan.Complete || l.Scan.Error != "")
	})
	return l
}

func pks(rows []ui.Row) (list []string) {
	for _, r := range rows {
		list = append(list, strings.TrimPrefix(r.PK, "v1##"))
	}
	return list
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	v := visit(t, 0, &fake{about: ui.About{Local: true}, rows: []ui.Row{
		{PK: "v1##a", State: "done", Route: "POST /rides", Created: 5000},
		{PK: "v1##b", State: "open", Route: "POST /rides", Created: 4000},
		{PK: "v1##c", State: "stuck", Reasons: []string{"stuck"}, Route: "POST /tips", Created: 3000},
		{PK: "v1##d", State: "done", Reasons: []string{"parked"}, Route: "POST /tips", Created: 2000},
		{PK: "v1##e", State: "open", Reasons: []string{"no_request"}, Created: 1000},
		{PK: "v1##f", Reasons: []string{"unreadable"}},
	}}).enter()
	all := loaded(v)
	if diff := cmp.Diff(map[string]int{"done": 1, "open": 2, "waiting": 3}, all.Kinds); diff != "" || all.Dropped || all.Scan.Scanned != 6 {
		t.Errorf("kinds (-want +got):\n%s%+v", diff, all)
	}
	sum := [3]int{}
	for _, b := range all.Chart.Buckets {
		for i, n := range b {
			sum[i] += n
		}
	}
	if sum != [3]int{1, 2, 2} || all.Chart.From != 1000 { // the unreadable record has no time
		t.Errorf("chart %+v", all.Chart)
	}
	for query, want := range map[string]string{
		"":                              "a b c d e f",
		"order=oldest":                  "f e d c b a",
		"kind=waiting":                  "c d f",
		"kind=open":                     "b e",
		"reason=parked":                 "d",
		"route=POST+/rides":             "a b",
		"from=2000&to=4000":             "c d",
		"kind=waiting&route=POST+/tips": "c d",
		"size=2&page=1":                 "c d",
		"size=4&page=9":                 "e f", // beyond the end: the last page
		"size=0":                        "a",
		"size=x&page=-1&from=x":         "a b c d e f",
		"kind=none":                     "",
	} {
		got := get[listing](v, "/api/requests?"+query)
		if strings.Join(pks(got.Rows), " ") != want {
			t.Errorf("%s: %v, want %s", query, pks(got.Rows), want)
		}
	}
}

// With 100,000 records the view keeps only the newest, and those that wait for people.
func TestBoundedView(t *testing.T) {
	t.Parallel()
	const newest, total = 5000, 100_000
	rows := make([]ui.Row, total)
	for i := range rows {
		rows[i] = ui.Row{PK: fmt.Sprintf("v1##%d", i), State: "done", Created: int64(1 + i*7919%total)}
	}
	rows[3] = ui.Row{PK: "v1##old", State: "stuck", Reasons: []string{"stuck"}, Created: 1}
	src := &fake{about: ui.About{Local: true}, rows: rows}
	v := visit(t, newest, src).enter()
	l := loaded(v)
	if l.Total != newest || !l.Dropped || l.Scan.Scanned != total || l.Kinds["waiting"] != 1 {
		t.Errorf("total %d, dropped %t, kinds %v, scan %+v", l.Total, l.Dropped, l.Kinds, l.Scan)
	}
	for _, r := range l.Rows[:newest-1] {
		if r.Created <= total-newest {
			t.Fatalf("%+v is not among the newest", r)
		}
	}
	src.mu.Lock()
	src.rows = nil
	src.mu.Unlock()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("heap after 100,000 records, with the other tests: %d MB", m.HeapAlloc>>20)
}

// The next scan removes a deleted record from the view. The page shows
// an error of the table, and the next scan tries again.
func TestScanAgain(t *testing.T) {
	t.Parallel()
	src := &fake{rows: []ui.Row{{PK: "v1##a"}, {PK: "v1##b"}}}
	v := visit(t, 0, src).enter()
	if l := get[listing](v, "/api/requests"); l.Total != 0 || l.Scan.Complete {
		t.Errorf("a table that costs something was read unasked: %+v", l)
	}
	scan := func() listing {
		v.send("POST", "/api/scan", map[string]string{})
		return loaded(v)
	}
	if l := scan(); l.Total != 2 {
		t.Errorf("%+v", l)
	}
	src.mu.Lock()
	src.rows = src.rows[:1]
	src.mu.Unlock()
	localtest.Eventually(t, "b is gone", func() bool { return scan().Total == 1 })
	src.mu.Lock()
	src.fails = errors.New("throttled")
	src.mu.Unlock()
	localtest.Eventually(t, "the error is shown", func() bool { l := scan(); return l.Scan.Error == "throttled" && l.Total == 1 })
}

// slow is a source whose scan reads the rows, and passes them on only when the test permits it.
type slow struct {
	*fake
	has, let chan struct{}
}

func (s *slow) Browse(_ context.Context, see func([]ui.Row, ui.Progress)) error {
	s.mu.Lock()
	rows := slices.Clone(s.rows)
	s.mu.Unlock()
	s.has <- struct{}{}
	<-s.let
	see(rows, ui.Progress{})
	return nil
}

// The rows of a scan don't overwrite rows that a decision changed meanwhile.
func TestScanIsOlderThanADecision(t *testing.T) {
	t.Parallel()
	src := &slow{&fake{rows: []ui.Row{{PK: "v1##a", State: "stuck"}, {PK: "v1##b", State: "stuck"}, {PK: "v1##c", State: "open"}}}, make(chan struct{}), make(chan struct{})}
	v := visit(t, 0, src).enter()
	v.send("POST", "/api/scan", map[string]string{})
	<-src.has
	src.mu.Lock()
	src.rows = []ui.Row{{PK: "v1##a", State: "done"}, {PK: "v1##c", State: "done"}}
	src.mu.Unlock()
	for _, pk := range []string{"v1##a", "v1##b"} {
		v.send("POST", "/api/act", ui.Action{PK: pk, Seen: "seen", Do: "retry", By: "jane"})
	}
	states := func() map[string]string {
		all := make(map[string]string)
		for _, r := range loaded(v).Rows {
			all[r.PK] = r.State
		}
		return all
	}
	src.mu.Lock()
	src.rows = []ui.Row{{PK: "v1##a", State: "open"}, {PK: "v1##c", State: "done"}} // another operator has opened a again
	src.mu.Unlock()
	src.let <- struct{}{}
	if diff := cmp.Diff(map[string]string{"v1##a": "open", "v1##c": "open"}, states()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	v.send("POST", "/api/scan", map[string]string{})
	<-src.has
	src.let <- struct{}{}
	localtest.Eventually(t, "the next scan shows what is there", func() bool { return states()["v1##c"] == "done" })
}

// A scan can be stopped.
func TestStopScan(t *testing.T) {
	t.Parallel()
	rows := make([]ui.Row, 3000)
	for i := range rows {
		rows[i] = ui.Row{PK: fmt.Sprintf("v1##%d", i), Created: 1}
	}
	v := visit(t, 0, &fake{rows: rows, hold: make(chan struct{})}).enter()
	v.send("POST", "/api/scan", map[string]string{})
	localtest.Eventually(t, "a page is read", func() bool { return get[listing](v, "/api/requests").Scan.Scanned == 1000 })
	v.send("POST", "/api/stop", map[string]string{})
	localtest.Eventually(t, "the scan has stopped", func() bool {
		l := get[listing](v, "/api/requests")
		return !l.Scan.Running && !l.Scan.Complete && l.Scan.Error == "" && l.Total == 1000
	})
}

// The server tells a connected page which record was written.
func TestFollow(t *testing.T) {
	t.Parallel()
	src := &fake{about: ui.About{Local: true}, follow: make(chan []string)}
	v := visit(t, 0, src).enter()
	loaded(v)
	lines := v.events()
	next := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the events end before %s: %v", what, lines.Err())
	}
	next(`"complete":true`)
	src.mu.Lock()
	src.rows = []ui.Row{{PK: "v1##new", State: "open", Created: 7}}
	src.mu.Unlock()
	src.follow <- []string{"v1##new"}
	next(`"pks":["v1##new"]`)
	if l := get[listing](v, "/api/requests"); l.Total != 1 || l.Rows[0].PK != "v1##new" || !l.Scan.Live {
		t.Errorf("%+v", l)
	}
	src.mu.Lock()
	src.rows = nil
	src.mu.Unlock()
	src.follow <- []string{"v1##new"}
	next(`"pks":["v1##new"]`)
	if l := get[listing](v, "/api/requests"); l.Total != 0 {
		t.Errorf("%+v", l)
	}
}

// Personal data needs a separate request, and keys are never in URLs.
func TestPersonalOnRequest(t *testing.T) {
	t.Parallel()
	v := visit(t, 0, &fake{}).enter()
	if status, _, body := v.send("GET", "/api/record?pk=v1%23%23a", nil); status != 200 || strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, body := v.send("POST", "/api/data", map[string]string{"pk": "v1##a"}); status != 200 || !strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := v.send("GET", "/api/data?pk=v1%23%23a", nil); status != 404 {
		t.Errorf("by GET: %d", status)
	}
	if status, _, _ := v.send("GET", "/api/find?key=k", nil); status != 404 {
		t.Errorf("a key in an address: %d", status)
	}
}

// The server listens only on this machine, and fails if the port is taken.
func TestListen(t *testing.T) {
	t.Parallel()
	v := visit(t, 0, &fake{})
	if !strings.HasPrefix(v.base, "http://127.0.0.1:") {
		t.Errorf("listens on %s", v.base)
	}
	var port int
	if _, err := fmt.Sscan(v.port(), &port); err != nil {
		t.Fatal(err)
	}
	if _, err := ui.Listen(t.Context(), port, 0, &fake{}); err == nil {
		t.Error("the port was taken twice")
	}
}

// counting is a source that counts reads of the table.
type counting struct {
	*fake
	reads atomic.Int64
}

func (c *counting) Follow(ctx context.Context, started func(), changed func([]string)) error {
	c.reads.Add(1)
	return c.fake.Follow(ctx, started, changed)
}

func (c *counting) Waiting(ctx context.Context, most int) ([]ui.Row, error) {
	c.reads.Add(1)
	return c.fake.Waiting(ctx, most)
}

// The server doesn't read the table before the first request of a
// session, so that an unopened page costs nothing.
func TestTableIsNotReadUntilSomebodyLooks(t *testing.T) {
	t.Parallel()
	src := &counting{fake: &fake{about: ui.About{Local: true}}}
	v := visit(t, 0, src)
	v.send(http.MethodGet, "/", nil)
	v.send(http.MethodGet, "/api/about", nil) // refused: no session
	if n := src.reads.Load(); n != 0 {
		t.Errorf("%d reads before anybody has looked", n)
	}
	v.enter()
	v.send(http.MethodGet, "/api/about", nil)
	for src.reads.Load() < 2 { // the test's timeout ends the loop
		runtime.Gosched()
	}
}

// The server answers each call with the table's data about the record that the page names.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const hidden = "v1##i\u200b"
	src := &fake{about: ui.About{Table: "orders", Local: true}, rows: []ui.Row{
		{PK: "v1##h h", Name: "short", State: "open", Created: 3}, {PK: "v1##h\u200bh", State: "open", Created: 2}, {PK: hidden, State: "open", Created: 1},
	}}
	v := visit(t, 0, src).enter()
	if l := loaded(v); l.Version == 0 {
		t.Errorf("%+v", l)
	}
	type in = map[string]any
	act := func(pk, body string) ui.Action {
		return ui.Action{Do: "settle", PK: pk, Seen: "x", By: "jane", Body: body}
	}
	state := `"complete":true,"live":true`
	const ask = `{"error":"search for a customer's key, a caller, a partition key, or the short name of a record in the list; to find an operation or a job by its id, use samekey get"}`
	for _, tt := range []struct {
		method, path string
		in           any
		status       int
		says         string // the whole answer, or a part
	}{
		{"GET", "/api/about", nil, 200, `{"table":"orders","local":true,"newest":20000}`},
		{"GET", "/api/size", nil, 200, `{"items":10,"bytes":81920,"units":10}`},
		{"POST", "/api/find", in{"any": " short "}, 200, `{"pks":["v1##h h"]}`},
		{"POST", "/api/find", in{"any": "v1##h h"}, 200, `{"pks":["v1##h h"]}`},
		{"POST", "/api/find", in{"any": "other"}, 200, `{"pks":["found"]}`},
		{"POST", "/api/find", in{"key": "k"}, 200, `{"pks":["found"]}`},
		{"POST", "/api/find", in{"key": "k", "any": "short"}, 400, ask},
		{"POST", "/api/find", in{"any": " "}, 400, ask},
		{"POST", "/api/find", in{"what": 1}, 400, "can't read the body"},
		{"POST", "/api/data", in{"what": 1}, 400, "can't read the body"},
		{"POST", "/api/data", in{"pk": strings.Repeat("a", 1<<20-9)}, 404, "no such record"},
		{"POST", "/api/data", in{"pk": strings.Repeat("a", 1<<20-8)}, 400, "too large"},
		{"POST", "/api/ask", act("v1##h h", ""), 200, `{"said":"sure?"}`},
		{"POST", "/api/act", act("v1##h h", strings.Repeat("a", 256<<10)), 200, `{"said":"done"}`},
		{"POST", "/api/act", act("v1##h h", strings.Repeat("a", 256<<10+1)), 413, `{"error":"the answer is larger than 256 KB: use samekey settle --body-file"}`},
		{"POST", "/api/act", act(plain.Text(hidden), ""), 200, `{"said":"done"}`},
		{"POST", "/api/act", ui.Action{Do: "retry", PK: "v1##a", By: "jane"}, 400, "version of the record"},
		{"POST", "/api/act", ui.Action{Do: "retry", Seen: "seen"}, 400, "which version of the record was shown"},
		{"POST", "/api/act", in{"do": "retry", "force": true}, 400, "unknown field"},
		{"POST", "/api/act", "retry", 400, "can't read the body"},
		{"GET", "/api/record?pk=none", nil, 404, "no such record"},
		{"POST", "/api/stop", in{}, 200, state},
		{"POST", "/api/scan", in{}, 200, `"running":`},
		{"HEAD", "/", nil, 200, ""},
		{"GET", "/", nil, 200, "<html"},
		{"GET", "/style.css", nil, 200, "{"},
		{"PUT", "/style.css", nil, 405, "the page is read-only"},
	} {
		status, h, body := v.send(tt.method, tt.path, tt.in)
		if status != tt.status || !strings.Contains(body, tt.says) || strings.HasPrefix(tt.says, "{\"") && body != tt.says || strings.HasPrefix(tt.path, "/api/") && h.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, status, body, tt.status, tt.says)
		}
	}
	if len(src.acts) != 2 || src.acts[0].PK != "v1##h h" || src.acts[1].PK != hidden {
		t.Errorf("%d acts", len(src.acts))
	}
	for err, want := range map[error]int{ui.ErrGone: 404, ui.ErrMoved: 409, ui.ErrRefused: 422, errors.New("throttled"): 502} {
		src := &fake{fails: fmt.Errorf("%w: look", err)}
		v := visit(t, 1, src).enter()
		for path, in := range map[string]any{"/api/find": in{"key": "k"}, "/api/ask": act("v1##a", ""), "/api/act": act("v1##a", ""), "/api/data": in{"pk": "v1##a"}} {
			if status, _, body := v.send("POST", path, in); status != want || body != `{"error":"`+err.Error()+`: look"}` {
				t.Errorf("%s: %d %s, want %d", path, status, body, want)
			}
		}
		if status, _, body := v.send("GET", "/api/size", nil); status != want || body != `{"error":"`+err.Error()+`: look"}` {
			t.Errorf("%d %s, want %d", status, body, want)
		}
		if about := get[struct{ Newest int }](v, "/api/about"); about.Newest != 1 {
			t.Errorf("%+v", about)
		}
	}
}
