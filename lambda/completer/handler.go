package completer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Handler takes tickets from their queue. It requeues a ticket that isn't due, and
// gives a due ticket to the [Resumer]. It puts the ticket back for later if the
// operation is in flight, if the try failed, or, for as long as needed, if the
// ticket's handler isn't found ([TicketNotMine]). After any other outcome the ticket
// is done. A Handler is safe for concurrent use.
//
// The function's event source mapping must have ReportBatchItemFailures, and the
// queue a redrive policy, which moves a message that is no ticket.
type Handler struct {
	queue   jobs.TicketQueue
	resumer Resumer
	opt     Options
	warned  sync.Once // the warning about ReportBatchItemFailures
}

// Options are a handler's settings; the zero value is the default.
type Options struct {
	// Grace is how long after its lease an operation in flight is tried again, and
	// the back-off after a failed try, which doubles with each try up to an hour.
	// Default: [jobs.DefaultGrace].
	Grace time.Duration
	// MaxTries is after how many failed tries a ticket is given up. Its record is
	// kept, so the sweep makes a new ticket. A ticket whose handler isn't found is
	// not given up. Default: 20.
	MaxTries int
	// Concurrency is how many tickets are resumed at once. Default: 1.
	Concurrency int
	// Logger gets warnings and errors. Default: slog.Default().
	Logger *slog.Logger
	// Resumed is called with the outcome of each ticket that was due; nil is
	// skipped. Calls may be concurrent. Set an alarm on [TicketNotMine]: such an
	// operation waits for an operator.
	Resumed func(context.Context, jobs.Ticket, TicketOutcome)
	// Jobs delivers the jobs of a ticket that a drain has delayed
	// ([jobs.Ticket.Jobs]); an error puts the ticket back. nil: such a ticket has no
	// handler ([TicketNotMine]).
	Jobs func(context.Context, jobs.Ticket) error
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

const minTime = time.Second // no ticket begins with less time

// New returns a handler of queue's messages. It panics if queue or resumer is nil or
// a number is negative: mistakes in the program, which show at cold start.
func New(queue jobs.TicketQueue, resumer Resumer, optFns ...func(*Options)) *Handler {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if queue == nil || resumer == nil || opt.Grace < 0 || opt.MaxTries < 0 || opt.Concurrency < 0 {
		panic("completer: New: queue and resumer must not be nil, numbers not negative") //nolint:forbidigo // a mistake in the program
	}
	if opt.Grace == 0 {
		opt.Grace = jobs.DefaultGrace
	}
	if opt.MaxTries == 0 {
		opt.MaxTries = state.MaxTickets
	}
	if opt.Concurrency == 0 {
		opt.Concurrency = 1
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Handler{queue: queue, resumer: resumer, opt: opt}
}

// Handle works on a batch of messages. The report names the messages that must stay
// in the queue; the error is always nil.
func (h *Handler) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	errs := make([]error, len(ev.Records))
	var wg sync.WaitGroup
	slots := make(chan struct{}, h.opt.Concurrency)
	for i := range ev.Records {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = h.message(ctx, &ev.Records[i])
		})
	}
	wg.Wait()
	re := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, err := range errs {
		if err == nil {
			continue
		}
		h.opt.Logger.ErrorContext(ctx, "ticket stays in the queue", "message", ev.Records[i].MessageId, "error", err)
		h.warned.Do(func() { // a function can't find out whether its source reads the report
			h.opt.Logger.WarnContext(ctx, "that takes ReportBatchItemFailures on the event source mapping: without it Lambda deletes the message, "+
				"and the sweep makes another")
		})
		re.BatchItemFailures = append(re.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: ev.Records[i].MessageId})
	}
	return re, nil
}

// Invoke is Handle for the runtime: payload and result are JSON. An event of
// another source is an error.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev events.SQSEvent
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("completer: not an SQS event: %w", err)
	}
	if len(ev.Records) == 0 {
		return nil, errors.New("completer: not an SQS event: it has no records")
	}
	for i := range ev.Records {
		if source := ev.Records[i].EventSource; source != "aws:sqs" {
			return nil, fmt.Errorf("completer: not an SQS event: a record is of %.40q", source)
		}
	}
	re, err := h.Handle(ctx, ev)
	if err != nil {
		return nil, err
	}
	return json.Marshal(re)
}

// message handles a message; an error leaves the message in the queue.
func (h *Handler) message(ctx context.Context, m *events.SQSMessage) error {
	t, err := parse(m.Body)
	if err != nil {
		return err
	}
	if t.Due.After(h.opt.Now()) {
		return h.again(ctx, t)
	}
	grace := h.opt.Grace
	if t.Jobs != "" {
		grace = state.JobPause
	}
	deadline, ok := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		return errors.New("completer: no time left for it")
	case ok && time.Until(deadline) < minTime:
		// Another ticket has taken the time. Each receive counts, so this message
		// would end in the dead-letter queue without a try; a new message replaces
		// it.
		t.Due = h.opt.Now().Add(grace)
		return h.again(ctx, t)
	}
	o := h.resume(ctx, t)
	log := h.opt.Logger.With("record", redact.Record(t.PK), "outcome", o.Kind, "tries", t.Tries)
	if h.opt.Resumed != nil {
		h.opt.Resumed(ctx, t, o)
	}
	switch o.Kind {
	case TicketInFlight:
		t.Due = h.opt.Now().Add(o.RetryAfter + h.opt.Grace)
		return h.again(ctx, t)
	case TicketNotMine:
		log.ErrorContext(ctx, "no handler for an abandoned operation: its ticket is kept", "function", t.Function, "error", o.Error)
		t.Tries = min(t.Tries+1, h.opt.MaxTries-1) // for the back-off: no try has failed
		t.Due = h.opt.Now().Add(state.BackOff(grace, t.Tries-1))
		return h.again(ctx, t)
	case TicketFailed:
		if t.Tries++; t.Tries >= h.opt.MaxTries {
			log.ErrorContext(ctx, "ticket given up: the sweep makes another", "error", o.Error)
			return nil
		}
		log.WarnContext(ctx, "not completed", "error", o.Error)
		t.Due = h.opt.Now().Add(state.BackOff(grace, t.Tries-1))
		return h.again(ctx, t)
	case TicketStuck:
		log.ErrorContext(ctx, "operation is stuck and waits for an operator", "error", o.Error)
	default:
		log.InfoContext(ctx, "ticket is over")
	}
	return nil
}

// again puts a ticket back in a new message; the old message is then done.
func (h *Handler) again(ctx context.Context, t jobs.Ticket) error {
	return errlist.Pad(h.queue.Put(ctx, []jobs.Ticket{t}), 1)[0]
}

// resume calls the resumer, or the drain. A panic fails this ticket only.
func (h *Handler) resume(ctx context.Context, t jobs.Ticket) (o TicketOutcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed(redact.Panic(v))
		}
	}()
	if t.Jobs == "" {
		return h.resumer.Resume(ctx, t)
	}
	if h.opt.Jobs == nil {
		return TicketOutcome{Kind: TicketNotMine, Error: "it is for a drain"}
	}
	if err := h.opt.Jobs(ctx, t); err != nil {
		return failed(err.Error())
	}
	return TicketOutcome{Kind: TicketDone}
}
