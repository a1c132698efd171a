package stream

import (
	"context"
	"slices"

	"github.com/samekey/samekey/internal/state"
)

// Drain.begin notes in the record that the delivery of t's later jobs begins. From then
// on nobody can cancel these jobs. begin removes from t the jobs that were cancelled or
// that another drain has delivered. If the write fails, begin removes the later jobs
// from t, so they are not delivered now. They are retried, unless the record is
// unreadable.
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
