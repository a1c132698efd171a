package tenants_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/prove"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// Settings of `make fuzz-tenants`: how many requests, and a seed that a failure has
// printed.
const (
	sizeEnv       = "TENANTTEST_N"
	sizeDynamoEnv = "TENANTTEST_DYNAMO_N"
	seedEnv       = "TENANTTEST_SEED"
)

// episode is how many requests share a store.
const episode = 300

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// firstSeed returns the seed of the first episode; those of the next ones follow it.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
		return seed
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return binary.BigEndian.Uint64(b[:]) >> 16
}

// tally counts what requests met.
type tally struct {
	requests, shared int // shared: the key was also used by another group, in the same app
	runs             int
	answers          map[string]int
	leaks            []string
}

func (c *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests (%d with a key that others use too), %d runs of a handler, %d leaks;", c.requests, c.shared, c.runs, len(c.leaks))
	names := make([]string, 0, len(c.answers))
	for name := range c.answers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, " %s %d", name, c.answers[name])
	}
	return b.String()
}

// judge compares what each group met in the shared world with what it meets alone, on a
// memory store and without planted faults. calls says that both stores are of one kind,
// so that the calls are compared as well.
func (c *tally) judge(ctx context.Context, s *script, shared *world, set settings, calls bool) {
	groups := make(map[caller]bool)
	users := make(map[string]map[caller]bool)
	for _, r := range s.all {
		g := s.group(r)
		groups[g] = true
		k := apps[r.app].name + "|" + r.key
		if users[k] == nil {
			users[k] = make(map[caller]bool)
		}
		users[k][g] = true
	}
	set.plant = planted{}
	alone := make(map[caller]*world)
	for g := range groups {
		alone[g] = newWorld(s, &idem.MemoryStore{}, shared.epoch, set, &g)
		alone[g].play(ctx)
	}
	for _, r := range s.all {
		c.requests++
		got, want := shared.sent[r.index].Load(), alone[s.group(r)].sent[r.index].Load()
		if len(users[apps[r.app].name+"|"+r.key]) > 1 {
			c.shared++
		}
		c.runs += len(got.ran)
		c.answers[kindOf(r, got)]++
		var why string
		switch {
		case got.foreign() != "":
			why = "it holds " + got.foreign()
		case told(got.answer, !calls) != told(want.answer, !calls):
			why = "alone it is\n\t" + cut(want.answer)
		case !slices.Equal(got.ran, want.ran):
			why = fmt.Sprintf("its handler ran as %v, alone as %v", got.ran, want.ran)
		case calls && !slices.Equal(got.calls, want.calls):
			why = fmt.Sprintf("its calls are %v, alone %v", got.calls, want.calls)
		default:
			continue
		}
		c.leaks = append(c.leaks, fmt.Sprintf("seed %d (%s=%d), after %d requests: %s\n\tthe answer is\n\t%s\n\t%s",
			s.seed, seedEnv, s.seed, c.requests, s.describe(r), cut(got.answer), why))
	}
}

func cut(s string) string {
	if len(s) > 600 {
		s = s[:600] + "…"
	}
	return s
}

// kindOf names what a request met.
func kindOf(r *request, v *visit) string {
	switch {
	case r.resume != nil && strings.Contains(v.answer, `"outcome":`):
		_, rest, _ := strings.Cut(v.answer, `"outcome":"`)
		outcome, _, _ := strings.Cut(rest, `"`)
		return "ticket:" + outcome
	case r.resume != nil:
		return "ticket:none"
	case typed(r.door) && strings.HasPrefix(v.answer, "error"):
		return "typed:error"
	case typed(r.door) && len(v.ran) > 0:
		return "typed:run"
	case typed(r.door):
		return "typed:replay"
	}
	_, rest, answered := strings.Cut(v.answer, `"statusCode":`)
	status, _, _ := strings.Cut(rest, ",")
	if !answered {
		return "passed:error" // of a handler that runs without a key
	}
	if strings.Contains(v.answer, `"Idempotent-Replayed":"true"`) {
		status += ":replay"
	}
	return status
}

// fuzz plays episodes until n requests are sent or a leak is found.
func (c *tally) fuzz(ctx context.Context, seed uint64, n int, set settings, calls bool, open func() store.Store) {
	c.answers = make(map[string]int)
	for c.requests < n && len(c.leaks) == 0 {
		s := generate(seed, min(episode, n-c.requests))
		shared := newWorld(s, open(), time.Now().Truncate(time.Second), set, nil)
		shared.play(ctx)
		c.judge(ctx, s, shared, set, calls)
		seed++
	}
}

// restOfLease is how long an answer of a ticket tells its reader to wait.
var restOfLease = regexp.MustCompile(`"retry_after_ms":\d+`)

// told is an answer to compare. A lease ends with its invocation, whose time is real
// outside of a bubble: there, what is left of it is not compared.
func told(answer string, realTime bool) string {
	if realTime {
		return restOfLease.ReplaceAllString(answer, `"retry_after_ms":0`)
	}
	return answer
}

func (c *tally) report(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf("seed %d: %v", seed, c)
	t.Logf("FIGURES %d requests, %d leaks", c.requests, len(c.leaks))
	for _, leak := range c.leaks[:min(len(c.leaks), 5)] {
		t.Error(leak)
	}
	// A run that meets nothing proves nothing. The numbers are of requests after which
	// chance leaves out none.
	for kind, after := range map[string]int{
		"201": 3000, "201:replay": 3000, "400": 3000, "422": 3000, "500": 3000, "typed:run": 3000, "typed:replay": 3000, "typed:error": 3000,
		"ticket:moved": 3000, "200:replay": 300000, "202": 300000, "402:replay": 300000, "404": 300000, "409": 300000, "410": 300000,
		"ticket:done": 300000, "ticket:failed": 300000, "ticket:not_mine": 300000, "ticket:in_flight": 300000,
	} {
		if c.answers[kind] == 0 && c.requests >= after {
			t.Errorf("no request met %s", kind)
		}
	}
}

func memoryStore() store.Store { return &idem.MemoryStore{} }

// inMemory is the settings of a bubble, whose time passes while all wait.
func inMemory(plant planted) settings {
	return settings{settle: synctest.Wait, plant: plant}
}

// Each caller gets what the caller gets alone: the same answer, byte for byte, by the
// same runs of the handler, after the same calls of the same sizes to the store.
func TestTenantsInMemory(t *testing.T) {
	t.Parallel()
	n := 10000
	if testing.Short() {
		n = 3000
	}
	n = setting(t, sizeEnv, n)
	seed, began, c := firstSeed(t), time.Now(), tally{}
	synctest.Test(t, func(t *testing.T) {
		c.fuzz(t.Context(), seed, n, inMemory(planted{}), true, memoryStore)
	})
	c.report(t, seed)
	t.Logf("in %v", time.Since(began).Round(time.Second))
}

// The same on a table: what the table's world answers is what the memory store
// answers each caller alone.
func TestTenantsOnDynamoDB(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	n := setting(t, sizeDynamoEnv, prove.Some(200, 1000))
	seed, began, c := firstSeed(t), time.Now(), tally{}
	c.fuzz(t.Context(), seed, n, settings{}, false, func() store.Store {
		table := "t-" + rand.Text()
		client := db.Client(dynamo.Tune)
		if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
			t.Fatal(err)
		}
		s, err := dynamo.New(client, table)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	c.report(t, seed)
	t.Logf("in %v", time.Since(began).Round(time.Second))
}

// At once: what callers share in a process (an engine, its cache, a store) keeps them
// apart also while they use it together. The order is random, so only the marks in the
// answers are judged.
func TestTenantsAtOnce(t *testing.T) {
	t.Parallel()
	seed := firstSeed(t)
	s := generate(seed, 2000)
	w := newWorld(s, memoryStore(), time.Now().Truncate(time.Second), settings{}, nil)
	var together sync.WaitGroup
	next := make(chan *request)
	for range 8 {
		together.Go(func() {
			for r := range next {
				w.visit(t.Context(), r)
			}
		})
	}
	for _, r := range s.roots {
		next <- r
	}
	close(next)
	together.Wait()
	for i := range w.sent {
		v := w.sent[i].Load()
		if mark := v.foreign(); mark != "" {
			t.Errorf("seed %d: %s: %s holds %s", seed, s.describe(v.req), cut(v.answer), mark)
		}
	}
}
