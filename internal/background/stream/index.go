package stream

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// If a write about jobs also sets the record's wait, asSeen is part of its condition. The record
// must be as it was read:
//   - owner, ver: since the read, a holder's write may have begun or ended a wait, or staged a job
//     that was parked;
//   - the other jobs: [item.HoldJobs] appends this condition.
const asSeen = " AND #owner = :owner AND ver = :ver"

// withWait returns the write that turns now into after. The write removes paths (attributes of the
// named jobs), and updates the record's entry in the index of what waits for people.
func (w jobWriter) withWait(now, after *store.Record, names []string, condition string, paths []string, placeholders map[string]string) *dynamodb.UpdateItemInput {
	var v item.Values
	args := item.Map{":id": v.Str(now.ID), ":owner": v.Str(now.Owner), ":ver": v.Num(now.Ver)}
	placeholders["#owner"] = item.AttrOwner
	is, update := state.WaitOf(after), ""
	if condition += asSeen; is.OfJobs() {
		others := maps.Clone(now.Jobs)
		maps.DeleteFunc(others, func(name string, _ store.Job) bool { return slices.Contains(names, name) })
		condition += item.HoldJobs(others, placeholders)
	}
	// If an earlier version of Samekey stored no start of the wait, use the start of the last
	// attempt.
	if state.WaitFrom(after, after.Run); is.Reason == state.NoReason {
		paths = append(slices.Clone(paths), item.AttrWait, item.AttrSince, item.AttrWaitIn)
	} else {
		update = "SET " + item.AttrWait + " = :waits, " + item.AttrWaitIn + " = :wait_in, " + item.SetSince
		args[":waits"], args[":wait_in"], args[":since"] = v.Str(item.WaitKey(is.Reason, now.PK)), v.WaitIn(is), v.Millis(after.WaitSince)
	}
	if len(paths) > 0 {
		update += " REMOVE " + strings.Join(paths, ", ")
	}
	in := w.amendment(now.PK, condition, update, args)
	in.ExpressionAttributeNames = placeholders
	return in
}

// misplaced reports whether a record's index entry differs from the record's wait. An earlier
// version of Samekey may have written such an entry.
func misplaced(it item.Map, r *store.Record) bool {
	want, d := "", item.Decoder{It: it}
	if cause := state.WaitOf(r).Reason; cause != state.NoReason {
		want = item.WaitKey(cause, r.PK)
	}
	return d.Text(item.AttrWait, false) != want || r.WaitSince.IsZero() != (want == "")
}

// placeCondition is the condition of a write that corrects the index. Unlike [ackCondition] it
// demands no jobs: a record that became stuck before its first job has no jobs.
//   - id: a new operation may have used the key since the record was read.
const placeCondition = "id = :id"

// place corrects a record's entry in the index. If the record was written after r was read, place
// changes nothing.
func (w jobWriter) place(ctx context.Context, r *store.Record) error {
	_, _, err := w.amend(ctx, "place in the index", w.withWait(r, r.Clone(), nil, placeCondition, nil, make(map[string]string)))
	return err
}
