package stream

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Redrive delivers parked jobs of the operation id again, after an operator has
// removed the cause of their failures: all parked jobs, or the named ones. It
// returns their number: of those that this call has handed out, not another at the same
// time. A drain sees them in the stream, as if they had just been staged. The record
// keeps who decided (by, at most 256 bytes), and when.
//
// If the record belongs to another operation by now, the error matches
// [jobs.ErrMoved]: its jobs have the same names, but nobody has checked the cause of
// their failures.
func Redrive(ctx context.Context, store *dynamo.Store, pk, id, by string, names ...string) (int, error) {
	return jobWriter{store.Table()}.redrive(ctx, pk, id, by, names)
}

func (w jobWriter) redrive(ctx context.Context, pk, id, by string, names []string) (int, error) {
	now, err := w.table.Glance(ctx, pk)
	if err != nil || now == nil {
		return 0, err
	}
	decision := rand.Text()
	for range amendRounds {
		if now.ID != id {
			return 0, fmt.Errorf("dynamo: redrive: %w: it is another operation's", jobs.ErrMoved)
		}
		parked := parkedJobs(now, names)
		if len(parked) == 0 {
			return 0, nil
		}
		held, refused, err := w.unpark(ctx, now, by, decision, parked)
		if err != nil {
			if held, rerr := w.table.Glance(ctx, pk); rerr == nil {
				if made, _ := state.HasDecision(held, now, decision); made {
					return len(parked), nil
				}
			}
			return 0, err
		}
		made, known := state.HasDecision(held, now, decision)
		switch {
		case !refused, made: // the answer to a first write may have been lost
			return len(parked), nil
		case !known:
			return 0, fmt.Errorf("dynamo: redrive: %w: the record can't tell any more whether this was decided", store.ErrUnknown)
		}
		now = held
	}
	return 0, fmt.Errorf("dynamo: redrive: %w: other writes come in between", store.ErrConflict)
}

func (w jobWriter) unpark(ctx context.Context, now *store.Record, by, decision string, names []string) (*store.Record, bool, error) {
	paths, placeholders := jobPaths(names)
	placeholders["#t"], placeholders["#f"] = item.JobTries, item.JobFailed
	condition := ackCondition + each(paths, " AND attribute_exists(%s.#f)") // still parked: counts of a new round stay
	remove := make([]string, 0, 2*len(paths))
	after := now.Clone()
	for i, path := range paths {
		remove = append(remove, path+".#f", path+".#t")
		job := after.Jobs[names[i]]
		job.Failed = ""
		after.Jobs[names[i]] = job
	}
	in := w.withWait(now, after, names, condition, remove, placeholders)
	var v item.Values
	d := state.Decided(now, time.Now(), by, "redrive "+strings.Join(names, " "), "waiting")
	d[len(d)-1].ID = decision
	rest, sets := strings.CutPrefix(*in.UpdateExpression, "SET ")
	if sets {
		rest = ", " + rest
	}
	*in.UpdateExpression = "SET settled = :settled" + rest
	in.ExpressionAttributeValues[":settled"] = v.Settled(d)
	*in.ConditionExpression += item.HoldDecisions(now.Settled, in.ExpressionAttributeValues)
	return w.amend(ctx, "redrive", in)
}

func parkedJobs(r *store.Record, names []string) (parked []string) {
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		if r.Jobs[name].Failed != "" && (len(names) == 0 || slices.Contains(names, name)) {
			parked = append(parked, name)
		}
	}
	return parked
}
