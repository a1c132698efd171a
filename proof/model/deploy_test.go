package model

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Traces of a deploy: engines of two neighbouring releases use one key, and the next
// release rolls out at any time.

// options are those of a release.
func (c Change) options(o *idem.Options, p Program) {
	both := p == First || p == Second
	switch c {
	case NoChange:
	case OfScope:
		o.CallerFromOp = true
		everybody := func(context.Context, *idem.Request) (string, error) { return "everybody", nil }
		if p == Former {
			o.Scope = everybody
		}
		if both {
			o.Former = &idem.Former{Claims: p == First, Scope: everybody}
		}
	case OfFingerprint:
		o.Fingerprint.CanonicalJSON = p >= Second
		if both {
			o.Fingerprint.Known = []idem.Fingerprint{{CanonicalJSON: p < Second}}
		}
	}
}

// program is a release that runs.
func (t *trace) program() Program {
	if t.config.Change != NoChange && t.newest > Former && t.rnd.IntN(2) == 0 {
		return t.newest - 1
	}
	return t.newest
}

// clients is how many clients a trace has at most.
func (t *trace) clients() int {
	if t.config.Change == NoChange {
		return 3
	}
	return most - 1
}

// moves lets a release roll out, or a day pass, now and then.
func (t *trace) moves() {
	switch n := t.rnd.IntN(24); {
	case n == 0:
		t.deploys()
	case n <= 2 && t.ages():
		t.dayPasses()
	}
}

// ages reports whether a trace goes on beyond a key's lifetime.
func (t *trace) ages() bool { return t.config.Change != NoChange && t.config.Phases[1] == NoPhase }

// dayPasses ends what has an expiry. The model knows no attempt that sleeps for so long
// and then sets an expiry that has passed already: those end. Late commits may still land.
func (t *trace) dayPasses() {
	for _, a := range t.actors {
		if a.pending != nil && a.pending.take == nil {
			t.dies(a)
		}
	}
	lost := func(k *ask) bool { return k.commit == nil || !k.commit.Next.Expires.IsZero() }
	t.accept.loses(func(n int) bool { return lost(t.late[n]) })
	t.drop(lost)
	t.now = t.now.Add(25 * time.Hour)
	t.fired["a day passes"]++
	t.note("a day passes")
}

// deploys rolls the next release out, if the model does. The release before its neighbour
// is gone, but for attempts whose handler runs.
func (t *trace) deploys() {
	ac := t.accept
	t.closed()
	was := ac.worlds
	if ac.follows(func(s Step, _ *world) bool { return s.What == Deploys }, false); len(ac.worlds) == 0 {
		ac.worlds = was
		return
	}
	t.newest++
	t.fired["deploys"]++
	t.note("release %d rolls out", t.newest)
	gone := func(i int) bool { return ac.m.program(i)+1 < t.newest }
	t.drop(func(k *ask) bool { return k.claim != nil && gone(k.i) })
	for _, a := range t.actors {
		if a.pending != nil && a.claims() && a.at == 0 && gone(a.i) {
			t.dies(a)
		}
	}
}

// drop loses late packets.
func (t *trace) drop(which func(*ask) bool) { t.late = slices.DeleteFunc(t.late, which) }

// counts counts the writes that only a change of scope has.
func (t *trace) counts(a *actor, k *ask, applied bool) {
	switch c := k.commit; {
	case t.config.Change != OfScope || c == nil || !applied || k.pk == t.pks[t.accept.m.home(a.i)] || !a.claims():
	case c.Next.Owner == c.Prev.Owner:
		t.fired["works at the other place"]++
	case state.Over(c.Next.Expires, t.now):
		t.fired["fences"]++
	default:
		t.fired["takes over at the other place"]++
	}
}

// deployConfigs are the handlers of these traces.
func deployConfigs() []Config {
	var all []Config
	for _, change := range []Change{OfScope, OfFingerprint} {
		for _, phases := range [][2]Phase{{}, {Atomic}, {Atomic, Foreign}} {
			for _, resumable := range []bool{true, false} {
				c := Config{MaxTries: 1, Resumable: resumable, Expire: true, Phases: phases, Change: change}
				if phases[0] == Atomic {
					c.Jobs = Early
				}
				all = append(all, c)
			}
		}
	}
	return all
}

func playDeploys(t *testing.T, seed uint64, f *fault) *trace {
	t.Helper()
	return playWith(t, seed, 5, f, nil, deployConfigs())
}

// TestTracesOfDeploys follows histories in which a deploy changes the scope of keys, or
// their fingerprint.
func TestTracesOfDeploys(t *testing.T) {
	t.Parallel()
	follow(t, 1000, 1000, "histories of deploys", []string{
		"answered", "answer lost", "delayed", "doubled", "lost", "dies before", "dies after", "lands", "completer", "leases end",
		"a day passes", "deploys", "fences", "takes over at the other place", "works at the other place", "incomparable",
	}, playDeploys)
}

// deployFaults are planted in claims, and in writes at the other place.
var deployFaults = []fault{
	{name: "a claim that doesn't check the other place", claim: claiming(func(_ *trace, c *store.Claim) { c.Beside = "" })},
	{name: "a claim beside an expired record whose holders aren't fenced", claim: claiming(func(t *trace, c *store.Claim) {
		if r := t.record(c.Beside); r != nil && state.Over(r.Expires, c.Now) {
			c.Beside = ""
		}
	})},
	{name: "a claim at the other place", claim: claiming(func(_ *trace, c *store.Claim) {
		if c.Beside != "" {
			next := c.Next.Clone()
			next.PK, c.Beside = c.Beside, next.PK
			c.Next = next
		}
	})},
	{name: "a fence that leaves the owner", commit: changed(func(prev, next *store.Record) {
		if next.Owner != prev.Owner && state.Over(next.Expires, next.Run.Add(24*time.Hour)) {
			next.Owner = prev.Owner
		}
	})},
	{name: "a record that doesn't name its scheme", claim: claiming(func(_ *trace, c *store.Claim) { c.Next.Scheme = "" })},
}

// claiming is a store that gets other claims.
func claiming(change func(*trace, *store.Claim)) func(*trace, store.Claim) (*store.Record, error) {
	return func(t *trace, c store.Claim) (*store.Record, error) {
		change(t, &c)
		return t.store.Claim(context.Background(), c)
	}
}

// Each fault is found.
func TestTracesOfDeploysWithFaultsAreRefused(t *testing.T) {
	t.Parallel()
	refuse(t, deployFaults, 3000, playDeploys)
}
