package simulation

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The environment of TestSimulation.
const (
	envRequests = "SIM_REQUESTS" // how many; default 1000
	envSeed     = "SIM_SEED"     // one episode, as a failure prints it; or the first seed, as a number
	envShrink   = "SIM_SHRINK"   // among how many episodes a shorter history is looked for; default 300
)

// enough is from how many requests on each fault must have fired.
const enough = 1000

// TestSimulation plays episodes until it has played enough requests. It fails at the
// first that breaks a promise, with the shortest history that it finds, and if a fault
// never happened.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if s := os.Getenv(envSeed); strings.Contains(s, ".") {
		e, err := parseEpisode(s)
		if err != nil {
			t.Fatalf("%s: %v", envSeed, err)
		}
		r := play(t, e, true)
		t.Logf("episode %s:\n%s", e, strings.Join(r.history, "\n"))
		if len(r.wrong) > 0 {
			t.Errorf("it fails:\n%s", strings.Join(r.wrong, "\n"))
		}
		return
	}
	first, requests := environment(t, envSeed, 1), environment(t, envRequests, enough/slower)
	sum := simulate(t, uint64(first), requests, episode{})
	if sum.failed != nil {
		report(t, *sum.failed, environment(t, envShrink, 300))
		return
	}
	if told := sum.effects["clients with 201"] + sum.effects["clients with 402"]; told*10 < sum.requests*7 {
		t.Errorf("%d of %d clients have an answer", told, sum.requests)
	}
	for _, effect := range []string{"schedules", "executions", "later jobs"} {
		if sum.effects[effect] == 0 && requests >= enough {
			t.Errorf("no %s", effect)
		}
	}
	for _, f := range missing(sum.counts) {
		if requests >= enough {
			t.Errorf("fault %q never happened in %d requests", f, sum.requests)
		}
	}
	faults := 0
	for _, n := range sum.counts {
		faults += n
	}
	t.Logf("%v, at most %v calls of an invocation, %v", sum.counts, sum.most, sum.effects)
	t.Logf("FIGURES %d requests, %d episodes, %d faults", sum.requests, sum.episodes, faults)
}

func environment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: a number above zero, or an episode as a failure prints it", name, s)
	}
	return n
}

// summary is a run's.
type summary struct {
	requests, episodes int
	counts             map[fault]int
	most               map[string]int // calls of an invocation
	effects            map[string]int
	failed             *episode
}

// simulate plays episodes beginning with a seed, several at once.
func simulate(t *testing.T, seed uint64, requests int, like episode) summary {
	t.Helper()
	sum := summary{counts: make(map[fault]int), most: make(map[string]int), effects: make(map[string]int)}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		next   atomic.Uint64
		failed atomic.Bool
	)
	episodes := uint64((requests + perEpisode - 1) / perEpisode)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= episodes {
					return
				}
				e := like
				e.seed, e.requests = seed+i, perEpisode
				r := play(t, e, false)
				mu.Lock()
				sum.requests += e.requests
				sum.episodes++
				add(sum.counts, r.counts)
				for f, n := range r.most {
					sum.most[f] = max(sum.most[f], n)
				}
				for f, n := range r.effects {
					sum.effects[f] += n
				}
				if len(r.wrong) > 0 && (sum.failed == nil || e.seed < sum.failed.seed) {
					sum.failed = &e
					failed.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sum
}

// report fails with the shortest history of a failure that can be found.
func report(t *testing.T, e episode, budget int) {
	t.Helper()
	small, r := shrink(t, e, budget)
	t.Errorf("episode %s fails:\n%s\n\nthe shortest history that was found, make simulate SEED=%s:\n%s", e, strings.Join(r.wrong, "\n"), small,
		strings.Join(r.history, "\n"))
}

// TestRepeats plays episodes twice: their histories are the same, line by line, as that of
// a failure is by the seed that it prints. It leaves renewals of leases out. The scheduler
// orders the calls of all goroutines, and what a goroutine does between its calls touches
// no other, except that a handler may end in the nanosecond in which its lease is renewed:
// then Go chooses at random which of them comes first.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			e := episode{seed: 1000 + seed, requests: perEpisode, noRenewals: true}
			if seed%2 == 0 {
				e.releases = inOrder
			}
			a, b := play(t, e, true), play(t, e, true)
			if len(a.history) < 100 {
				t.Errorf("a history of %d lines", len(a.history))
			}
			if slices.Equal(a.history, b.history) {
				return
			}
			for i := range min(len(a.history), len(b.history)) {
				if a.history[i] != b.history[i] {
					t.Fatalf("line %d differs:\n%s\n%s\n%s", i, strings.Join(a.history[max(0, i-5):i], "\n"), a.history[i], b.history[i])
				}
			}
			t.Errorf("%d and %d lines", len(a.history), len(b.history))
		})
	}
}
