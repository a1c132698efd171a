package dynamo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// wait sets or removes the attributes of the index of what waits for people, if a
// commit begins, changes or ends a wait. A good request's commits do neither.
//
// Parked jobs keep a record in the index too, and writes about jobs don't raise ver. If
// the wait after the commit depends on them, the commit is conditional on each job:
//   - if not parked in prev: a drain may park it between the read and this write, which
//     would take the record out of the index;
//   - if parked in prev: an operator may redrive it meanwhile, and this write would
//     leave the record in the index for good.
func (u *update) wait(prev, next *store.Record) {
	was, is := state.WaitOf(prev), state.WaitOf(next)
	if was == is && prev.WaitSince.Equal(next.WaitSince) {
		return
	}
	if is.Cause == state.NoCause {
		u.remove = append(u.remove, item.AttrWait, item.AttrSince, item.AttrWaitIn)
	} else {
		u.put(item.AttrWait, ":wait", u.Str(item.WaitKey(is.Cause, next.PK)))
		u.put(item.AttrWaitIn, ":wait_in", u.WaitIn(is))
		u.set.WriteString(", " + item.SetSince) // a job may have been parked since prev was read: since then the record waits
		u.args[":since"] = u.Millis(next.WaitSince)
	}
	if is.Cause == state.NoCause || is.Cause == state.CauseParked {
		u.holdJobs(prev.Jobs)
	}
}

// holdJobs makes the write conditional on which of the jobs are parked.
func (u *update) holdJobs(jobs map[string]store.Job) {
	if len(jobs) == 0 {
		return
	}
	u.names = maps.Clone(u.names)
	u.names["#f"] = item.JobFailed
	for i, name := range slices.Sorted(maps.Keys(jobs)) {
		n, test := "#w"+strconv.Itoa(i), "attribute_not_exists"
		if jobs[name].Failed != "" {
			test = "attribute_exists"
		}
		u.names[n] = name
		u.condition += fmt.Sprintf(" AND %s(%s.%s.#f)", test, item.AttrJobs, n)
	}
}

// waitRounds is how often a commit is sent because jobs were parked or redriven
// meanwhile. Both are rare.
const waitRounds = 5

// withJobs returns c with the jobs of held, the record that refused c. It returns false
// if another attempt has written the record: then its jobs are not the reason.
func withJobs(c store.Commit, held *store.Record) (store.Commit, bool) {
	if held == nil || held.Owner != c.Prev.Owner || held.Ver != c.Prev.Ver {
		return c, false
	}
	prev, next := *c.Prev, *c.Next
	staged := maps.Clone(next.Jobs)
	maps.DeleteFunc(staged, func(name string, _ store.Job) bool { _, known := prev.Jobs[name]; return known })
	prev.Jobs, prev.WaitSince = held.Jobs, held.WaitSince
	next.Jobs = state.Merged(held.Jobs, staged)
	state.WaitFrom(&next, next.Run)
	c.Prev, c.Next = &prev, &next
	return c, true
}
