package mix

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/seal"
)

// The environment of TestMix.
const (
	envSeeds   = "MIX_SEEDS"   // how many seeds
	envSeed    = "MIX_SEED"    // one seed, as a failure prints it, with its history
	envFirst   = "MIX_FIRST"   // the first seed; else a new one is drawn
	envShrink  = "MIX_SHRINK"  // how many shorter episodes are tried
	envAll     = "MIX_ALL"     // go on after a failure, and count them
	envPlanted = "MIX_PLANTED" // among how many seeds a planted fault has to be found
)

// enough is from how many seeds on each choice must have been drawn.
const enough = 2000

// result is an episode's.
type result struct {
	wrong   []string
	history []string
	fired   map[choice]int
	calls   int
}

// play plays an episode in a bubble of its own.
func play(t *testing.T, d *drawn, record bool) (r result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(newPlan(d), record)
		w.plays()
		w.run()
		if len(w.wrong) == 0 {
			w.check()
		}
		w.close()
		r = result{w.wrong, w.history, w.fired, w.steps}
	})
	return r
}

func newWorld(p *plan, record bool) *world {
	w := &world{
		plan: p, begin: time.Now(), record: record, ledger: newLedger(), provider: provider{keys: make(map[string]*payment), out: make(map[string]outage), sent: make(map[string]bool)},
		fleet: fleet{version: 1}, left: len(p.customers), fired: make(map[choice]int), wake: make(chan struct{}, 1),
	}
	key := sha256.Sum256([]byte("mix"))
	static, err := seal.NewStatic("k", map[string][]byte{"k": key[:]})
	if err != nil {
		panic(err)
	}
	w.sealer = seal.New(static)
	w.ctx, w.stop = context.WithCancelCause(context.Background())
	w.db = &fakedynamo.DB{Changed: w.changed}
	w.spy = w.open(w.db)
	return w
}

// plays begins what happens whatever becomes of it.
func (w *world) plays() {
	w.note("program", "%s", w.scripts[0])
	w.note("program", "%s", w.settings())
	for _, c := range w.customers {
		w.after(c.at, func() { w.send(c) })
	}
	w.after(30*time.Minute, w.expire)
}

// TestMix plays seeds, new ones in each run. It fails at the first that breaks a promise, with the shortest
// history that it finds, and if a choice was never drawn.
func TestMix(t *testing.T) {
	t.Parallel()
	if s := os.Getenv(envSeed); s != "" {
		d, err := parseSeed(s)
		if err != nil {
			t.Fatalf("%s: %v", envSeed, err)
		}
		r := play(t, d, true)
		t.Logf("seed %s:\n%s", d, strings.Join(r.history, "\n"))
		if len(r.wrong) > 0 {
			t.Errorf("it fails:\n%s", strings.Join(r.wrong, "\n"))
		}
		return
	}
	seeds, first := environment(t, envSeeds, 100), environment(t, envFirst, 1+rand.IntN(1<<30))
	t.Logf("make mix %s=%d SEEDS=%d plays these programs again", envFirst, first, seeds)
	sum := mix(t, first, seeds, plants{})
	for name, failed := range sum.failed {
		report(t, name, failed, sum.findings[name])
	}
	for _, c := range switches {
		if sum.fired[c] == 0 && isFault(c) && seeds >= enough {
			t.Errorf("%q never happened in %d seeds", c, seeds)
		}
	}
	faults := 0
	for _, n := range sum.fired {
		faults += n
	}
	t.Logf("%v", sum.fired)
	t.Logf("FIGURES %d programs, %d faults", sum.seeds, faults)
}

func environment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: a number above zero", name, s)
	}
	return n
}

// isFault reports whether c is counted when it happens.
func isFault(c choice) bool {
	return place[c] >= place[requestLost] && place[c] < place[absent] || place[c] >= place[providerOut]
}

// summary is a run's.
type summary struct {
	seeds    int
	findings map[string]int // by promise
	fired    map[choice]int
	failed   map[string]*drawn // the first seed, by promise
}

// mix plays seeds, several at once, until one fails.
func mix(t *testing.T, first, seeds int, like plants) summary {
	t.Helper()
	sum := summary{findings: make(map[string]int), fired: make(map[choice]int), failed: make(map[string]*drawn)}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Bool
		on     = os.Getenv(envAll) != ""
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1) - 1)
				if i >= seeds {
					return
				}
				d := &drawn{n: uint64(first + i), plants: like}
				r := play(t, d, false)
				mu.Lock()
				sum.seeds++
				for c, n := range r.fired {
					sum.fired[c] += n
				}
				if len(r.wrong) > 0 {
					name := promise(r.wrong)
					if sum.findings[name]++; sum.failed[name] == nil || d.n < sum.failed[name].n {
						sum.failed[name] = d
					}
					failed.Store(!on)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sum
}

// promise is the name of the first promise that is broken.
func promise(wrong []string) string {
	name, _, _ := strings.Cut(wrong[0], ":")
	return name
}

// report fails with the shortest history of a failure that can be found.
func report(t *testing.T, name string, d *drawn, n int) {
	t.Helper()
	small, r := shrink(t, d, environment(t, envShrink, 400))
	t.Errorf("%q is broken by %d seeds, such as %s. The shortest history that was found, make mix SEED=%s:\n%s\n%s", name, n, d, small,
		strings.Join(r.history, "\n"), strings.Join(r.wrong, "\n"))
}

// shrink switches off what a failure doesn't need.
func shrink(t *testing.T, d *drawn, budget int) (*drawn, result) {
	t.Helper()
	best := play(t, d, true)
	name := promise(best.wrong)
	try := func(next *drawn) bool {
		if budget--; budget < 0 {
			return false
		}
		r := play(t, next, true)
		if len(r.wrong) == 0 || promise(r.wrong) != name || len(r.history) > len(best.history) {
			return false
		}
		d, best = next, r
		return true
	}
	for again := true; again && budget > 0; {
		again = false
		for _, c := range slices.Backward(switches[:]) {
			if d.on(c) {
				next := *d
				next.off[place[c]] = true
				again = try(&next) || again
			}
		}
	}
	return d, best
}

// TestRepeats plays seeds twice: their histories are the same, line by line, as that of a
// failure is by the seed that it prints. It leaves renewals of leases out, as the
// simulation does (simulation.TestRepeats says why).
func TestRepeats(t *testing.T) {
	t.Parallel()
	for n := range uint64(30) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			d := &drawn{n: 1000 + n, plants: plants{steady: true}}
			a, b := play(t, d, true), play(t, d, true)
			for i := range min(len(a.history), len(b.history)) {
				if a.history[i] != b.history[i] {
					t.Fatalf("line %d differs:\n%s\n%s\n%s", i, strings.Join(a.history[max(0, i-5):i], "\n"), a.history[i], b.history[i])
				}
			}
			if len(a.history) != len(b.history) {
				t.Errorf("%d and %d lines", len(a.history), len(b.history))
			}
		})
	}
}

// TestSeedsAreRead reads what is printed.
func TestSeedsAreRead(t *testing.T) {
	t.Parallel()
	for _, few := range []bool{true, false} {
		d := &drawn{n: 7}
		for i := range d.off {
			d.off[i] = (i%20 == 3) == few
		}
		got, err := parseSeed(d.String())
		if err != nil || got.String() != d.String() || got.off != d.off {
			t.Errorf("%s is read as %v, %v", d, got, err)
		}
	}
	for _, s := range []string{"", "x", "1-x", "1-1000"} {
		if got, err := parseSeed(s); err == nil {
			t.Errorf("%q is read as %v", s, got)
		}
	}
	if seen := slices.Compact(slices.Sorted(maps.Keys(place))); len(seen) != len(switches) {
		t.Errorf("%d switches, and %d names", len(switches), len(seen))
	}
}
