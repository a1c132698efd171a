package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// TicketQueue keeps tickets until they are due. A TicketQueue is safe for
// concurrent use.
//
// A queue may return a ticket more than once, late, or a little early. This does no harm, since a
// ticket can be used twice and the receiver checks Due.
type TicketQueue interface {
	// Put adds tickets. Put returns nil if all were added. Otherwise it returns a list with one
	// error for each ticket: nil for a ticket that was added.
	Put(ctx context.Context, tickets []jobs.Ticket) []error
}

// Completer watches the table's stream for unfinished operations, and puts a ticket for each into a
// queue. The queue delivers the ticket when the operation's lease and then a waiting time
// ([CompleterOptions.Grace]) are over. An operation whose start and end are in the same batch needs
// no ticket. So a batching window of up to a minute saves tickets; set it in the event source
// mapping. A Completer is safe for concurrent use. It may handle a batch twice or late, since the
// receiver of a ticket checks the record. It may also miss a batch, since a client's retry works
// without a ticket.
//
// A Completer makes one ticket for each operation whose request is stored
// ([idem.Options.Resumable]): an operation without its request can't be completed. The ticket stays
// in the queue until the operation has ended, so later attempts need no other ticket. A Completer
// makes another ticket only if a person ends an attempt's lease, or orders another try of a stuck
// operation. The sweep finds the operations that a Completer has missed.
//
// Completer also reports unfinished operations whose records were deleted or replaced
// ([Hooks.ExpiredOpen]), each at least once.
type Completer struct {
	reader
	queue TicketQueue
	opt   CompleterOptions
}

// CompleterOptions are a completer's settings; the zero value is the default.
type CompleterOptions struct {
	// Grace is how long the completer leaves an operation to its client after the lease has ended
	// or was released. Grace doubles with every try of the completer, up to an hour. Default:
	// [state.DefaultGrace].
	Grace time.Duration
	// LeaveToSweep lets the completer continue the batch if a ticket can't be queued. The sweep
	// then makes another ticket. Default: the batch is retried, beginning with the stream record of
	// that operation.
	LeaveToSweep bool
	// Logger gets warnings and errors. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called as the completer works, for metrics and alarms.
	Hooks Hooks
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// NewCompleter returns a completer that puts tickets into queue. It panics if queue is nil or Grace
// is negative.
func NewCompleter(queue TicketQueue, optFns ...func(*CompleterOptions)) *Completer {
	var opt CompleterOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if queue == nil || opt.Grace < 0 {
		panic("stream: NewCompleter: queue must not be nil, times not negative") //nolint:forbidigo // a mistake in the program
	}
	opt.Grace = cmp.Or(opt.Grace, state.DefaultGrace)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	c := &Completer{queue: queue, opt: opt}
	c.log, c.hooks = cmp.Or(opt.Logger, slog.Default()), &c.opt.Hooks
	return c
}

// Handle works on a batch of the stream. The report names the first record that must be retried.
// The error is always nil.
func (c *Completer) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return c.handle(ctx, batchOf(ev))
}

func (c *Completer) handle(ctx context.Context, b batch) (events.DynamoDBEventResponse, error) {
	return c.inParts(ctx, b, func(changes []change) int { return c.run(ctx, changes) })
}

// Invoke is Handle for the runtime: payload and result are JSON. An event from another source than
// DynamoDB is an error.
func (c *Completer) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, c.handle)
}

// run handles the list changes. It returns the index of the first stream record that must be
// retried.
func (c *Completer) run(ctx context.Context, changes []change) (first int) {
	newest := make(map[string]*change)
	ticketed := make(map[string]bool) // by the record's partition key: whether a ticket from before this batch will come in time
	for i := range changes {
		ch := &changes[i]
		if ch.replaced() && state.Unfinished(ch.old) {
			c.expired(ctx, entry(state.ReasonExpiredOpen, ch.old))
		}
		if ch.new == nil {
			delete(newest, ch.old.PK)
			continue
		}
		if known := newest[ch.new.PK]; known == nil || known.new.ID != ch.new.ID {
			before := ch.before()
			ticketed[ch.new.PK] = before != nil && state.Completable(before)
		}
		if ch.leaseEnded() || ch.new.State == store.Stuck {
			ticketed[ch.new.PK] = false // a stuck operation's ticket has ended; after a person ended the lease, the ticket would come only at the lease's old end
		}
		newest[ch.new.PK] = ch
	}
	var tickets []jobs.Ticket
	var at []int
	for i := range changes { // in the batch's order
		ch := &changes[i]
		if ch.new == nil || newest[ch.new.PK] != ch || ticketed[ch.new.PK] || !state.Completable(ch.new) || state.Overheld(ch.new, c.opt.Now()) {
			continue
		}
		tickets = append(tickets, state.TicketFor(ch.new).From(state.Due(ch.new, ch.time, c.opt.Grace)))
		at = append(at, ch.at)
	}
	return c.put(ctx, tickets, at)
}

// put puts tickets into the queue. For each ticket, the list at has the index of the stream record
// that the ticket was made from.
func (c *Completer) put(ctx context.Context, tickets []jobs.Ticket, at []int) (first int) {
	first = none
	if len(tickets) == 0 {
		return first
	}
	for i, err := range errlist.Pad(c.queue.Put(ctx, tickets), len(tickets)) {
		if err != nil {
			if !errors.Is(err, jobs.ErrHeldBack) {
				c.log.ErrorContext(ctx, "ticket not queued", "record", redact.Record(tickets[i].PK), "error", err)
			}
			if c.opt.LeaveToSweep {
				continue
			}
			first = min(first, at[i])
			continue
		}
		if c.hooks.Queued != nil {
			c.hooks.Queued(ctx, tickets[i])
		}
	}
	return first
}

func (c *Completer) expired(ctx context.Context, e Entry) {
	c.log.ErrorContext(ctx, "an unfinished operation is gone", "record", e.Record, "operation", e.ID, "route", e.Route,
		"phase", e.Phase, "created", e.Created, "error", e.LastErr)
	if c.hooks.ExpiredOpen != nil {
		c.hooks.ExpiredOpen(ctx, e)
	}
}
