//go:build unix

package crash_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.MainSeparate(m)) }

const (
	// atOnce is how many requests are under way: most wait for leases.
	atOnce = 160
	// episode is how many requests a database gets: its stream gets slower with its
	// history.
	episode = 2000
	// enough is a number of requests that meets every fault.
	enough = 500
)

// cell is a row and a column of the matrix.
type cell struct {
	path  *path
	point point
	fault *fault
}

func (c cell) String() string { return c.path.name + "|" + c.point.String() + "|" + c.fault.name }

// TestCrashMatrix plays each cell of the matrix. CRASH_REQUESTS is the number of requests;
// by default each crash point meets one fault. CRASH_SEED repeats a selection of cells, and
// CRASH_PAGE writes proof/crash-matrix.md, and
// CRASH_CELL plays the cells that contain it. GOFLAGS apply to the programs, too.
func TestCrashMatrix(t *testing.T) {
	db, bin := dynamotest.Start(t), build(t)
	m := newMatrix(t)
	m.discover(t, newWorld(t, db, bin))
	todo := m.plan(t)
	if t.Failed() {
		todo = nil // found without a fault
	}
	for part := range slices.Chunk(todo, episode) {
		if len(todo) > episode {
			fresh, err := dynamotest.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			db = fresh
		}
		t.Run("requests", func(t *testing.T) { m.play(t, newWorld(t, db, bin), part) })
		if len(todo) > episode {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			break
		}
	}
	m.report(t)
}

// matrix is a run of the test.
type matrix struct {
	seed     uint64
	requests int // 0: one for each crash point
	only     string
	commit   string // for the page
	begun    time.Time

	points map[*path][]point

	mu      sync.Mutex
	counts  map[cell]int // requests that met their fault
	found   map[string]int
	waited  int
	killed  int64
	stopped int64
	posts   int64
	calls   int64
	number  int
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{
		seed: rand.Uint64(), only: os.Getenv("CRASH_CELL"), begun: time.Now(),
		points: map[*path][]point{}, counts: map[cell]int{}, found: map[string]int{},
	}
	if os.Getenv("CRASH_PAGE") != "" {
		m.commit = head(t)
	}
	var err error
	if s := os.Getenv("CRASH_SEED"); s != "" {
		if m.seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("CRASH_REQUESTS"); s != "" {
		if m.requests, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// discover finds the crash points: the calls of requests that don't meet the cell's
// fault. On a busy machine an attempt's time may end and others make other calls, so slow
// requests don't count, and two have to make the same calls.
func (m *matrix) discover(t *testing.T, w *world) {
	t.Helper()
	if discovered != nil && m.only == "" {
		m.points = discovered
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	few := make(chan struct{}, 4)
	for i, p := range paths {
		if name, _, _ := strings.Cut(m.only, "|"); m.only != "" && name != p.name {
			continue
		}
		wg.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			var seen [][]point
			for n := range 99 {
				r := w.newRun(100*i+n, p)
				r.play(ctx)
				if ctx.Err() != nil {
					return // another request has found something
				}
				findings, _ := r.found()
				for _, f := range findings {
					m.find(t, p.name+", without a fault", f)
					stop()
				}
				if r.wasSlow() && len(findings) == 0 {
					continue
				}
				points := r.points()
				if len(findings) > 0 || slices.ContainsFunc(seen, func(s []point) bool { return slices.Equal(s, points) }) {
					m.mu.Lock()
					defer m.mu.Unlock()
					m.points[p] = points
					return
				}
				seen = append(seen, points)
			}
			t.Errorf("%s: its requests make different calls, or this machine is too slow: %v", p.name, seen)
		})
	}
	wg.Wait()
	if !t.Failed() {
		discovered = m.points
	}
}

// discovered are the crash points that an earlier test of this process has found.
var discovered map[*path][]point

// plan chooses the cells, in a random order.
func (m *matrix) plan(t *testing.T) (todo []cell) {
	t.Helper()
	random := rand.New(rand.NewPCG(m.seed, 0))
	var all []cell
	row := 0
	for _, p := range paths {
		for _, pt := range m.points[p] {
			var cells []cell
			for _, f := range faults {
				if (f.on == nil || f.on(pt.call)) && (p.skips == nil || !p.skips(pt, f)) {
					cells = append(cells, cell{p, pt, f})
				}
			}
			all = append(all, cells...)
			if m.requests == 0 {
				todo = append(todo, cells[(row+int(m.seed%100))%len(cells)])
			}
			row++
		}
	}
	if m.only != "" {
		all = slices.DeleteFunc(all, func(c cell) bool { return !strings.Contains(c.String(), m.only) })
		if len(all) == 0 {
			t.Fatalf("no cell %q; the crash points are %v", m.only, m.points)
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return slices.Repeat(all, m.requests/len(all)+1)[:max(m.requests, 1)]
	}
	for round := 0; len(todo) < m.requests; round++ {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, c := range all {
			if !c.path.rare || round%5 == 0 {
				todo = append(todo, c)
			}
		}
	}
	if m.requests > 0 {
		todo = todo[:m.requests]
	}
	return todo
}

// play plays cells in a world, and looks at all effects once more when its queues are
// empty. The first finding ends all requests.
func (m *matrix) play(t *testing.T, w *world, todo []cell) {
	t.Helper()
	next := make(chan cell)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var played []*run
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range atOnce {
		wg.Go(func() {
			for c := range next {
				r, ok := m.playCell(ctx, t, w, c)
				mu.Lock()
				played = append(played, r)
				mu.Unlock()
				if !ok {
					stop()
				}
			}
		})
	}
feed:
	for _, c := range todo {
		select {
		case next <- c:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	m.count(w)
	if t.Failed() {
		return
	}
	w.drained(t)
	for _, r := range played {
		got, err := w.effects(t.Context(), r.id)
		if err != nil {
			t.Fatal(err)
		}
		r.compare(got, w.provider.about(r.id))
		if findings, _ := r.found(); len(findings) > 0 {
			m.find(t, r.path.name, findings[0])
		}
	}
}

// playCell plays a cell, again if its fault has not come: a busy machine may let an
// attempt's time end before.
func (m *matrix) playCell(ctx context.Context, t *testing.T, w *world, c cell) (r *run, ok bool) {
	for try := 0; try < 3 || try < 30 && r.wasSlow(); try++ {
		m.mu.Lock()
		m.number++
		n := m.number
		m.mu.Unlock()
		r = w.newRun(10_000+n, c.path, shot{c.point, c.fault})
		r.play(ctx)
		if ctx.Err() != nil {
			return r, false // another request has found something
		}
		findings, met := r.found()
		want := never
		if c.path.waits != nil {
			want = c.path.waits(c.point, c.fault)
		}
		slow := r.wasSlow() // then a call that can't be repeated may be in doubt, whatever the fault
		if met && len(findings) == 0 && want != either && r.waited != (want == always) && (want == always || !slow) {
			findings = append(findings, finding{"wrong", fmt.Sprintf("it waited for people: %v", r.waited)})
		}
		for _, f := range findings {
			m.find(t, c.String(), f)
		}
		m.mu.Lock()
		if met {
			m.counts[c]++
		}
		if r.waited {
			m.waited++
		}
		m.mu.Unlock()
		if met || len(findings) > 0 {
			return r, len(findings) == 0
		}
	}
	t.Errorf("%s: the fault has not come", c)
	return r, false
}

func (m *matrix) find(t *testing.T, where string, f finding) {
	t.Helper()
	m.mu.Lock()
	m.found[f.kind]++
	m.mu.Unlock()
	t.Errorf("%s: %s\n%s\nagain: CRASH_CELL='%s' CRASH_SEED=%d CRASH_REQUESTS=5 go test -C proof ./crash -run '^TestCrashMatrix$' -count=1",
		where, f.kind, f.text, where, m.seed)
}

func (m *matrix) count(w *world) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed += w.killed.Load()
	m.stopped += w.stopped.Load()
	m.posts += w.posts.Load()
	m.calls += w.passed.Load()
}

// met is how many requests met their fault.
func (m *matrix) met() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.counts {
		n += c
	}
	return n
}

// evidence is what a run prints.
type evidence struct {
	Requests int
	Cells    int
	Points   int
	Faults   int
	Kills    int64
	Stops    int64
	Posts    int64
	Calls    int64
	People   int
	Lost     int
	Doubled  int
	Wrong    int
	Seconds  int
}

// report prints the figures. A fault that never came is a failure, if there were enough
// requests for all.
func (m *matrix) report(t *testing.T) {
	t.Helper()
	e := evidence{
		Cells: len(m.counts), Kills: m.killed, Stops: m.stopped, Posts: m.posts, Calls: m.calls, People: m.waited,
		Lost: m.found["lost"], Doubled: m.found["doubled"], Wrong: m.found["wrong"],
		Seconds: int(time.Since(m.begun).Seconds()),
	}
	points, met := map[string]bool{}, map[*fault]bool{}
	for c, n := range m.counts {
		e.Requests += n
		points[c.path.name+c.point.String()] = true
		met[c.fault] = true
	}
	e.Points, e.Faults = len(points), len(met)
	if m.requests >= enough && m.only == "" && !t.Failed() && e.Faults < len(faults) {
		t.Errorf("%d of %d faults have come", e.Faults, len(faults))
	}
	if os.Getenv("CRASH_PAGE") != "" && !t.Failed() {
		m.write(t, e)
	}
	fmt.Printf("FIGURES %d requests, %d points, %d faults, %d kills, %d lost, %d doubled, %d wrong\n",
		e.Requests, e.Points, e.Faults, e.Kills, e.Lost, e.Doubled, e.Wrong)
}

// logs is where the processes' logs go: nowhere, unless CRASH_LOG is set.
func logs(t *testing.T) io.Writer {
	t.Helper()
	if os.Getenv("CRASH_LOG") == "" {
		return nil
	}
	return t.Output()
}
