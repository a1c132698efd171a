package idemtest

import (
	"context"
	"strconv"
	"sync"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Twice returns a store that wraps s. In this store, each commit of a phase or an answer
// fails with a conflict at the first try. So each [idem.Atomic] and [idem.Finish] runs
// twice, as in production when others write the same items. Tests with this store show
// whether a handler obeys a rule: the function of a phase returns its result, and has no
// effect except through its Tx. An [idem.Foreign] isn't run again; only its commit is sent
// again.
func Twice(s store.Store) *FaultyStore { return Faulty(s, everyAtomicTwice()) }

func everyAtomicTwice() Plan {
	var mu sync.Mutex
	struck := make(map[string]bool)
	return func(_ context.Context, c Call) Fault {
		next := c.Commit.Next
		if c.Verb == "Claim" {
			next = c.Claim.Next
		}
		if next == nil || next.State != store.Done && len(next.Phases) == 0 || next.State == store.Open && next.Lease.IsZero() {
			return Fault{} // don't refuse a claim without a phase, or a release
		}
		id := next.PK + " " + next.Owner + " " + strconv.FormatInt(next.Ver, 10)
		mu.Lock()
		defer mu.Unlock()
		if struck[id] {
			return Fault{}
		}
		struck[id] = true
		if runsAgain(c.Commit.Prev, next) {
			return Fault{Err: store.ErrChanged}
		}
		return Fault{Err: idem.ErrConflict}
	}
}

// runsAgain reports whether next commits an [idem.Atomic], an [idem.Finish] or an answer.
// After [store.ErrChanged], the engine runs such a phase again, or stores the answer
// again. The other writes that Twice refuses fail with [idem.ErrConflict]. After that,
// the engine only sends the write again, and runs nothing again: the write may be about a
// call, and a call must not be repeated.
func runsAgain(prev, next *store.Record) bool {
	if prev == nil || prev.Owner != next.Owner || prev.Mark != next.Mark || len(prev.Doubts) != len(next.Doubts) {
		return false
	}
	intent := func(r *store.Record) bool { n := len(r.Phases); return n > 0 && r.Phases[n-1].Intent }
	return !intent(prev) && !intent(next) && (next.State == store.Done || next.State == store.Open && len(next.Phases) > len(prev.Phases))
}
