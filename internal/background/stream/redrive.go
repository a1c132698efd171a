package stream

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// Redrive unparks the named parked jobs of the operation id, or all its parked jobs if
// there are no names. A drain then finds the jobs in the stream, as if they had just
// been staged, and delivers them again. Before you call Redrive, remove the cause of
// the failures. Redrive returns how many jobs this call has unparked. The record stores
// the time, and the operator's name (by, cut to 256 bytes).
//
// If the record is gone, or belongs to another operation by now, Redrive changes nothing,
// and the error matches [jobs.ErrMoved]. The other operation's jobs have the same names,
// but nobody has checked why those jobs failed.
func Redrive(ctx context.Context, table *dynamo.Store, pk, id, by string, names ...string) (int, error) {
	w := jobWriter{table.Table()}
	return w.decide(ctx, "redrive", pk, id, by, func(r *store.Record) []string { return parkedJobs(r, names) }, w.unpark)
}

// Cancel removes the named later jobs ([store.Job].At) of the operation id, or all its
// later jobs if there are no names. The tickets of these jobs then find nothing to
// deliver. Cancel returns how many jobs this call has removed. Until a drain begins to
// deliver a job, the job can be cancelled, even after its time. Once a drain has begun
// ([store.Job].Begun), the job stays, since it may have arrived. If the record is gone or
// another operation's, Cancel returns the same error as Redrive.
func Cancel(ctx context.Context, table *dynamo.Store, pk, id, by string, names ...string) (int, error) {
	w := jobWriter{table.Table()}
	return w.decide(ctx, "cancel", pk, id, by, func(r *store.Record) []string { return state.Cancellable(r, names) }, w.strike)
}

// jobWriter.decide carries out an operator's decision about jobs. In the current
// record, pick selects the jobs, and write changes them.
func (w jobWriter) decide(ctx context.Context, op, pk, id, by string, pick func(*store.Record) []string,
	write func(ctx context.Context, now *store.Record, by, decision string, names []string) (*store.Record, bool, error),
) (int, error) {
	now, err := w.table.Glance(ctx, pk)
	switch {
	case err != nil:
		return 0, err
	case now == nil:
		return 0, fmt.Errorf("dynamo: %s: %w: it is gone", op, jobs.ErrMoved)
	}
	decision := rand.Text()
	for range amendRounds {
		if now.ID != id {
			return 0, fmt.Errorf("dynamo: %s: %w: it is another operation's", op, jobs.ErrMoved)
		}
		names := pick(now)
		if len(names) == 0 {
			return 0, nil
		}
		held, refused, err := write(ctx, now, by, decision, names)
		if err != nil {
			held, _ := w.table.Glance(ctx, pk) // after a failed read, held is nil, and HasDecision returns false
			if made, _ := state.HasDecision(held, now, decision); made {
				w.decidedLast(ctx, held)
				return len(names), nil
			}
			return 0, err
		}
		made, known := state.HasDecision(held, now, decision)
		switch {
		case !refused, made: // made although refused: an earlier try of the write succeeded, and its answer was lost
			w.decidedLast(ctx, held)
			return len(names), nil
		case !known:
			return 0, fmt.Errorf("dynamo: %s: %w: the record can't tell any more whether this was decided", op, store.ErrUnknown)
		}
		now = held
	}
	return 0, fmt.Errorf("dynamo: %s: %w: other writes come in between", op, store.ErrConflict)
}

// decidedLast lets a record go if a decision has removed the record's last job. If the write fails,
// a sweep lets the record go.
func (w jobWriter) decidedLast(ctx context.Context, held *store.Record) {
	if state.NoJobsLeft(held) {
		_ = w.letGo(ctx, held)
	}
}

func (w jobWriter) unpark(ctx context.Context, now *store.Record, by, decision string, names []string) (*store.Record, bool, error) {
	paths, placeholders := jobPaths(names)
	placeholders["#t"], placeholders["#f"] = item.JobTries, item.JobFailed
	condition := ackCondition + each(paths, " AND attribute_exists(%s.#f)") // a job that is no longer parked must keep its count, which is of new tries
	remove := make([]string, 0, 2*len(paths))
	after := now.Clone()
	for i, path := range paths {
		remove = append(remove, path+".#f", path+".#t")
		job := after.Jobs[names[i]]
		job.Failed = ""
		after.Jobs[names[i]] = job
	}
	in := w.withWait(now, after, names, condition, remove, placeholders)
	decided(in, now, by, decision, "redrive "+strings.Join(names, " "), "waiting")
	return w.amend(ctx, "redrive", in)
}

func (w jobWriter) strike(ctx context.Context, now *store.Record, by, decision string, names []string) (*store.Record, bool, error) {
	paths, placeholders := jobPaths(names)
	placeholders["#b"] = item.JobBegun
	condition := ackCondition + each(paths, unbegun)
	in := w.withWait(now, now.Clone(), names, condition, paths, placeholders) // the cancelled jobs don't wait for people, so the record's wait stays the same
	decided(in, now, by, decision, "cancel "+strings.Join(names, " "), "cancelled")
	return w.amend(ctx, "cancel", in)
}

// decided adds a decision to a write about jobs.
func decided(in *dynamodb.UpdateItemInput, now *store.Record, by, decision, what, to string) {
	var v item.Values
	d := state.Decided(now, time.Now(), by, what, to)
	d[len(d)-1].ID = decision
	rest, sets := strings.CutPrefix(*in.UpdateExpression, "SET ")
	if sets {
		rest = ", " + rest
	}
	*in.UpdateExpression = "SET settled = :settled" + rest
	in.ExpressionAttributeValues[":settled"] = v.Settled(d)
	*in.ConditionExpression += item.HoldDecisions(now.Settled, in.ExpressionAttributeValues)
}

func parkedJobs(r *store.Record, names []string) (parked []string) {
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		if r.Jobs[name].Failed != "" && (len(names) == 0 || slices.Contains(names, name)) {
			parked = append(parked, name)
		}
	}
	return parked
}
