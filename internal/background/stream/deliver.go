package stream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// Drain.deliver passes jobs to the sink and returns the outcome of each job by name:
// nil for a delivered job, otherwise an error.
func (d *Drain) deliver(ctx context.Context, all []delivery) map[*todo]map[string]error {
	outcomes := make(map[*todo]map[string]error)
	note := func(j delivery, err error) {
		if outcomes[j.todo] == nil {
			outcomes[j.todo] = make(map[string]error)
		}
		outcomes[j.todo][j.name] = err
	}
	var fresh []delivery
	for _, j := range all {
		if d.recent.has(j.JobID) {
			note(j, nil)
			continue
		}
		fresh = append(fresh, j)
	}
	ctx, cancel := withReserve(ctx)
	defer cancel()
	fresh, closed := d.open(ctx, fresh)
	for _, c := range closed {
		note(c.delivery, c.err)
		d.undelivered(ctx, c.delivery, c.err)
	}
	batch := make([]jobs.Delivery, len(fresh))
	for i, j := range fresh {
		batch[i] = j.Delivery
	}
	if len(batch) == 0 {
		return outcomes
	}
	ends := d.beginSpans(ctx, fresh)
	for i, err := range errlist.Pad(d.sink.Deliver(ctx, batch), len(batch)) {
		j := fresh[i]
		ends(i, err)
		note(j, err)
		if err != nil {
			d.undelivered(ctx, j, err)
			continue
		}
		d.recent.add(j.JobID)
		if d.hooks.Delivered != nil {
			d.hooks.Delivered(ctx, j.Delivery)
		}
	}
	return outcomes
}

// beginSpans begins a span for each delivery. The returned function ends the span of delivery i.
// One call of the sink delivers many jobs, so the sink gets the batch's context, not the context of
// a span.
func (d *Drain) beginSpans(ctx context.Context, all []delivery) (ends func(i int, err error)) {
	if d.opt.Tracer == nil {
		return func(int, error) {}
	}
	spans := make([]func(trace.Outcome), len(all))
	for i, j := range all {
		_, spans[i] = d.opt.Tracer.Start(ctx, trace.Step{
			Kind: trace.Deliver, Name: j.Kind, Record: redact.Record(j.todo.image.PK), Operation: j.Operation, Route: j.todo.image.Route,
			Job: j.JobID, Tries: j.Tries, From: j.Trace,
		})
	}
	return func(i int, err error) {
		o := trace.Outcome{Err: err}
		switch {
		case errors.Is(err, jobs.ErrHeldBack):
			o.Code = "held_back"
		case errors.Is(err, jobs.ErrSinkDown):
			o.Code = "sink_unavailable"
		case err != nil:
			o.Code = "delivery_failed"
		}
		spans[i](o)
	}
}

func (d *Drain) undelivered(ctx context.Context, j delivery, err error) {
	if !errors.Is(err, jobs.ErrHeldBack) {
		d.log.WarnContext(ctx, "delivery failed", "record", redact.Record(j.todo.image.PK), "job", j.JobID, "kind", j.Kind, "error", err)
	}
	if d.hooks.Failed != nil {
		d.hooks.Failed(ctx, j.Delivery, err)
	}
}

// withReserve returns a context that ends before ctx, to leave time for
// acknowledgements. It leaves a tenth of ctx's remaining time, but at least a second. A
// delivered job that isn't acknowledged would be delivered again.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-max(time.Until(deadline)/10, time.Second)))
}

// delivery is a job of a todo on its way to the sink.
type delivery struct {
	jobs.Delivery
	todo *todo
	jobRef
}

// deliveries returns the jobs of all todos in the order in which they were staged.
func deliveries(todos []*todo) []delivery {
	var all []delivery
	for _, t := range todos {
		for _, j := range t.jobs {
			all = append(all, delivery{t.delivery(j.name), t, j})
		}
	}
	slices.SortStableFunc(all, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
	return all
}

func (t *todo) delivery(name string) jobs.Delivery {
	r := t.image
	job := r.Jobs[name]
	return jobs.Delivery{
		JobID: state.JobID(r.ID, name), Operation: r.ID, Kind: job.Kind, Args: job.Args, Group: cmp.Or(job.Group, r.ID), Tries: job.Tries,
		Tenant: r.Tenant, Trace: job.Trace,
	}
}
