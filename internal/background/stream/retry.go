package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Retry delivers the jobs that wait in the current record of ticket t's operation and
// whose time has come, in the order in which they were staged. After an error the
// ticket must be retried. If the record is gone, or belongs to another operation by
// now, Retry delivers nothing and returns nil.
func (d *Drain) Retry(ctx context.Context, t jobs.Ticket) error {
	r, err := d.writer.table.Glance(ctx, t.PK)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		d.mustRetry(ctx, &todo{image: &store.Record{PK: t.PK}}, "read a record whose jobs wait", err)
		return nil // no retry can read the record
	case err != nil:
		return fmt.Errorf("dynamo: retry: %w", err)
	case r == nil || r.ID != t.Operation:
		return nil
	}
	td := &todo{image: r, letGo: state.NoJobsLeft(r)}
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		if state.Pending(r, name) {
			td.jobs = append(td.jobs, jobRef{name: name})
		}
	}
	if d.run(ctx, []*todo{td}); td.retry {
		return errors.New("dynamo: some jobs are not delivered yet: the ticket waits")
	}
	return nil
}
