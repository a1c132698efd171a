package dynamo

import (
	"maps"
	"slices"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// wait sets or removes the attributes of the index of what waits for people, if a
// commit begins, changes or ends a wait. A good request's commits do neither.
//
// A parked job keeps a record in the index too. So if the wait after the commit depends
// on the jobs, the commit is conditional on them ([item.HoldJobs]).
func (u *update) wait(prev, next *store.Record) {
	was, is := state.WaitOf(prev), state.WaitOf(next)
	if was == is && prev.WaitSince.Equal(next.WaitSince) && !state.DropsJobs(prev, next) {
		return
	}
	if is.Reason == state.NoReason {
		u.remove = append(u.remove, item.AttrWait, item.AttrSince, item.AttrWaitIn)
	} else {
		u.put(item.AttrWait, ":wait", u.Str(item.WaitKey(is.Reason, next.PK)))
		u.put(item.AttrWaitIn, ":wait_in", u.WaitIn(is))
		u.set = append(u.set, assignment{item.AttrSince, item.FirstSince}) // a job may have been parked since prev was read: since then the record waits
		u.args[":since"] = u.Millis(next.WaitSince)
	}
	if is.OfJobs() {
		u.names = maps.Clone(u.names)
		u.condition += item.HoldJobs(prev.Jobs, u.names)
	}
}

// waitRounds is how often a commit is sent because jobs were parked or redriven
// meanwhile. Both are rare.
const waitRounds = 5

// withJobs returns c with the jobs and decisions of held, the record that refused c. It
// returns false if another attempt has written the record: then they are not the reason.
func withJobs(c store.Commit, held *store.Record) (store.Commit, bool) {
	if held == nil || held.Owner != c.Prev.Owner || held.Ver != c.Prev.Ver {
		return c, false
	}
	prev, next := *c.Prev, *c.Next
	staged := maps.Clone(next.Jobs)
	maps.DeleteFunc(staged, func(name string, _ store.Job) bool { _, known := prev.Jobs[name]; return known })
	prev.Jobs, prev.WaitSince, prev.Settled, next.Settled = held.Jobs, held.WaitSince, held.Settled, held.Settled
	if n := len(c.Next.Settled); n > 0 && !slices.EqualFunc(c.Prev.Settled, c.Next.Settled, store.Decision.Equal) {
		next.Settled = state.Newest(append(slices.Clone(held.Settled), c.Next.Settled[n-1]))
	}
	next.Jobs = state.Merged(held.Jobs, staged)
	state.WaitFrom(&next, next.Run)
	c.Prev, c.Next = &prev, &next
	return c, true
}
