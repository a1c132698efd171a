package sink

import (
	"context"
	"errors"

	"github.com/samekey/samekey/idem/jobs"
)

// oneByOne makes a call for each delivery, for services without batches.
type oneByOne struct {
	service service
	// call sends a delivery. It returns nil if the service accepted the job.
	call func(context.Context, jobs.Delivery) *fault
	past evidence
}

// errNotJSON is the fault of a job whose Args are not JSON. Such a job has no payload,
// and the service would accept a call without a payload. So the job isn't sent.
var errNotJSON = &fault{ofJob, errors.New("its Args are not JSON")}

func (o *oneByOne) deliver(ctx context.Context, batch []jobs.Delivery) []error {
	r := newRound(o.service, &o.past, batch)
	failed := make(map[string]bool)
	for i, d := range batch {
		switch {
		case r.stops(ctx, i):
		case failed[d.Group]:
			r.errs[i] = errHeldBack
		default:
			f := o.call(ctx, d)
			r.note(i, f)
			r.down = f != nil && f.blame == ofSink
			failed[d.Group] = f != nil
		}
	}
	return r.verdicts()
}
