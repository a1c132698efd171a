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

// asSeen is the condition that the record has the same owner and version as when it was
// read. A write that changes the owner or version may also begin or end a wait, or
// stage a job that is then parked. Writes about jobs change neither, so withWait also
// adds [item.HoldJobs].
const asSeen = " AND #owner = :owner AND ver = :ver"

// withWait returns a write that removes the attributes at paths, and updates the
// record's entry in the index of what waits for people. The paths are the named jobs,
// or attributes of these jobs. now is the record as it was read. after is the same
// record with the change to the jobs.
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
	// An earlier version of Samekey may not have stored when the wait began. The wait
	// then counts from the start of the most recent attempt.
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

// misplaced reports whether a record's entry in the index differs from the record's
// wait. Such an entry may come from an earlier version of Samekey.
func misplaced(it item.Map, r *store.Record) bool {
	want, d := "", item.Decoder{It: it}
	if cause := state.WaitOf(r).Reason; cause != state.NoReason {
		want = item.WaitKey(cause, r.PK)
	}
	return d.Text(item.AttrWait, false) != want || r.WaitSince.IsZero() != (want == "")
}

// placeCondition is part of the condition of a write that corrects the index. It
// demands the same id, since a new operation may have used the key since the record was
// read. It doesn't demand the attribute jobs, as [ackCondition] does: a record that
// became stuck before its first job lacks this attribute.
const placeCondition = "id = :id"

// jobWriter.place corrects a record's entry in the index. If the record's wait may have
// changed since r was read, place changes nothing.
func (w jobWriter) place(ctx context.Context, r *store.Record) error {
	_, _, err := w.amend(ctx, "place in the index", w.withWait(r, r.Clone(), nil, placeCondition, nil, make(map[string]string)))
	return err
}
