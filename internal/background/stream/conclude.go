package stream

import (
	"context"
	"errors"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Drain.conclude writes the outcomes of t's deliveries into the record. It returns the
// index of the first stream record that must be retried, and how many jobs were
// delivered.
func (d *Drain) conclude(ctx context.Context, t *todo, outcomes map[string]error) (first, delivered int) {
	first = t.heldBackFrom()
	again := func(at int) { first = min(first, at) }
	var names []string
	failures := make(map[string]error)
	for _, j := range t.jobs {
		switch err, known := outcomes[j.name]; {
		case known && err == nil:
			names = append(names, j.name)
		case !known, t.gone, errors.Is(err, jobs.ErrSinkDown), errors.Is(err, jobs.ErrHeldBack):
			// No failure is counted: a deleted record can't store the count, and in the
			// other cases the job isn't at fault.
			again(j.at)
			if isDown(err) {
				if t.down == nil {
					t.down = make(map[string]error)
				}
				t.down[t.image.Jobs[j.name].Kind] = err
			}
		default:
			failures[j.name] = err
		}
	}
	if t.gone {
		for _, j := range t.lost {
			d.lost(ctx, jobEntry(state.ReasonJobLost, t.image, j.name))
		}
		return first, len(names)
	}
	if err := d.writer.acknowledge(ctx, t.image, names...); d.mustRetry(ctx, t, "acknowledge", err) {
		for _, j := range t.jobs {
			again(j.at)
		}
		return first, len(names)
	}
	if t.letGo {
		if err := d.writer.letGo(ctx, t.image); d.mustRetry(ctx, t, "let go", err) {
			again(t.letGoAt)
		}
	}
	if len(failures) == 0 {
		return first, len(names)
	}
	current, err := d.writer.countFailures(ctx, t.image, failures, d.opt.MaxTries)
	bad := d.mustRetry(ctx, t, "count failures", err)
	for _, j := range t.jobs {
		switch {
		case failures[j.name] == nil:
		case bad, state.Pending(current, j.name):
			again(j.at)
		case err == nil && current.Jobs[j.name].Failed != "":
			d.parked(ctx, jobEntry(state.ReasonParked, current, j.name))
		}
	}
	return first, len(names)
}

// isDown reports whether err is a sink's answer that it accepts no job. If the delivery
// was not tried, or ctx ended, isDown returns false.
func isDown(err error) bool {
	return errors.Is(err, jobs.ErrSinkDown) && !errors.Is(err, jobs.ErrHeldBack) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// mustRetry reports whether a write that returned err must be retried. A write to an
// unreadable record isn't retried, since no retry can succeed. The sweep lists the
// record for people.
func (d *Drain) mustRetry(ctx context.Context, t *todo, what string, err error) bool {
	if err == nil {
		return false
	}
	name := redact.Record(t.image.PK)
	d.log.ErrorContext(ctx, "can't "+what, "record", name, "error", err)
	if !errors.Is(err, store.ErrCorrupt) {
		return true
	}
	if d.hooks.Skipped != nil {
		d.hooks.Skipped(ctx, Skipped{Reason: SkipUnreadable, Record: name, Err: err})
	}
	return false
}

func (d *Drain) lost(ctx context.Context, e Entry) {
	d.log.ErrorContext(ctx, "a job that waited for people or for its time is gone with its record", "record", e.Record, "operation", e.ID, "job", e.Job,
		"kind", e.Kind, "tries", e.Tries, "error", e.LastErr)
	if d.hooks.JobLost != nil {
		d.hooks.JobLost(ctx, e)
	}
}

func (d *Drain) parked(ctx context.Context, e Entry) {
	d.log.ErrorContext(ctx, "job parked: an operator has to redrive it", "record", e.Record, "operation", e.ID, "job", e.Job,
		"kind", e.Kind, "tries", e.Tries, "error", e.LastErr)
	if d.hooks.Parked != nil {
		d.hooks.Parked(ctx, e)
	}
}
