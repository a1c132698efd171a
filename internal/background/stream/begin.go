package stream

import (
	"context"
	"slices"

	"github.com/samekey/samekey/internal/state"
)

// begin notes in the record that the delivery of t's jobs with a time begins. From then on nobody
// can cancel these jobs. Jobs that were cancelled, or that another drain has delivered, are removed
// from t. If the write fails, t's jobs with a time are not delivered, and t is retried.
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
	current, err := d.writer.begin(ctx, t.image, names)
	again := d.mustRetry(ctx, t, "begin to deliver", err)
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool {
		if err == nil {
			return !state.Pending(current, j.name)
		}
		begins := slices.Contains(names, j.name)
		if begins && again {
			t.heldBack = append(t.heldBack, j)
		}
		return begins
	})
	if err == nil && current.ID == t.image.ID {
		t.image = current
	}
}
