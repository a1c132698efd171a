package stream

import (
	"context"
	"slices"

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
	now, err := d.jobs.begin(ctx, t.image, names)
	again := d.failed(ctx, t, "begin to deliver", err)
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool {
		if err == nil {
			return !state.Pending(now, j.name)
		}
		begins := slices.Contains(names, j.name)
		if begins && again {
			t.heldBack = append(t.heldBack, j)
		}
		return begins
	})
	if err == nil && now.ID == t.image.ID {
		t.image = now
	}
}
