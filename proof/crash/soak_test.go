//go:build linux

package crash_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/proof/internal/harness"
)

// TestSoak has two applications under mixed traffic for SOAK, 3 s by default. In one,
// requests meet the faults of the matrix. In the other nothing fails, and its processes
// live to the end: their memory must not grow. In the end nothing is left in the
// tables but what expires, and of the test's process no goroutine, no file and no
// temporary file.
func TestSoak(t *testing.T) {
	db, bin := dynamotest.Start(t), build(t)
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "3s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{m: newMatrix(t), bin: bin, temp: t.TempDir(), rss: map[string][]int64{}}
	s.m.requests = min(500, 10+int(lasts.Minutes())*50)
	t.Setenv("TMPDIR", s.temp)
	t.Run("crash points", func(t *testing.T) { s.m.discover(t, newWorld(t, db, bin)) })
	before := s.census(t)
	s.end = time.Now().Add(lasts)
	t.Run("traffic", func(t *testing.T) {
		t.Run("calm", s.calm)
		t.Run("storm", s.storm)
	})
	after := s.census(t)
	for began := time.Now(); after.over(before) && time.Since(began) < time.Minute; after = s.census(t) {
		sleep(t.Context(), 100*time.Millisecond) // connections are closing
	}
	if after.over(before) {
		stacks := make([]byte, 1<<20)
		t.Errorf("left: %+v, before: %+v\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
	}
	grown := map[string]growth{}
	for name, kb := range s.rss {
		g := growthOf(kb)
		grown[name] = g
		if lasts >= 5*time.Minute && g.leaks() {
			t.Errorf("the memory of %s grows: %+v", name, g)
		}
	}
	if len(s.rss) < 4 {
		t.Errorf("the memory of %d processes was seen, want that of test, API, worker and consumer", len(s.rss))
	}
	if t.Failed() {
		return
	}
	fmt.Printf("FIGURES %d requests in %v, %d kills, %d lost, %d doubled, %d wrong, memory in KB %+v\n", s.m.met()+s.calmed,
		time.Since(s.m.begun).Round(time.Second), s.m.killed, s.m.found["lost"], s.m.found["doubled"], s.m.found["wrong"], grown)
}

type soak struct {
	m    *matrix
	bin  programs
	end  time.Time
	temp string

	mu     sync.Mutex
	rss    map[string][]int64 // in KB, by process
	calmed int
}

// storm plays cells of the matrix, each episode on a database of its own.
func (s *soak) storm(t *testing.T) {
	t.Parallel()
	for first := true; (first || time.Now().Before(s.end)) && !t.Failed(); first = false {
		s.m.seed++
		todo := s.m.plan(t)
		t.Run("episode", func(t *testing.T) { s.m.play(t, newWorld(t, s.database(t), s.bin), todo) })
	}
}

// database is a process that ends with the test.
func (s *soak) database(t *testing.T) *dynamotest.DB {
	t.Helper()
	db, err := dynamotest.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// calm sends a request of each kind in turn, one client each, and weighs the processes.
func (s *soak) calm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, s.database(t), s.bin)
	ctx, cancel := context.WithDeadline(t.Context(), s.end)
	defer cancel()
	var wg sync.WaitGroup
	for i, p := range paths {
		if len(p.before) > 0 || p.fails {
			continue
		}
		wg.Go(func() {
			for n := 0; n == 0 || sleep(ctx, 2*time.Second); n++ {
				r := w.newRun(i*1_000_000+n, p)
				r.play(t.Context())
				findings, _ := r.found()
				for _, f := range findings {
					s.m.find(t, p.name+", without a fault", f)
				}
				w.forget(r)
				s.mu.Lock()
				s.calmed++
				s.mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		wg.Wait()
	}()
	every := time.NewTicker(max(time.Until(s.end)/100, 500*time.Millisecond))
	defer every.Stop()
	for alive := true; alive; {
		s.weigh("test", os.Getpid())
		for name, p := range map[string]*pool{"API": w.api, "worker": w.worker, "consumer": w.consumer} {
			if pids := p.pids(); len(pids) > 0 {
				s.weigh(name, slices.Min(pids))
			}
		}
		select {
		case <-every.C:
		case <-over:
			alive = false
		}
	}
	w.drained(t)
}

// weigh notes the resident memory of a process.
func (s *soak) weigh(name string, pid int) {
	if kb, ok := harness.Memory(pid, "VmRSS"); ok { // otherwise it has just ended
		s.mu.Lock()
		s.rss[name] = append(s.rss[name], int64(kb))
		s.mu.Unlock()
	}
}

// growth is the memory of a process in the second and in the last third of its time:
// the medians, in KB.
type growth struct{ Then, Now int64 }

func growthOf(kb []int64) growth {
	third := len(kb) / 3
	median := func(part []int64) int64 {
		if len(part) == 0 {
			return 0
		}
		part = slices.Sorted(slices.Values(part))
		return part[len(part)/2]
	}
	return growth{median(kb[third : 2*third]), median(kb[len(kb)-third:])}
}

// leaks reports whether memory grows by more than a heap breathes.
func (g growth) leaks() bool { return g.Now > g.Then+g.Then/8+4096 }

func TestGrowth(t *testing.T) {
	t.Parallel()
	var flat, leak, start []int64
	for i := range int64(99) {
		flat = append(flat, 30_000+i*7919%4000)
		leak = append(leak, 30_000+300*i)
		start = append(start, 30_000-max(0, 20_000-1000*i))
	}
	for name, tc := range map[string]struct {
		kb   []int64
		want bool
	}{"breathes": {flat, false}, "leaks": {leak, true}, "warms up": {start, false}, "one": {[]int64{1}, false}} {
		if got := growthOf(tc.kb); got.leaks() != tc.want {
			t.Errorf("%s: %+v leaks: %v", name, got, got.leaks())
		}
	}
}

// census is what the test's process holds.
type census struct{ Goroutines, Files, Temporary int }

func (c census) over(before census) bool {
	return c.Goroutines > before.Goroutines || c.Files > before.Files || c.Temporary > before.Temporary
}

func (s *soak) census(t *testing.T) census {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := os.ReadDir(s.temp)
	if err != nil {
		t.Fatal(err)
	}
	return census{runtime.NumGoroutine(), len(files), len(temporary)}
}
