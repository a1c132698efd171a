package stream

import (
	"context"
	"slices"

	"github.com/samekey/samekey/internal/state"
)

// Drain.begin notes in the record that t's later jobs are being delivered. From then on nobody can
// cancel these jobs. If a job was cancelled, or another drain has delivered it, begin removes the
// job from t. If the write fails, t's later jobs are not delivered now. They are retried unless the
// record is unreadable.
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
