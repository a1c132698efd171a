package idemtest

import (
	"context"
	"strconv"
	"sync"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Twice returns a store that wraps s. In this store, each commit of a phase or an
// answer fails with a conflict at the first try. So each [idem.Atomic] and
// [idem.Finish] runs twice, as in production when others write the same items. The
// function of a phase must return its result, and must have no effect except through
// its Tx. Tests with this store show whether a handler obeys this rule. An
// [idem.Foreign] isn't run again; only its commit is sent again. With
// [idem.Options].CallsOut, a Finish without writes also runs once if no Foreign comes
// before it: its commit looks like that of a Foreign that answers with [idem.Respond].
func Twice(s store.Store) *FaultyStore { return Faulty(s, everyAtomicTwice()) }

func everyAtomicTwice() Plan {
	var mu sync.Mutex
	struck := make(map[string]bool)
	return func(_ context.Context, c Call) Fault {
		next := c.Commit.Next
		if next == nil || next.State != store.Done && len(next.Phases) == 0 || next.State == store.Open && next.Lease.IsZero() {
			return Fault{} // let other calls and releases pass, and writes of records with neither a phase nor an answer
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

// runsAgain reports whether next commits an [idem.Atomic], an [idem.Finish] or an
// answer. Twice refuses such a commit with [store.ErrChanged]. Then the engine runs the
// phase again, or stores the answer again. Twice refuses its other writes with
// [idem.ErrConflict]. Then the engine only sends the write again, because the write may
// be about a call that must not be repeated.
func runsAgain(prev, next *store.Record) bool {
	if prev.Owner != next.Owner || prev.Mark != next.Mark || len(prev.Doubts) != len(next.Doubts) {
		return false
	}
	intent := func(r *store.Record) bool { n := len(r.Phases); return n > 0 && r.Phases[n-1].Intent }
	return !intent(prev) && !intent(next) && (next.State == store.Done || next.State == store.Open && len(next.Phases) > len(prev.Phases))
}
