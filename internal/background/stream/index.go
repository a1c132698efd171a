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

// asSeen is part of the condition of a write that sets the record's wait. The write must fail if the
// wait may have changed since the record was read:
//   - owner and ver must be the same, since a holder's write may have begun or ended a wait, or
//     staged a job that was parked;
//   - no other job may have become parked or been redriven: [item.HoldJobs] makes this condition.
const asSeen = " AND #owner = :owner AND ver = :ver"

// withWait returns the write that changes the record from now (as it was read) to after. The write
// removes the attributes at paths, which belong to the named jobs, and updates the record's entry
// in the index of what waits for people.
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
	// An earlier version of Samekey may have stored no start of the wait. If so, use the start of
	// the most recent attempt.
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

// placeCondition is part of the condition of a write that corrects the index. It demands the same
// id, since a new operation may have used the key since the record was read. Unlike [ackCondition],
// it doesn't demand the attribute jobs, since a record that became stuck before its first job has
// none.
const placeCondition = "id = :id"

// place corrects a record's entry in the index. If the record's wait may have changed since r was
// read, place changes nothing.
func (w jobWriter) place(ctx context.Context, r *store.Record) error {
	_, _, err := w.amend(ctx, "place in the index", w.withWait(r, r.Clone(), nil, placeCondition, nil, make(map[string]string)))
	return err
}
