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

// countFailures adds failed deliveries to the counts in image's record. failures maps
// the jobs' names to errors. A job that has failed maxTries times is parked with its
// last error. Its record is then kept, and the job is delivered only after [Redrive].
//
// countFailures returns the current record, in which another drain may have delivered
// or parked some of the jobs. If the operation is gone, countFailures returns a zero
// Record.
//
// countFailures may send a write again, and then count a failure twice. The job is then
// parked one try too early. It isn't lost, since people see parked jobs in the list.
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

// unparked returns the condition that no job at these paths is parked. Without the
// condition, a later failure would replace the error that a job was parked with. The
// condition must be short, since an expression with 50 jobs is close to the limit of 4
// KB.
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
	condition := unparked(paths) + each(paths, " AND attribute_exists(%s)") // otherwise the write would bring back a job that was delivered meanwhile
	in := w.amendment(now.PK, condition, "SET "+strings.Join(sets, ", "),
		item.Map{":id": v.Str(now.ID), ":zero": v.Num(0), ":one": v.Num(1)})
	in.ExpressionAttributeNames = placeholders
	return in
}

func (w jobWriter) park(now *store.Record, names []string, failures map[string]error, maxTries int) *dynamodb.UpdateItemInput {
	var v item.Values
	paths, placeholders := jobPaths(names)
	placeholders["#t"], placeholders["#f"] = item.JobTries, item.JobFailed
	// The last condition fails for a job that must not be parked now: a job that was
	// delivered meanwhile has no count, and a redriven job has a lower count. eachJob
	// then leaves this job out.
	condition := unparked(paths) + each(paths, " AND %s.#t >= :max")
	args := item.Map{":id": v.Str(now.ID), ":max": v.Num(int64(maxTries))}
	// If the record waits already, the write keeps its entry in the index. So the write
	// needn't fail if the record became stuck meanwhile, or if another drain parked a
	// job.
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
