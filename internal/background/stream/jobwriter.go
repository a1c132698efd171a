package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// jobWriter writes the outcomes of deliveries into records. Its writes don't raise the record's
// version, so they don't disturb the attempt that holds the record.
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

// amendRounds is the maximum number of times that a write about jobs is sent. Each
// time, the SDK does its own retries. Once is not enough, since a transaction may block
// the record for a moment.
const amendRounds = 6

// jobWriter.amend sends a write that is safe to repeat. If the write's outcome is
// unknown, or the table refuses the write for now, amend sends it again, up to
// amendRounds times in all. The result refused reports whether the condition of the
// write failed. The result now is the current record; it is a zero Record if there is
// none, and nil after an error.
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

// eachJob makes one write about the named jobs that pass the filter (the parameter
// which). If another write came first, eachJob starts again from the current record. It
// returns the current record, or a zero Record if the operation is gone.
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

// each repeats part once for every path, and replaces %s by the path.
func each(paths []string, part string) string {
	var b strings.Builder
	for _, path := range paths {
		b.WriteString(strings.ReplaceAll(part, "%s", path))
	}
	return b.String()
}

func jobPaths(names []string) (paths []string, placeholders map[string]string) {
	paths, placeholders = make([]string, len(names)), make(map[string]string, len(names)+2)
	for i, name := range names {
		placeholder := "#j" + strconv.Itoa(i)
		placeholders[placeholder] = name
		paths[i] = item.AttrJobs + "." + placeholder
	}
	return paths, placeholders
}

// The conditions of writes about jobs.
const (
	// ackCondition is part of the condition of every write about an operation's jobs.
	// It demands:
	//   - id = :id, so that the write changes no job of a newer operation. Such an
	//     operation may have used the key since the image was made, and its jobs have
	//     the same names;
	//   - attribute_exists(jobs), since the update's paths are invalid without this
	//     map.
	ackCondition = "id = :id AND attribute_exists(jobs)"

	// notWaiting makes an acknowledgement fail if the record waits for people. Another
	// drain may have parked the delivered job, and removing a parked job may end the
	// wait. After the failure, [jobWriter.acknowledgeWaiting] removes the job and
	// updates the wait.
	notWaiting = " AND attribute_not_exists(waits)"

	// unbegun is the condition of the two writes that decide about a job with a time: a drain's
	// write before the delivery, and a person's cancellation. The first write wins.
	unbegun = " AND attribute_exists(%s) AND attribute_not_exists(%s.#b)"

	// lastCondition is for an acknowledgement that also lets the record go. It demands:
	//   - st = :done, since the record of an unfinished operation must be kept;
	//   - size(jobs) = :n, and that each of these n jobs exists (ack appends this
	//     part). A commit after the image may have added a job, and that job would
	//     expire undelivered;
	//   - attribute_exists(until_s), since the update copies until_s to exp_s.
	lastCondition = ackCondition + " AND st = :done AND attribute_exists(until_s) AND size(jobs) = :n"

	// letGoCondition is for a write that does nothing but let a record go. Such a write
	// is needed if, for example, all jobs were delivered before the operation finished:
	// then no acknowledgement follows. The condition demands:
	//   - the same as lastCondition about id, st and until_s;
	//   - size(jobs) = 0, since a record with jobs must be kept;
	//   - keep = :jobs, so that a second such write changes nothing.
	letGoCondition = "id = :id AND st = :done AND keep = :jobs AND attribute_exists(until_s) AND size(jobs) = :zero"

	// letGoUpdate makes a record expire at the end of its replay period, as if the record had never
	// had jobs. It removes the wait: a finished record without jobs waits for nobody.
	letGoUpdate = "SET exp_s = until_s REMOVE keep, until_s, waits, wait_ms, wait_in"
)

// jobWriter.acknowledge removes delivered jobs from image's record. names are the jobs'
// names in image.Jobs. Jobs that are gone already are ignored. If image is finished and
// has no other jobs, the same write lets the record go. If the record is gone, or
// belongs to another operation now, acknowledge changes nothing and returns nil.
//
// acknowledge may send a write again. This is safe, because the write removes only the
// named jobs, and never lets a record with other jobs go.
func (w jobWriter) acknowledge(ctx context.Context, image *store.Record, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if state.LastJobs(image, names) {
		now, refused, err := w.amend(ctx, "acknowledge", w.ack(image, names, true))
		switch {
		case err != nil || !refused || now.ID != image.ID:
			return err
		case state.NoJobsLeft(now):
			return w.letGo(ctx, now)
		case !anyOf(now.Jobs, names):
			return nil // the jobs were removed by another drain, or by an earlier try of this write
		}
	}
	now, refused, err := w.amend(ctx, "acknowledge", w.ack(image, names, false))
	switch {
	case err != nil || now.ID != image.ID:
		return err
	case refused:
		if now, err = w.acknowledgeWaiting(ctx, now, names); err != nil {
			return err
		}
	}
	if !state.NoJobsLeft(now) {
		return nil
	}
	return w.letGo(ctx, now)
}

// acknowledgeWaiting acknowledges jobs in a record that waits for people, for example after another
// drain has parked one of these jobs. It returns the current record, or a zero Record if the
// operation is gone.
func (w jobWriter) acknowledgeWaiting(ctx context.Context, now *store.Record, names []string) (*store.Record, error) {
	id := now.ID
	for range amendRounds {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, there := now.Jobs[name]; return !there })
		if len(names) == 0 {
			return now, nil
		}
		after := *now
		after.Jobs = maps.Clone(now.Jobs)
		maps.DeleteFunc(after.Jobs, func(name string, _ store.Job) bool { return slices.Contains(names, name) })
		paths, placeholders := jobPaths(names)
		next, refused, err := w.amend(ctx, "acknowledge", w.withWait(now, &after, names, ackCondition, paths, placeholders))
		switch {
		case err != nil:
			return nil, err
		case next.ID != id:
			return &store.Record{}, nil
		case !refused:
			return next, nil
		}
		now = next
	}
	return nil, fmt.Errorf("dynamo: acknowledge: %w: other writes come in between", store.ErrConflict)
}

func anyOf(jobs map[string]store.Job, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := jobs[name]; return ok })
}

func (w jobWriter) ack(image *store.Record, names []string, last bool) *dynamodb.UpdateItemInput {
	var v item.Values
	condition, update := ackCondition+notWaiting, "REMOVE "
	args := item.Map{":id": v.Str(image.ID)}
	if last {
		condition, update = lastCondition, letGoUpdate+", "
		args[":done"], args[":n"] = v.Str(string(store.Done)), v.Num(int64(len(names)))
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

// Before a drain delivers jobs with a time, begin records that their delivery has begun. It returns
// the current record, or a zero Record if the operation is gone.
func (w jobWriter) begin(ctx context.Context, image *store.Record, names []string) (*store.Record, error) {
	return w.eachJob(ctx, "begin", image, names, state.MayCancel, func(now *store.Record, names []string) *dynamodb.UpdateItemInput {
		var v item.Values
		paths, placeholders := jobPaths(names)
		placeholders["#b"] = item.JobBegun
		in := w.amendment(now.PK, ackCondition+each(paths, unbegun), "SET "+strings.TrimPrefix(each(paths, ", %s.#b = :now"), ", "),
			item.Map{":id": v.Str(now.ID), ":now": v.Millis(time.Now())})
		in.ExpressionAttributeNames = placeholders
		return in
	})
}

// letGo lets go a finished record that is kept for jobs but has none left. It leaves
// any other record as it is, and returns nil. letGo is safe to repeat, because a record
// that was let go is no longer kept for jobs.
func (w jobWriter) letGo(ctx context.Context, image *store.Record) error {
	var v item.Values
	_, _, err := w.amend(ctx, "let go", w.amendment(image.PK, letGoCondition, letGoUpdate, item.Map{
		":id": v.Str(image.ID), ":done": v.Str(string(store.Done)), ":jobs": v.Str(string(store.KeepJobs)), ":zero": v.Num(0),
	}))
	return err
}
