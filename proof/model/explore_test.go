package model

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/internal/testkit/prove"
)

// few is how many states a configuration may have to be checked in make test; make model
// checks them all.
const few = 200_000

var small = prove.Some(few, math.MaxInt)

// TestModel checks every configuration: every order of steps within its bounds. The
// numbers of states are on proof/model/README.md, which TestPage holds to configs.
func TestModel(t *testing.T) {
	t.Parallel()
	var states atomic.Int64
	for _, c := range configs() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.States > small {
				t.Logf("%d states are for make model", c.States)
				return
			}
			out := explore(c.without())
			states.Add(int64(out.states))
			t.Logf("%d states, none over %d steps away", out.states, out.depth)
			if out.broken != Holds {
				t.Fatalf("it doesn't hold that %v:\n%s", out.broken, story(out.schedule))
			}
			if out.states != c.States {
				t.Errorf("%d states, and the configuration says %d: after a change of the model, write the new number there", out.states, c.States)
			}
		})
	}
	t.Cleanup(func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%d MiB from the system", m.Sys>>20)
		t.Logf("FIGURES %d states", states.Load())
	})
}

func total() (n int) {
	for _, c := range configs() {
		n += c.States
	}
	return n
}

// A model that can't fail proves nothing: without any one of its rules it breaks.
func TestEachRuleIsNeeded(t *testing.T) {
	t.Parallel()
	var needed atomic.Int64
	t.Cleanup(func() { t.Logf("FIGURES %d rules removed", needed.Load()) })
	for r, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			if rule.belt != "" {
				t.Logf("nothing breaks without it: %s", rule.belt)
				return
			}
			out := explore(named(t, rule.in).without(Rule(r)))
			if out.broken != rule.breaks {
				t.Fatalf("without the rule that %s, in %q: broken is %q, want %q", rule.says, rule.in, out.broken, rule.breaks)
			}
			needed.Add(1)
			t.Logf("%s\n%d steps in %q, and no longer true: %s\n%s", rule.says, len(out.schedule), rule.in, out.broken, story(out.schedule))
		})
	}
}

// Where a rule needs another one's help to be seen, the two together show it.
func TestBelts(t *testing.T) {
	t.Parallel()
	for r, rule := range rules {
		if rule.belt == "" {
			continue
		}
		for _, c := range configs() {
			if c.States > min(small, 400_000) || Rule(r) == Bury && c.Change != OfScope {
				continue
			}
			if out := explore(c.without(Rule(r))); out.broken != Holds {
				t.Errorf("%s is no belt: in %q, %q breaks without it:\n%s", rule.name, c.Name, out.broken, story(out.schedule))
			}
		}
	}
}

func named(t *testing.T, name string) Config {
	t.Helper()
	for _, c := range configs() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no configuration is named %q", name)
	return Config{}
}

func story(steps []Step) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%4d. %v\n", i+1, s)
	}
	return b.String()
}
