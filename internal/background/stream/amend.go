package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// jobWriter writes the results of jobs into records. Its writes don't raise ver, so
// a holder is not disturbed.
type jobWriter struct{ table item.Table }

func (w jobWriter) amendment(pk, condition, update string, args item.Map) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           &w.table.Name,
		Key:                                 item.Key(pk),
		ConditionExpression:                 &condition,
		UpdateExpression:                    &update,
		ExpressionAttributeValues:           args,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// amendRounds is how often a write about jobs is sent, besides the client's retries:
// a transaction on the record ends soon.
const amendRounds = 6

// amend sends a repeatable write until it gets an answer. It returns the current
// record, and whether that record refused the write. now is never nil without an
// error; it is a zero Record if there is none.
func (w jobWriter) amend(ctx context.Context, op string, in *dynamodb.UpdateItemInput) (now *store.Record, refused bool, err error) {
	for round := range amendRounds {
		if round > 0 && !item.Pause(ctx, round) {
			break
		}
		var out *dynamodb.UpdateItemOutput
		if out, err = w.table.Access.UpdateItem(ctx, in); err == nil {
			now, err = item.Glance(out.Attributes)
			return now, false, err
		}
		now, err = item.WriteErrorGlance(op, err)
		if err == nil {
			return now, true, nil
		}
		if !store.Passing(err) {
			break
		}
	}
	return nil, false, err
}

// eachJob writes about those of the named jobs that which selects. If another write comes in
// between, eachJob starts again from the current record. It returns a zero Record if the
// operation is gone.
func (w jobWriter) eachJob(ctx context.Context, op string, image *store.Record, names []string, which func(*store.Record, string) bool,
	build func(now *store.Record, names []string) *dynamodb.UpdateItemInput,
) (*store.Record, error) {
	now := image
	for range amendRounds {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !which(now, name) })
		if len(names) == 0 {
			return now, nil
		}
		next, refused, err := w.amend(ctx, op, build(now, names))
		switch {
		case err != nil:
			return nil, err
		case next.ID != image.ID:
			return &store.Record{}, nil
		case !refused:
			return next, nil
		}
		now = next
	}
	return nil, fmt.Errorf("dynamo: %s: %w: other writes come in between", op, store.ErrConflict)
}

// asSeen is on writes about jobs that also say what the record waits for:
//   - owner, ver: a holder's write may have begun or ended a wait since the record was
//     read, or staged a job that has been parked;
//   - the other jobs (appended): [item.HoldJobs].
const asSeen = " AND #owner = :owner AND ver = :ver"

// withWait returns the write that turns now into after by removing paths, which are of
// the jobs names, and has the index of what waits for people follow.
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
	// A record that an earlier version of Samekey left waiting has waited since its last run.
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

// misplaced reports whether the index shows another wait of a record than the record
// has, as after a write of an earlier version of Samekey.
func misplaced(it item.Map, r *store.Record) bool {
	want, d := "", item.Decoder{It: it}
	if cause := state.WaitOf(r).Reason; cause != state.NoReason {
		want = item.WaitKey(cause, r.PK)
	}
	return d.Text(item.AttrWait, false) != want || r.WaitSince.IsZero() != (want == "")
}

// placeCondition is on a correction of the index. It doesn't ask for jobs, as
// [ackCondition] does: a record that became stuck before its first job has none.
//   - id: the key may have been used anew since the record was read.
const placeCondition = "id = :id"

// place has the index show a record's wait as it is. A record that was written since r
// was read stays as it is.
func (w jobWriter) place(ctx context.Context, r *store.Record) error {
	_, _, err := w.amend(ctx, "place in the index", w.withWait(r, r.Clone(), nil, placeCondition, nil, make(map[string]string)))
	return err
}

// each repeats a part of an expression for each path, which replaces %s.
func each(paths []string, part string) string {
	var b strings.Builder
	for _, path := range paths {
		b.WriteString(strings.ReplaceAll(part, "%s", path))
	}
	return b.String()
}

// jobPaths returns the paths of jobs, and their placeholders.
func jobPaths(names []string) (paths []string, placeholders map[string]string) {
	paths, placeholders = make([]string, len(names)), make(map[string]string, len(names)+2)
	for i, name := range names {
		placeholder := "#j" + strconv.Itoa(i)
		placeholders[placeholder] = name
		paths[i] = item.AttrJobs + "." + placeholder
	}
	return paths, placeholders
}
