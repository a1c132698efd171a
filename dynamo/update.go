package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// update builds the expression that turns c.Prev into c.Next.
func (s *Store) update(ctx context.Context, c store.Commit) (*update, error) {
	prev, next := c.Prev, c.Next
	u := &update{names: ownerName, args: make(item.Map, 8), condition: holderCondition}
	u.set, u.remove = u.assigned[:0], u.removed[:0]
	u.Text.Grow(256)
	// A take-over needs the data key though it writes no contents: an attempt that
	// could not store its answer must not begin. What an operator decides takes no lease.
	moved := movesSealed(prev, next)
	if next.Owner != prev.Owner && !next.Lease.IsZero() || hasContents(prev, next) || moved {
		if item.SealOf(prev).Closed() { // what was read closed would be written empty
			return nil, fmt.Errorf("dynamo: commit: %w: the record was read without its contents", store.ErrSealed)
		}
		var err error
		if u.Box, err = s.boxFor(ctx, next); err != nil {
			return nil, err
		}
	}
	if sl := item.SealOf(next); sl != nil && item.SealOf(prev) == nil {
		u.put(item.AttrSeal, ":seal", u.Seal(sl))
	}
	u.args[":owner"], u.args[":ver"] = u.Str(prev.Owner), u.Num(prev.Ver)
	u.put(item.AttrVer, ":ver1", u.Num(next.Ver))
	if next.Owner != prev.Owner {
		u.put("#owner", ":owner1", u.Str(next.Owner))
	}
	u.text(item.AttrState, ":st", string(prev.State), string(next.State))
	u.text(item.AttrKeep, ":keep", string(prev.Keep), string(next.Keep))
	u.text(item.AttrLastErr, ":last_err", prev.LastErr, next.LastErr)
	u.text(item.AttrFn, ":fn", prev.Handler.Function, next.Handler.Function)
	u.text(item.AttrHandler, ":hn", prev.Handler.Name, next.Handler.Name)
	if next.Scope == "" && prev.Scope != "" { // it only ever goes
		u.names = maps.Clone(u.names)
		u.names["#scope"] = item.AttrScope
		u.remove = append(u.remove, "#scope")
	}
	u.text(item.AttrTenant, ":tn", prev.Tenant, next.Tenant)
	switch {
	case next.Blocked == prev.Blocked:
	case next.Blocked:
		u.put(item.AttrBlocked, ":blocked", item.Yes)
	default:
		u.remove = append(u.remove, item.AttrBlocked)
	}
	u.time(item.AttrExpires, ":exp_s", prev.Expires, next.Expires)
	u.time(item.AttrUntil, ":until_s", prev.Until, next.Until)
	if next.Tombstone != prev.Tombstone {
		u.put(item.AttrTomb, ":tomb_s", u.Num(int64(next.Tombstone/time.Second)))
	}
	switch {
	case next.Lease.Equal(prev.Lease):
	case next.State == store.Done && next.Lease.IsZero():
		u.remove = append(u.remove, item.AttrLease) // nobody takes over what has ended
	default:
		u.put(item.AttrLease, ":lease", u.Millis(next.Lease)) // 0 and not absent: "released" is a fact
	}
	if !next.Run.Equal(prev.Run) {
		u.put(item.AttrRun, ":run", u.Millis(next.Run))
	}
	if next.Tries != prev.Tries {
		u.put(item.AttrTries, ":tries", u.Num(int64(next.Tries)))
	}
	if !slices.EqualFunc(prev.Phases, next.Phases, samePhase) || moved && len(next.Phases) > 0 {
		u.put(item.AttrPhases, ":phases", u.Phases(next.Phases))
	}
	switch timed := item.Timed(next.Phases); {
	case slices.EqualFunc(prev.Phases, next.Phases, func(a, b store.Phase) bool { return a.At == b.At }):
	case timed:
		u.put(item.AttrTimes, ":phase_ms", u.Times(next.Phases))
	case item.Timed(prev.Phases):
		u.remove = append(u.remove, item.AttrTimes)
	}
	switch {
	case len(next.Calls) == 0 && len(prev.Calls) > 0:
		u.remove = append(u.remove, item.AttrCalls)
	case !maps.Equal(prev.Calls, next.Calls):
		u.put(item.AttrCalls, ":calls", u.Calls(next.Calls))
	}
	if !slices.Equal(prev.Doubts, next.Doubts) || !prev.DoubtSince.Equal(next.DoubtSince) {
		if len(next.Doubts) == 0 {
			u.remove = append(u.remove, item.AttrDoubts, item.AttrDoubt)
		} else {
			u.put(item.AttrDoubts, ":doubts", u.List(next.Doubts))
			u.put(item.AttrDoubt, ":doubt", u.Millis(next.DoubtSince))
		}
	}
	switch {
	case len(next.Sent) == 0 && len(prev.Sent) > 0:
		u.remove = append(u.remove, item.AttrSent)
	case !maps.Equal(prev.Sent, next.Sent):
		u.put(item.AttrSent, ":sent", u.Texts(next.Sent))
	}
	u.decided(prev.Settled, next.Settled)
	if !slices.EqualFunc(prev.Handovers, next.Handovers, store.Handover.Equal) {
		u.put(item.AttrHands, ":hands", u.Hands(next.Handovers))
	}
	u.addJobs(prev.Jobs, next.Jobs)
	u.wait(prev, next)
	if answers(prev, next) {
		body, err := s.encodeBody(ctx, &u.Values, next)
		if err != nil {
			return nil, err
		}
		u.put(item.AttrResp, ":resp", body)
	}
	if moved && next.Input != nil {
		u.put(item.AttrRequest, ":req", s.inputAgain(&u.Values, next))
	}
	if next.Input == nil && (prev.Input != nil || next.Response != nil && prev.Response == nil) {
		u.remove = append(u.remove, item.AttrRequest) // no input at rest after the answer
	}
	return u, nil
}

// decided adds a decision to the list, rather than write the list: a redrive adds its
// own without raising ver, and it must not be lost.
func (u *update) decided(prev, next []store.Decision) {
	n := len(prev)
	switch {
	case slices.EqualFunc(prev, next, store.Decision.Equal):
	case len(next) == n+1 && slices.EqualFunc(prev, next[:n], store.Decision.Equal):
		u.set = append(u.set, assignment{item.AttrSettled, "list_append(if_not_exists(" + item.AttrSettled + ", :none), :settled)"})
		u.args[":none"], u.args[":settled"] = u.Settled(nil), u.Settled(next[n:])
	default: // the oldest gave way
		u.put(item.AttrSettled, ":settled", u.Settled(next))
	}
}

// hasContents reports whether a commit writes contents.
func hasContents(prev, next *store.Record) bool {
	for id := range next.Jobs {
		if _, known := prev.Jobs[id]; !known {
			return true
		}
	}
	return !slices.EqualFunc(prev.Phases, next.Phases, samePhase) || answers(prev, next)
}

// answers reports whether a commit writes an answer: the first one, or what is left of it.
func answers(prev, next *store.Record) bool {
	return next.Response != nil && prev.Response == nil || state.AnswerGoes(prev, next)
}

// movesSealed reports whether a commit hands sealed contents to another handler. They
// are bound to it, so the commit seals them anew: all but args, which are bound to the
// tenant only. A record with jobs keeps its tenant.
func movesSealed(prev, next *store.Record) bool {
	return item.SealOf(prev) != nil && (next.Handler != prev.Handler || next.Tenant != prev.Tenant) && (next.Input != nil || len(next.Phases) > 0)
}

func samePhase(a, b store.Phase) bool {
	return a.Name == b.Name && a.Intent == b.Intent && string(a.Result) == string(b.Result) && (a.Result == nil) == (b.Result == nil)
}

// addJobs writes the jobs that next has more than prev.
//   - Beside earlier jobs it sets single entries, never the map: a job that was
//     acknowledged since prev was read must not come back.
//   - Without earlier jobs it sets the map, which may not be there yet. Only a holder's
//     write adds jobs, and it raises ver; acknowledgements only remove jobs. So under
//     holderCondition a record that was read without jobs has none, and the map takes
//     no job's place.
func (u *update) addJobs(prev, next map[string]store.Job) {
	switch {
	case len(next) == 0:
		return
	case len(prev) == 0:
		u.put(item.AttrJobs, ":jobs", u.Jobs(next))
		return
	}
	u.names = maps.Clone(u.names)
	for i, id := range slices.Sorted(maps.Keys(next)) {
		if _, known := prev[id]; known {
			continue
		}
		n := strconv.Itoa(i)
		u.names["#j"+n] = id
		u.put(item.AttrJobs+".#j"+n, ":j"+n, u.Job(id, next[id]))
	}
}
