package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// holdBack moves a job from t.jobs to t.heldBack if an earlier job of the same group is
// delayed, so that the order is kept. The ticket of the earlier job delivers both jobs.
func (d *Drain) holdBack(ctx context.Context, t *todo) {
	load := sync.OnceValues(func() (*store.Record, error) {
		// Jobs in the image may be acknowledged by now, so read the current record.
		now, err := d.writer.table.Glance(ctx, t.image.PK)
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			d.log.WarnContext(ctx, "can't look for earlier jobs", "record", redact.Record(t.image.PK), "error", err)
		}
		return now, err
	})
	pending := func(name string) bool {
		now, err := load()
		if err != nil {
			// If the record is unreadable, nobody can deliver the earlier jobs, so they
			// hold back no job. After another error, they may still wait.
			return !errors.Is(err, store.ErrCorrupt)
		}
		return now != nil && now.ID == t.image.ID && state.Pending(now, name)
	}
	left := slices.DeleteFunc(slices.Clone(t.jobs), func(j jobRef) bool {
		return slices.ContainsFunc(d.ahead(t, j.name), pending)
	})
	for _, j := range t.jobs {
		if !slices.Contains(left, j) {
			t.heldBack = append(t.heldBack, j)
		}
	}
	t.jobs = left
}

// Drain.ahead returns the names of the jobs of t.image that are before the named job,
// have the same group and sink, and are not in t.jobs. It leaves out parked jobs and
// jobs that this process has delivered. It also leaves out jobs with a time, since they
// have their own tickets.
func (d *Drain) ahead(t *todo, name string) (earlier []string) {
	later := t.delivery(name)
	for _, other := range slices.SortedFunc(maps.Keys(t.image.Jobs), byPosition) {
		if byPosition(other, name) >= 0 {
			break
		}
		o := t.delivery(other)
		switch {
		case !state.Pending(t.image, other), !t.image.Jobs[other].At.IsZero(), o.Group != later.Group, d.recent.has(o.JobID), !d.together(o.Kind, later.Kind):
		case slices.ContainsFunc(t.jobs, func(j jobRef) bool { return j.name == other }):
		default:
			earlier = append(earlier, other)
		}
	}
	return earlier
}

// Drain.together reports whether jobs of the kinds a and b go to the same sink. It also
// returns true if the sink can't tell.
func (d *Drain) together(a, b string) bool {
	if r, ok := d.sink.(interface{ Together(a, b string) bool }); ok {
		return r.Together(a, b)
	}
	return true
}
