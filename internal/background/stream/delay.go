package stream

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/state"
)

const (
	// delayTime is how long delay may take to queue tickets, even if the batch's time
	// is up.
	delayTime = 5 * time.Second
)

// Drain.delay queues a ticket for each operation that must be retried. If an operation
// has later jobs, delay also queues a ticket for each of their times. If a record was
// deleted, a ticket can't help, since the record's jobs are only in the stream. For
// jobs of deleted records, delay returns the index of the first stream record that must
// be retried.
func (d *Drain) delay(ctx context.Context, todos []*todo) (first int) {
	first = none
	var tickets, timed []jobs.Ticket
	for _, t := range todos {
		for _, at := range t.times() {
			timed = append(timed, jobs.Ticket{PK: t.image.PK, Operation: t.image.ID, Jobs: true}.From(at))
		}
		switch {
		case !t.retry:
		case t.gone:
			first = min(first, t.retryFrom)
		default:
			pause := state.JobPause
			if len(t.jobs) == 0 && len(t.heldBack) > 0 {
				pause = state.HeldPause
			}
			tickets = append(tickets, jobs.Ticket{PK: t.image.PK, Operation: t.image.ID, Jobs: true}.From(time.Now().Add(pause)))
		}
	}
	failures := len(tickets)
	tickets = append(tickets, timed...)
	if len(tickets) == 0 {
		return first
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delayTime)
	defer cancel()
	for i, err := range errlist.Pad(d.opt.Delayed.Put(ctx, tickets), len(tickets)) {
		switch {
		case err != nil:
			d.log.ErrorContext(ctx, "jobs are left to the sweep: no ticket for them could be queued", "record", tickets[i].Record(), "error", err)
		case i < failures && d.hooks.Delayed != nil:
			d.hooks.Delayed(ctx, tickets[i])
		}
	}
	return first
}
