package model

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Traces of look-ups: calls arrive late or never, look-ups are behind or fail. A lease takes an
// hour, time passes in steps of three hours: a look-up counts two steps after its call.

// traceWithin is the longest time of a copy on its way, and of a look-up that is behind.
const traceWithin = 150 * time.Minute

// sent is a call to the provider.
type sent struct {
	op      string
	turn    uint8 // of its sender
	arrived bool
}

// options are those of a phase that calls.
func (a *actor) options(phase Phase, k int) (opts []idem.PhaseOption) {
	c, f := &a.t.config, a.t.fault
	switch {
	case phase == NotIdempotent, c.Never && f != nil && f.again:
		opts = append(opts, idem.NotIdempotent())
	case c.Never:
		opts = append(opts, idem.Remembers(0))
	}
	if !c.LookUp {
		return opts
	}
	within := traceWithin
	if f != nil && f.within > 0 {
		within = f.within
	}
	return append(opts, idem.Sends("pay", a.data), idem.LookUp(func(_ context.Context, c idem.Call) (int, idem.Found, error) {
		r := a.ask(&ask{look: &c})
		if r.found != idem.Made {
			return 0, r.found, r.err
		}
		return a.value(k), r.found, nil
	}, within))
}

// holds notes a new holder of the record, and until when its calls may be sent.
func (t *trace) holds(before, after *store.Record) {
	ac := t.accept
	switch {
	case !t.config.LookUp || after == nil || before != nil && before.Ver == after.Ver && before.Owner == after.Owner:
	case after.State == store.Open && !after.Lease.IsZero() && (before == nil || before.Owner != after.Owner):
		t.turns[int(ac.nonces[after.Owner])-1] = uint8(len(ac.ends))
		ac.ends = append(ac.ends, after.Lease)
	case before != nil && after.Lease.IsZero() && before.Owner == after.Owner && after.DoubtUntil.After(before.Lease):
		// It has called after its lease, and gives the record back: the doubt begins then.
		ac.ends[t.turns[int(ac.nonces[after.Owner])-1]] = after.DoubtUntil
	}
}

// onWay counts the calls that are on their way.
func (t *trace) onWay() (n int) {
	for _, s := range t.sent {
		if !s.arrived {
			n++
		}
	}
	return n
}

// callArrives lets a call arrive that is on its way.
func (t *trace) callArrives() {
	n := slices.IndexFunc(t.sent, func(s sent) bool { return !s.arrived })
	t.sent[n].arrived = true
	turn := t.sent[n].turn
	t.closed()
	t.accept.follows(func(s Step, _ *world) bool { return s.What == Arrives && s.Op == turn }, false)
	t.fired["call arrives"]++
	t.note("the call of holder %d arrives", turn)
}

// asked has the provider answer the look-ups that have begun. Their attempts hear it later.
func (t *trace) asked() {
	for _, a := range t.actors {
		if a.pending != nil && a.pending.look != nil && a.pending.found == nil {
			t.finds(a, a.pending)
			t.fired["time passes during a look-up"]++
		}
	}
}

// looksUp answers a look-up.
func (t *trace) looksUp(a *actor, k *ask) {
	if k.found == nil {
		t.finds(a, k)
	}
	t.answers(a, *k.found)
	if next := a.pending; k.found.found == idem.NotMade && next != nil && next.commit != nil && next.commit.Next.Mark != "" && !next.commit.Next.Lease.IsZero() {
		t.fired["called once more"]++
	}
}

// finds is what the provider says to a look-up: what is true, or less.
func (t *trace) finds(a *actor, k *ask) {
	made, shows := false, false
	for _, s := range t.sent {
		if s.arrived {
			made, shows = true, shows || s.turn <= t.accept.over(t.now) && !t.config.Never
		}
	}
	fate := Failed
	k.found = &answer{err: errNet}
	switch n := t.rnd.IntN(4); {
	case n == 0:
	case made && (shows || n > 1):
		fate, k.found = Made, &answer{found: idem.Made}
	default:
		fate, k.found = NotMade, &answer{found: idem.NotMade}
	}
	t.closed()
	t.accept.follows(func(s Step, _ *world) bool { return int(s.Who) == a.i+1 && s.What == LooksUp && s.Fate == fate }, false)
	t.fired["look-up"+fateNames[fate]]++
	t.note("attempt %d looks the call up%s", a.i+1, fateNames[fate])
}

// overdue ends what is on its way for longer than within: calls, and attempts that were
// about to call, or have called.
func (t *trace) overdue() {
	if !t.config.LookUp {
		return
	}
	over := t.accept.over(t.now)
	for _, a := range t.actors {
		if a.pending != nil && (a.called || a.pending.key != "") && t.turns[a.i] <= over {
			t.dies(a)
		}
	}
	t.sent = slices.DeleteFunc(t.sent, func(s sent) bool { return !s.arrived && s.turn <= over && !t.config.Never })
}

// lookUpConfigs are the handlers of these traces.
func lookUpConfigs() (all []Config) {
	for _, c := range []Config{{Phases: [2]Phase{NotIdempotent}}, {Phases: [2]Phase{Atomic, NotIdempotent}}, {Phases: [2]Phase{Foreign}, Never: true}} {
		for _, resumable := range []bool{true, false} {
			c.LookUp, c.MaxTries, c.Resumable, c.Expire, c.Jobs = true, 1, resumable, true, Late
			if c.Phases[0] == Atomic {
				c.Jobs = AllJobs
			}
			all = append(all, c)
		}
	}
	return all
}

func playLookUps(t *testing.T, seed uint64, f *fault) *trace {
	t.Helper()
	return playWith(t, seed, 7, f, nil, lookUpConfigs())
}

// TestTracesOfLookUps follows histories whose calls are looked up where they may not be repeated.
func TestTracesOfLookUps(t *testing.T) {
	t.Parallel()
	follow(t, 1000, 1000, "histories of look-ups", []string{
		"answered", "answer lost", "delayed", "doubled", "conflict", "lost", "dies before", "dies after", "lands", "completer", "operator", "leases end",
		"slow call", "call arrives", "look-up: made", "look-up: not made", "look-up, and gets an error", "called once more", "time passes during a look-up", "settled by asking",
	}, playLookUps)
}

// lookUpFaults are planted in the handler's look-up, or in the writes about it.
var lookUpFaults = []fault{
	{name: "within is too short", within: time.Minute},
	{name: "a call that is never made again is made", again: true},
	{name: "a doubt that counts from the first copy", commit: changed(func(prev, next *store.Record) {
		if !prev.DoubtUntil.IsZero() && !next.DoubtUntil.IsZero() {
			next.DoubtUntil = prev.DoubtUntil
		}
	})},
	{name: "a release after which no copy is sent", commit: changed(func(prev, next *store.Record) {
		if next.Lease.IsZero() && next.DoubtUntil.Equal(prev.Lease) {
			next.DoubtUntil = prev.Run
		}
	})},
	{name: "a call whose mark is not written anew", commit: func(t *trace, c store.Commit) (*store.Record, error) {
		if c.Next.Mark != "" && len(c.Next.Doubts) < len(c.Prev.Doubts) {
			return nil, nil
		}
		return t.store.Commit(context.Background(), c)
	}},
	{name: "a look-up that ends the doubt", commit: changed(func(prev, next *store.Record) {
		if next.Asked != nil && next.State == store.Open && next.Lease.IsZero() {
			next.Doubts, next.DoubtSince, next.DoubtUntil = nil, time.Time{}, time.Time{}
		}
	})},
	{name: "a look-up that counts before within", commit: changed(func(prev, next *store.Record) {
		if next.Asked != nil && next.Asked.Said == "not made yet" && next.State == store.Open {
			next.Tries = prev.Tries + 1
		}
	})},
}

// Each fault is found.
func TestTracesOfLookUpsWithFaultsAreRefused(t *testing.T) {
	t.Parallel()
	refuse(t, lookUpFaults, 3000, playLookUps)
}
