package dynamo

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// update builds an update expression from the differences between two records.
type update struct {
	item.Values
	set    []assignment
	remove []string
	names  map[string]string
	args   item.Map

	condition string // holderCondition, and further conditions if the write depends on jobs or decisions

	in       dynamodb.UpdateItemInput // allocated together with the update
	expr     string                   // the expression
	assigned [5]assignment            // backing array of set
	removed  [5]string                // backing array of remove
}

// assignment sets the attribute at path to the value of an expression.
type assignment struct{ path, value string }

// Store.update builds the expression that turns c.Prev into c.Next.
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
	if writesAnswer(prev, next) {
		body, err := s.encodeBody(ctx, &u.Values, next)
		if err != nil {
			return nil, err
		}
		u.put(item.AttrResp, ":resp", body)
	}
	s.request(u, prev, next, moved)
	return u, nil
}

// update.holder adds the values of holderCondition, the new version and, if the owner
// changes, the new owner. The new version makes holderCondition false for a copy of the
// write that arrives late.
func (u *update) holder(prev, next *store.Record) {
	u.args[":owner"], u.args[":ver"] = u.Str(prev.Owner), u.Num(prev.Ver)
	u.put(item.AttrVer, ":ver1", u.Num(next.Ver))
	if next.Owner != prev.Owner {
		u.put("#owner", ":owner1", u.Str(next.Owner))
	}
}

// update.fields sets or removes each field in which prev and next differ. All other
// attributes, which another program may have changed, remain. If moved is set (see
// movesSealed), fields also seals the phases' results anew.
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

// update.decided appends a decision to the stored list instead of overwriting the list,
// because a redrive may have appended another decision without raising ver. Only a full
// list is overwritten, under the condition that it is unchanged.
func (u *update) decided(prev, next []store.Decision) {
	n := len(prev)
	switch {
	case slices.EqualFunc(prev, next, store.Decision.Equal):
	case len(next) == n+1 && slices.EqualFunc(prev, next[:n], store.Decision.Equal):
		u.set = append(u.set, assignment{item.AttrSettled, "list_append(if_not_exists(" + item.AttrSettled + ", :none), :settled)"})
		u.args[":none"], u.args[":settled"] = u.Settled(nil), u.Settled(next[n:])
	default: // the list is full: drop the oldest decision
		u.put(item.AttrSettled, ":settled", u.Settled(next))
		u.condition += item.HoldDecisions(prev, u.args)
	}
}

// addJobs writes the jobs of next that prev lacks.
//   - If prev has jobs, addJobs sets single entries of the map. If addJobs set the
//     whole map, it would write jobs again that were acknowledged since prev was read.
//   - If prev has no jobs, addJobs sets the map, because the map may not exist yet. The
//     map can't overwrite a job: only a write that raises ver adds jobs, so while
//     holderCondition is true, the record has no jobs.
func (u *update) addJobs(prev, next map[string]store.Job) {
	switch {
	case len(next) == 0:
	case len(prev) == 0:
		u.put(item.AttrJobs, ":jobs", u.Jobs(next))
	default:
		u.names = maps.Clone(u.names)
		for i, name := range slices.Sorted(maps.Keys(next)) {
			if _, known := prev[name]; known {
				continue
			}
			n := strconv.Itoa(i)
			u.names["#j"+n] = name
			u.put(item.AttrJobs+".#j"+n, ":j"+n, u.Job(name, next[name]))
		}
	}
}

// dropJobs removes all jobs if a person forgets the operation.
func (u *update) dropJobs(prev, next *store.Record) {
	if !state.DropsJobs(prev, next) {
		return
	}
	u.remove = append(u.remove, item.AttrJobs)
	u.condition += droppedCondition
	u.args[":jobs"] = u.Num(int64(len(prev.Jobs)))
}

// update.wait maintains the index of records that wait for people. If a commit begins,
// changes or ends a wait, update.wait sets or removes the index's attributes. The
// commits of an ordinary request leave the index alone.
//
// A parked job keeps a record in the index too. If the jobs decide whether the record
// waits after the commit, update.wait adds the condition that no job was parked or
// redriven since prev was read ([item.HoldJobs]).
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
		u.set = append(u.set, assignment{item.AttrSince, item.FirstSince}) // FirstSince keeps the item's time, if a parked job has set one since prev was read
		u.args[":since"] = u.Millis(next.WaitSince)
	}
	if is.OfJobs() {
		u.names = maps.Clone(u.names)
		u.condition += item.HoldJobs(prev.Jobs, u.names)
	}
}

// Store.request seals the stored request anew if the record moves to another handler or
// tenant (see movesSealed). When the answer is written, Store.request removes the
// stored request, so that the table keeps no input.
func (s *Store) request(u *update, prev, next *store.Record, moved bool) {
	switch {
	case moved && next.Input != nil:
		u.put(item.AttrRequest, ":req", s.inputAgain(&u.Values, next))
	case next.Input == nil && (prev.Input != nil || next.Response != nil && prev.Response == nil):
		u.remove = append(u.remove, item.AttrRequest)
	}
}

func (u *update) put(path, placeholder string, v item.Value) {
	u.set = append(u.set, assignment{path, placeholder})
	u.args[placeholder] = v
}

func (u *update) expression() *string {
	begin, verb := u.Text.Len(), "SET "
	for _, a := range u.set {
		u.Text.WriteString(verb)
		u.Text.WriteString(a.path)
		u.Text.WriteString(" = ")
		u.Text.WriteString(a.value)
		verb = ", "
	}
	verb = " REMOVE "
	for _, name := range u.remove {
		u.Text.WriteString(verb)
		u.Text.WriteString(name)
		verb = ", "
	}
	u.expr = u.Text.String()[begin:]
	return &u.expr
}

func writesContents(prev, next *store.Record) bool {
	for name := range next.Jobs {
		if _, known := prev.Jobs[name]; !known {
			return true
		}
	}
	return !slices.EqualFunc(prev.Phases, next.Phases, item.SamePhase) || writesAnswer(prev, next)
}

// writesAnswer reports whether a commit writes the first answer, or erases an answer
// except its status.
func writesAnswer(prev, next *store.Record) bool {
	return next.Response != nil && prev.Response == nil || state.AnswerGoes(prev, next)
}
