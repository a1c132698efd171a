package stream

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// The conditions of what is written about jobs.
const (
	// ackCondition is on every write about the jobs of one operation:
	//   - id = :id: the key may have been used anew since the image was made, and
	//     the new operation's jobs have the same names;
	//   - attribute_exists(jobs): without the map the update has no path to go.
	ackCondition = "id = :id AND attribute_exists(jobs)"

	// lastCondition comes on top where an acknowledgement also lets the record go:
	//   - st = :done: an operation that isn't finished is kept for its own sake;
	//   - size(jobs) = :n, and each of them (appended): a commit may have added a job
	//     since the image was made, which then would expire undelivered;
	//   - attribute_exists(until_s): what exp_s is to become.
	lastCondition = ackCondition + " AND st = :done AND attribute_exists(until_s) AND size(jobs) = :n"

	// letGoCondition lets a record go whose jobs were all delivered before its
	// finish: nothing else will write it.
	//   - st, size: as above;
	//   - keep = :jobs: what it is kept for, so that a second one changes nothing.
	letGoCondition = "id = :id AND st = :done AND keep = :jobs AND attribute_exists(until_s) AND size(jobs) = :zero"

	// letGoUpdate gives a record the end it would have had without jobs: that of its
	// replay, and of its tombstone where it has one, for which until_s stays.
	letGoUpdate = "SET exp_s = until_s + if_not_exists(tomb_s, :zero) REMOVE keep"
)

// jobWriter writes into records what becomes of their jobs. None of its writes
// raises ver: a holder goes on undisturbed.
type jobWriter struct{ table item.Table }

// acknowledge removes delivered jobs, by their names in image.Jobs, from the record that
// image is of, as far as they are still there. Where image is finished and they
// are the last, the record is let go in the same call: it expires at the end of
// its replay. A record that is gone, or of another operation by now, is no
// error: it has none of these jobs.
//
// acknowledge is safe to repeat, and sends again what had no answer: it removes what is
// named and nothing else, and lets go of nothing that has jobs.
func (w jobWriter) acknowledge(ctx context.Context, image *store.Record, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if state.LastJobs(image, names) {
		now, refused, err := w.amend(ctx, "acknowledge", w.ack(image, names, true))
		switch {
		case err != nil || !refused || now.ID != image.ID:
			return err
		case state.KeptForNothing(now):
			return w.letGo(ctx, now)
		case !anyOf(now.Jobs, names):
			return nil // our own write, whose answer was lost
		}
	}
	now, refused, err := w.amend(ctx, "acknowledge", w.ack(image, names, false))
	if err != nil || refused || !state.KeptForNothing(now) {
		return err
	}
	return w.letGo(ctx, now)
}

func anyOf(jobs map[string]store.Job, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := jobs[name]; return ok })
}

func (w jobWriter) ack(image *store.Record, names []string, last bool) *dynamodb.UpdateItemInput {
	var v item.Values
	condition, update := ackCondition, "REMOVE "
	args := item.Map{":id": v.Str(image.ID)}
	if last {
		condition, update = lastCondition, letGoUpdate+", "
		args[":done"], args[":n"], args[":zero"] = v.Str(string(store.Done)), v.Num(int64(len(names))), v.Num(0)
	}
	paths, placeholders := jobPaths(names)
	if last {
		condition += each(paths, " AND attribute_exists(%s)")
	}
	update += strings.Join(paths, ", ")
	in := w.amendment(image.PK, condition, update, args)
	in.ExpressionAttributeNames = placeholders
	return in
}

// letGo lets a finished record go that is kept for jobs it no longer has: it
// expires at the end of its replay. Any other record stays as it is, and that is
// no error. It is safe to repeat: a record that was let go is not kept.
func (w jobWriter) letGo(ctx context.Context, image *store.Record) error {
	var v item.Values
	_, _, err := w.amend(ctx, "let go", w.amendment(image.PK, letGoCondition, letGoUpdate, item.Map{
		":id": v.Str(image.ID), ":done": v.Str(string(store.Done)), ":jobs": v.Str(string(store.KeepJobs)), ":zero": v.Num(0),
	}))
	return err
}

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

// amendRounds is how often a write about jobs is sent, on top of what the client
// itself repeats: a transaction on the record is over soon.
const amendRounds = 6

// amend sends a write that may be sent again, until there is an answer to it. It
// returns the record as it then is, and whether that refused the write; never
// nil without an error, but a zero Record where there is none.
func (w jobWriter) amend(ctx context.Context, op string, in *dynamodb.UpdateItemInput) (now *store.Record, refused bool, err error) {
	for round := range amendRounds {
		if round > 0 && !item.Pause(ctx, round) {
			break
		}
		var out *dynamodb.UpdateItemOutput
		if out, err = w.table.Access.UpdateItem(ctx, in); err == nil {
			now, err = item.Decode(out.Attributes)
			return now, false, err
		}
		now, err = item.WriteError(op, err)
		if err == nil {
			return now, true, nil
		}
		if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	return nil, false, err
}
