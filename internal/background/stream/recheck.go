package stream

import (
	"context"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// oldImage is an image's age from which its jobs may have been delivered already. An
// event source mapping that is new, or was off, sends images that are up to a day old.
const oldImage = 5 * time.Minute

// Drain.recheck reads the records of todos whose images are old, and drops the jobs
// that no longer wait in their record. If a record was deleted or replaced, recheck
// drops all jobs of the todo: the stream record of the deletion comes later, and has
// the undelivered jobs. If a record can't be read, recheck keeps the todo's jobs, since
// a second delivery is better than a lost job.
func (d *Drain) recheck(ctx context.Context, todos []*todo) {
	d.inParallel(todos, func(t *todo) {
		if t.gone || t.time.IsZero() || time.Since(t.time) < oldImage {
			return
		}
		now, err := d.writer.table.Glance(ctx, t.image.PK)
		if err != nil {
			d.log.WarnContext(ctx, "can't look for delivered jobs", "record", redact.Record(t.image.PK), "error", err)
			return
		}
		if now == nil || now.ID != t.image.ID {
			now = &store.Record{PK: t.image.PK, ID: t.image.ID}
		}
		t.image, t.letGo = now, state.NoJobsLeft(now)
		over := func(j jobRef) bool { return !state.Pending(now, j.name) }
		t.jobs, t.later = slices.DeleteFunc(t.jobs, over), slices.DeleteFunc(t.later, over)
	})
}
