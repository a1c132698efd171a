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
// A queue may deliver a ticket more than once, late, or a little early. A second use of
// a ticket does no harm, and the receiver puts off an early ticket until Due.
type TicketQueue interface {
	// Put adds tickets. If all were added, Put returns nil. Otherwise it returns a list
	// with one element for each ticket: the ticket's error, or nil if the ticket was
	// added.
	Put(ctx context.Context, tickets []jobs.Ticket) []error
}

// Completer watches the table's stream for unfinished operations, and puts a ticket for
// each into a queue. The queue delivers the ticket after the end of the operation's
// lease and a waiting time ([CompleterOptions.Grace]). If an operation starts and ends
// within one batch, it needs no ticket. So a batching window of up to a minute saves
// tickets. The window is set in the event source mapping. A Completer is safe for
// concurrent use. It may handle a batch twice or late, since the receiver of a ticket
// checks the record. It may also miss a batch, since a client's retry needs no ticket,
// and the sweep finds operations without a ticket.
//
// Only an operation whose request is stored ([idem.Options.Resumable]) gets a ticket,
// since no other operation can be completed. The ticket stays in the queue until the
// operation is done or stuck, so later attempts need no other ticket. A Completer makes
// another ticket only if a person ends an attempt's lease, or orders another try of a
// stuck operation.
//
// If the record of an unfinished operation was deleted or replaced, a Completer reports
// the operation at least once ([Hooks.ExpiredOpen]).
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
	// LeaveToSweep lets the completer continue the batch if a ticket can't be queued.
	// The sweep then makes another ticket. Default: the batch is retried, beginning
	// with the stream record from which the ticket was made.
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

// Invoke is Handle for the Lambda runtime, with payload and result as JSON. It returns
// an error if the event is not from DynamoDB.
func (c *Completer) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, c.handle)
}

// Completer.run queues tickets for changes, and returns the index of the first stream
// record that must be retried.
func (c *Completer) run(ctx context.Context, changes []change) (first int) {
	newest := make(map[string]*change)
	// ticketed tells for each partition key whether a ticket that was made before this
	// batch will come in time.
	ticketed := make(map[string]bool)
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
			// A stuck operation has no ticket left. If a person has ended the lease,
			// the ticket would come too late: after the lease's old end.
			ticketed[ch.new.PK] = false
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

// Completer.put puts tickets into the queue. The ticket tickets[i] was made from the
// stream record with the index at[i]. put returns the index of the first stream record
// that must be retried.
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
