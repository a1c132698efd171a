package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	if told := sum.Effects["clients with 201"] + sum.Effects["clients with 402"]; told*10 < sum.Requests*7 {
		t.Errorf("%d of %d clients have an answer", told, sum.Requests)
	}
	for _, effect := range []string{"schedules", "executions", "later jobs"} {
		if sum.Effects[effect] == 0 && requests >= enough {
			t.Errorf("no %s", effect)
		}
	}
	for _, f := range missing(sum.counts) {
		if requests >= enough {
			t.Errorf("fault %q never happened in %d requests", f, sum.Requests)
		}
	}
	sum.log(t)
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
	Name     string         `json:"name"`
	Requests int            `json:"requests"`
	Episodes int            `json:"episodes"`
	Seed     uint64         `json:"first_seed"`
	Faults   int            `json:"faults"`
	ByFault  map[fault]int  `json:"by_fault"`
	Virtual  string         `json:"virtual_time"`
	Wall     string         `json:"wall_time"`
	Most     map[string]int `json:"most_calls_of_an_invocation"`
	Effects  map[string]int `json:"outcomes"`

	counts map[fault]int
	failed *episode
}

// simulate plays episodes beginning with a seed, several at once.
func simulate(t *testing.T, seed uint64, requests int, like episode) summary {
	t.Helper()
	begin := time.Now()
	sum := summary{Name: "simulation", Seed: seed, counts: make(map[fault]int), Most: make(map[string]int), Effects: make(map[string]int)}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		virtual time.Duration
		next    atomic.Uint64
		failed  atomic.Bool
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
				sum.Requests += e.requests
				sum.Episodes++
				virtual += r.virtual
				add(sum.counts, r.counts)
				for f, n := range r.most {
					sum.Most[f] = max(sum.Most[f], n)
				}
				for f, n := range r.effects {
					sum.Effects[f] += n
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
	for _, n := range sum.counts {
		sum.Faults += n
	}
	sum.ByFault, sum.Virtual, sum.Wall = sum.counts, virtual.Round(time.Minute).String(), time.Since(begin).Round(time.Millisecond).String()
	return sum
}

// log prints the run's figures in a line for docs/inside/proof.md.
func (s summary) log(t *testing.T) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("EVIDENCE %s", b)
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
