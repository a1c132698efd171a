package sink

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/jobs"
)

// maxDoubts is how many refusals of unknown meaning, and nothing taken, end a
// round.
const maxDoubts = 10

// round is one call of Deliver: what has become of each delivery so far, and what
// that says about the sink.
type round struct {
	service string
	errs    []error
	taken   bool  // it took something: it is there, and set up
	down    bool  // it is at fault: the rest isn't tried
	doubts  []int // those refused for one of two reasons
}

func newRound(service string, n int) *round {
	return &round{service: service, errs: make([]error, n)}
}

// note records what became of delivery i: f is nil if it was taken.
func (r *round) note(i int, f *fault) {
	if f == nil {
		r.errs[i], r.taken = nil, true
		return
	}
	r.errs[i] = fmt.Errorf("%s: %w", r.service, f.err)
	switch f.blame {
	case ofJob:
	case inDoubt:
		r.doubts = append(r.doubts, i)
	default:
		r.errs[i] = fmt.Errorf("%s: %w: %w", r.service, jobs.ErrSinkDown, f.err)
	}
}

var (
	errHeldBack = fmt.Errorf("%w: an earlier job of its group failed", jobs.ErrHeldBack)
	errNoSink   = fmt.Errorf("%w: the sink is unavailable to an earlier one", jobs.ErrHeldBack)
)

// over reports whether the round has come to its end, and if so notes that these
// aren't tried any more. A sink that is down costs a call, not one for each job.
func (r *round) over(ctx context.Context, these ...int) bool {
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

// verdicts are the errors for the drain. Refusals of unknown meaning count against
// their jobs if the sink took others. If it took none, it may as well be the sink:
// then one of them counts, so that a single bad job is parked in the end, and bad
// ones one after another, but an outage doesn't park everything there is.
func (r *round) verdicts() []error {
	if !r.taken && len(r.doubts) > 1 {
		for _, i := range r.doubts[1:] {
			r.errs[i] = fmt.Errorf("%w, or it refuses the job: %w", jobs.ErrSinkDown, r.errs[i])
		}
	}
	return r.errs
}

// results are what became of the entries of a call.
type results []*fault

var errUntold = errors.New("the answer doesn't tell")

// missing are results of n entries none of which has been told of yet.
func missing(n int) results {
	all := make(results, n)
	for i := range all {
		all[i] = &fault{ofSink, errUntold}
	}
	return all
}

// down reports whether the sink is at fault for all of them.
func (r results) down() bool {
	for _, f := range r {
		if f == nil || f.blame != ofSink {
			return false
		}
	}
	return true
}
