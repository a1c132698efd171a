package stream

import (
	"context"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// oldImage is the age from which an image no longer proves that its jobs still wait. An event
// source mapping that is new, or was off, delivers images that are up to a day old.
const oldImage = 5 * time.Minute

// If a todo's image is old, recheck reads the record, and drops the jobs that no longer wait in the
// record. If the record is gone, recheck drops all its jobs, since a later stream record has the
// undelivered jobs. If the record can't be read, recheck drops none: a second delivery is better
// than none.
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
