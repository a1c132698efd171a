package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// update builds the expression that turns c.Prev into c.Next: the fields that differ, and
// those that are written in a way of their own.
func (s *Store) update(ctx context.Context, c store.Commit) (*update, error) {
	prev, next := c.Prev, c.Next
	u := &update{names: ownerName, args: make(item.Map, 8), condition: holderCondition}
	u.set, u.remove = u.assigned[:0], u.removed[:0]
	u.Text.Grow(192)
	moved := movesSealed(prev, next)
	if err := s.openBox(ctx, u, prev, next); err != nil {
		return nil, err
	}
	u.holder(prev, next)
	u.fields(prev, next, moved)
	u.decided(prev.Settled, next.Settled)
	u.addJobs(prev.Jobs, next.Jobs)
	u.dropJobs(prev, next)
	u.wait(prev, next)
	if answers(prev, next) {
		body, err := s.encodeBody(ctx, &u.Values, next)
		if err != nil {
			return nil, err
		}
		u.put(item.AttrResp, ":resp", body)
	}
	s.request(u, prev, next, moved)
	return u, nil
}

// openBox gives u the data key of the contents that it writes. A take-over needs the key
// though it may write none: an attempt that could not store its answer must not begin. What an
// operator decides takes no lease.
func (s *Store) openBox(ctx context.Context, u *update, prev, next *store.Record) (err error) {
	takes := next.Owner != prev.Owner && !next.Lease.IsZero()
	if takes || hasContents(prev, next) {
		if item.SealOf(prev).Closed() { // what was read closed would be written empty
			return fmt.Errorf("dynamo: commit: %w: the record was read without its contents", store.ErrSealed)
		}
		if u.Box, err = s.boxFor(ctx, next); err != nil {
			return err
		}
	}
	if sl := item.SealOf(next); sl != nil && item.SealOf(prev) == nil {
		u.put(item.AttrSeal, ":seal", u.Seal(sl))
	}
	return nil
}

// holder is on every write: of a late copy of it, holderCondition is false.
func (u *update) holder(prev, next *store.Record) {
	u.args[":owner"], u.args[":ver"] = u.Str(prev.Owner), u.Num(prev.Ver)
	u.put(item.AttrVer, ":ver1", u.Num(next.Ver))
	if next.Owner != prev.Owner {
		u.put("#owner", ":owner1", u.Str(next.Owner))
	}
}

// fields sets or removes the fields that differ: an attribute that a write of another
// program has changed meanwhile stays. Results that go to another handler are sealed anew.
func (u *update) fields(prev, next *store.Record, moved bool) {
	for i := range item.Fields {
		f := &item.Fields[i]
		if f.Stays(prev, next) && (!moved || f.Name != item.AttrPhases || len(next.Phases) == 0) {
			continue
		}
		path := f.Name
		if f.Path != "" {
			path, u.names = f.Path, maps.Clone(u.names)
			u.names[path] = f.Name
		}
		if value := f.Encode(&u.Values, next); value != nil {
			u.put(path, u.Placeholder(f.Name), value)
		} else {
			u.remove = append(u.remove, path)
		}
	}
}

// request seals the stored request anew for another handler, and removes it with the
// answer: no input is at rest after that.
func (s *Store) request(u *update, prev, next *store.Record, moved bool) {
	switch {
	case moved && next.Input != nil:
		u.put(item.AttrRequest, ":req", s.inputAgain(&u.Values, next))
	case next.Input == nil && (prev.Input != nil || next.Response != nil && prev.Response == nil):
		u.remove = append(u.remove, item.AttrRequest)
	}
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
		u.condition += item.HoldDecisions(prev, u.args)
	}
}

// hasContents reports whether a commit writes contents.
func hasContents(prev, next *store.Record) bool {
	for id := range next.Jobs {
		if _, known := prev.Jobs[id]; !known {
			return true
		}
	}
	return !slices.EqualFunc(prev.Phases, next.Phases, item.SamePhase) || answers(prev, next)
}

// answers reports whether a commit writes an answer: the first one, or what is left of it.
func answers(prev, next *store.Record) bool {
	return next.Response != nil && prev.Response == nil || state.AnswerGoes(prev, next)
}

// movesSealed reports whether a commit hands sealed contents to another handler. They
// are bound to it, so the commit seals them anew: all but args, which are bound to the
// tenant only. A record with jobs keeps its tenant.
func movesSealed(prev, next *store.Record) bool {
	return item.SealOf(prev) != nil && (next.Handler != prev.Handler || next.Tenant != prev.Tenant)
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
	case len(prev) == 0:
		u.put(item.AttrJobs, ":jobs", u.Jobs(next))
	default:
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
}

// dropJobs removes all jobs, if a person gives them up.
func (u *update) dropJobs(prev, next *store.Record) {
	if !state.DropsJobs(prev, next) {
		return
	}
	u.remove = append(u.remove, item.AttrJobs)
	u.condition += droppedCondition
	u.args[":jobs"] = u.Num(int64(len(prev.Jobs)))
}
