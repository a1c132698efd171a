package stream

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// countFailures adds failed deliveries to the counts in image's record. failures maps the jobs' names to
// errors. A job that has failed maxTries times is parked with its last error: the record is kept
// for the job, and only [Redrive] delivers the job again.
//
// countFailures returns the current record, in which another drain may have delivered or parked some of the
// jobs. countFailures returns a zero Record if the operation is gone.
//
// If no answer comes, countFailures sends the write again. A failure may then be counted twice, and its job
// be parked a try early. The job isn't lost, since a parked job is listed.
func (w jobWriter) countFailures(ctx context.Context, image *store.Record, failures map[string]error, maxTries int) (*store.Record, error) {
	names := slices.SortedFunc(maps.Keys(failures), byPosition)
	now, err := w.eachJob(ctx, "count failures", image, names, state.Pending, w.count)
	if err != nil {
		return nil, err
	}
	tired := func(r *store.Record, name string) bool {
		return state.Pending(r, name) && r.Jobs[name].Tries >= maxTries
	}
	return w.eachJob(ctx, "park", now, names, tired, func(now *store.Record, names []string) *dynamodb.UpdateItemInput {
		return w.park(now, names, failures, maxTries)
	})
}

// unparked returns the condition that no job at these paths is parked. The condition keeps a later
// failure from replacing the reason of a parked job. The condition is as short as possible: with 50
// jobs an expression is close to the limit of 4 KB.
func unparked(paths []string) string {
	return ackCondition + each(paths, " AND attribute_not_exists(%s.#f)")
}

func (w jobWriter) count(now *store.Record, names []string) *dynamodb.UpdateItemInput {
	var v item.Values
	paths, placeholders := jobPaths(names)
	placeholders["#t"], placeholders["#f"] = item.JobTries, item.JobFailed
	sets := make([]string, len(paths))
	for i, path := range paths {
		sets[i] = path + ".#t = if_not_exists(" + path + ".#t, :zero) + :one"
	}
	condition := unparked(paths) + each(paths, " AND attribute_exists(%s)") // the write must not bring back a job that was delivered meanwhile
	in := w.amendment(now.PK, condition, "SET "+strings.Join(sets, ", "),
		item.Map{":id": v.Str(now.ID), ":zero": v.Num(0), ":one": v.Num(1)})
	in.ExpressionAttributeNames = placeholders
	return in
}

func (w jobWriter) park(now *store.Record, names []string, failures map[string]error, maxTries int) *dynamodb.UpdateItemInput {
	var v item.Values
	paths, placeholders := jobPaths(names)
	placeholders["#t"], placeholders["#f"] = item.JobTries, item.JobFailed
	// The condition on the count leaves out jobs that must not be parked now: a job that was
	// delivered meanwhile has no count, and a redriven job has a lower count.
	condition := unparked(paths) + each(paths, " AND %s.#t >= :max")
	args := item.Map{":id": v.Str(now.ID), ":max": v.Num(int64(maxTries))}
	// A record that already waits keeps the index entry of its first cause. So it doesn't matter if
	// the record became stuck meanwhile, or another drain parked a job.
	wait := state.Wait{Reason: state.ReasonParked, Job: names[0], Kind: now.Jobs[names[0]].Kind, Failed: reason(failures[names[0]]), Tries: now.Jobs[names[0]].Tries}
	args[":waits"], args[":wait_in"], args[":since"] = v.Str(item.WaitKey(wait.Reason, now.PK)), v.WaitIn(wait), v.Millis(time.Now())
	sets := append(make([]string, 0, 3+len(paths)),
		"waits = if_not_exists(waits, :waits)", "wait_in = if_not_exists(wait_in, :wait_in)", item.SetSince)
	for i, path := range paths {
		n := strconv.Itoa(i)
		sets = append(sets, path+".#f = :f"+n)
		args[":f"+n] = v.Str(reason(failures[names[i]]))
	}
	in := w.amendment(now.PK, condition, "SET "+strings.Join(sets, ", "), args)
	in.ExpressionAttributeNames = placeholders
	return in
}

// reason returns the text of err, as a record stores it for operators.
func reason(err error) string { return cmp.Or(redact.Error(err), "unknown") }
