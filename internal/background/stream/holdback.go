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

// holdBack removes from t the jobs that would overtake a delayed earlier job of their group. The
// ticket of the earlier job delivers the removed jobs too.
func (d *Drain) holdBack(ctx context.Context, t *todo) {
	load := sync.OnceValues(func() (*store.Record, error) {
		// The image may have jobs that have been acknowledged since, so read the current record.
		now, err := d.writer.table.Glance(ctx, t.image.PK)
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			d.log.WarnContext(ctx, "can't look for earlier jobs", "record", redact.Record(t.image.PK), "error", err)
		}
		return now, err
	})
	pending := func(name string) bool {
		now, err := load()
		if err != nil {
			// Nobody can deliver the jobs of a corrupt record, so such jobs hold back no job of the
			// image.
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

// ahead returns the jobs of t.image that precede the named job in its group, have the same sink,
// and are not in t.jobs. It leaves out parked jobs, jobs that this process has delivered, and jobs
// with a time, which their own tickets deliver.
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

// together reports whether jobs of the kinds a and b go to the same sink. It also returns true if
// the sink can't tell.
func (d *Drain) together(a, b string) bool {
	if r, ok := d.sink.(interface{ Together(a, b string) bool }); ok {
		return r.Together(a, b)
	}
	return true
}
