package sink

import (
	"context"
	"fmt"

	"github.com/samekey/samekey/idem/jobs"
)

// If the sink has accepted no job in a round, the round ends after maxDoubts refusals of unknown
// cause.
const maxDoubts = 10

// round collects the results of one call of Deliver, and what they show about the sink.
type round struct {
	service service
	past    *evidence
	batch   []jobs.Delivery
	errs    []error
	taken   bool  // the sink accepted a job, so the sink exists and is set up
	down    bool  // the sink is at fault, so the remaining deliveries aren't tried
	doubts  []int // indexes of the deliveries that were refused for an unknown cause
}

func newRound(of service, past *evidence, batch []jobs.Delivery) *round {
	return &round{service: of, past: past, batch: batch, errs: make([]error, len(batch))}
}

// round.note records the result of delivery i: the fault f, or success if f is nil.
func (r *round) note(i int, f *fault) {
	if f == nil {
		r.errs[i], r.taken = nil, true
		return
	}
	r.errs[i] = fmt.Errorf("%s: %w", r.service.name, f.err)
	switch f.blame {
	case ofJob:
	case inDoubt:
		r.doubts = append(r.doubts, i)
	default:
		r.errs[i] = fmt.Errorf("%s: %w: %w", r.service.name, jobs.ErrSinkDown, f.err)
	}
}

var (
	errHeldBack = fmt.Errorf("%w: an earlier job of its group failed", jobs.ErrHeldBack)
	errNoSink   = fmt.Errorf("%w: the sink is unavailable to an earlier one", jobs.ErrHeldBack)
)

// round.stops reports whether the round must end before the deliveries with the given
// indexes are tried. If so, stops records these deliveries as not tried. So a sink that
// is down costs one call, not a call for each job.
func (r *round) stops(ctx context.Context, these ...int) bool {
	var err error
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", jobs.ErrHeldBack, context.Cause(ctx))
	case r.down, !r.taken && len(r.doubts) >= maxDoubts:
		err = errNoSink
	default:
		return false
	}
	for _, i := range these {
		r.errs[i] = err
	}
	return true
}

// round.verdicts returns the errors for the drain. If the sink accepted a job, each
// refusal of unknown cause counts against its job. If the sink accepted nothing, the
// sink may be the cause. So only the first refusal can count, and only if
// evidence.suspects returns true. The package comment gives the reasons.
func (r *round) verdicts() []error {
	if r.taken {
		r.past.accepts()
		return r.errs
	}
	for n, i := range r.doubts {
		if n > 0 || !r.past.suspects(r.batch[i].JobID) {
			r.errs[i] = fmt.Errorf("%w, or it refuses the job: %w", jobs.ErrSinkDown, r.errs[i])
		}
	}
	return r.errs
}
