package stream

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// begin notes in its record that the jobs of t whose time has come are being delivered: nobody
// cancels them from then on. Jobs that somebody has cancelled, or another drain has delivered,
// leave t. If the write fails, none of them is delivered, and t comes again.
func (d *Drain) begin(ctx context.Context, t *todo) {
	var names []string
	for _, j := range t.jobs {
		if !t.gone && state.MayCancel(t.image, j.name) {
			names = append(names, j.name)
		}
	}
	if len(names) == 0 {
		return
	}
	now, err := d.jobs.begin(ctx, t.image, names)
	again := d.failed(ctx, t, "begin to deliver", err)
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool {
		if err == nil {
			return !state.Pending(now, j.name)
		}
		begins := slices.Contains(names, j.name)
		if begins && again {
			t.held = append(t.held, j)
		}
		return begins
	})
	if err == nil && now.ID == t.image.ID {
		t.image = now
	}
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
