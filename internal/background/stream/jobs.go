package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// The conditions of writes about jobs.
const (
	// ackCondition is on every write about the jobs of an operation:
	//   - id = :id: the key may have been used anew since the image was made, and the new
	//     operation's jobs have the same names;
	//   - attribute_exists(jobs): without the map the update's path is invalid.
	ackCondition = "id = :id AND attribute_exists(jobs)"

	// notWaiting: a delivered job may have been parked meanwhile. Then its wait ends
	// with it, in a write of its own ([jobWriter.acknowledgeWaiting]).
	notWaiting = " AND attribute_not_exists(waits)"

	// unbegun is on both writes that decide about a job with a time: a drain's that begins to
	// deliver it, and a person's that cancels it. The first of them wins.
	unbegun = " AND attribute_exists(%s) AND attribute_not_exists(%s.#b)"

	// lastCondition is for an acknowledgement that also lets the record go:
	//   - st = :done: an unfinished operation is kept for its own sake;
	//   - size(jobs) = :n, and each of them (appended): a commit may have added a job since
	//     the image was made, which would then expire undelivered;
	//   - attribute_exists(until_s): exp_s gets its value.
	lastCondition = ackCondition + " AND st = :done AND attribute_exists(until_s) AND size(jobs) = :n"

	// letGoCondition lets a record go whose jobs were all delivered before its
	// finish, because no other write will follow:
	//   - st, size: as above;
	//   - keep = :jobs: the record is kept for jobs, so that a second write changes nothing.
	letGoCondition = "id = :id AND st = :done AND keep = :jobs AND attribute_exists(until_s) AND size(jobs) = :zero"

	// letGoUpdate gives a record the end that it would have without jobs, that of its
	// replay. A finished record without jobs waits for nobody.
	letGoUpdate = "SET exp_s = until_s REMOVE keep, until_s, waits, wait_ms, wait_in"
)

// acknowledge removes delivered jobs, by their names in image.Jobs, from image's
// record, as far as they still exist. If image is finished and these jobs are the
// last, the same call lets the record go: it expires at the end of its replay. A
// record that is gone, or of another operation by now, is no error: it has none of
// these jobs.
//
// acknowledge is safe to repeat, and sends a write without an answer again: it
// removes only the named jobs, and lets no record go that has jobs.
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
			return nil // this process's write, whose answer was lost
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
	if !state.KeptForNothing(now) {
		return nil
	}
	return w.letGo(ctx, now)
}

// acknowledgeWaiting is the acknowledgement in a record that waits for people, such as
// for one of these jobs, which another drain has parked. It returns the current record;
// a zero Record if the operation is gone.
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

// begin marks jobs with a time as on their way. It returns the current record, a zero Record if
// the operation is gone.
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

// letGo lets a finished record go that is kept for jobs it no longer has: it expires
// at the end of its replay. Any other record stays unchanged, without an error.
// letGo is safe to repeat: a record that was let go is not kept.
func (w jobWriter) letGo(ctx context.Context, image *store.Record) error {
	var v item.Values
	_, _, err := w.amend(ctx, "let go", w.amendment(image.PK, letGoCondition, letGoUpdate, item.Map{
		":id": v.Str(image.ID), ":done": v.Str(string(store.Done)), ":jobs": v.Str(string(store.KeepJobs)), ":zero": v.Num(0),
	}))
	return err
}
