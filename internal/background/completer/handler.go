package completer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Handler takes tickets from their queue. A ticket is one message, which waits in the
// queue until its operation has ended. If the message must wait longer, the Handler
// hides the message again and reports it to Lambda as failed. The Handler never sends
// the ticket as a new message, since Lambda would take repeated sends for a loop and
// stop them.
//
// When a ticket is due, the Handler reads its record once, and gives the ticket to the
// [Resumer]. The ticket keeps waiting if the try failed, or if another attempt holds or
// has continued the operation. After any other outcome the message is deleted.
//
// In these cases a message is deleted although the operation has not ended, and the
// sweep makes another ticket:
//   - The operation's handler isn't found ([TicketNotMine]).
//   - The ticket is older than 10 days.
//   - The operation has been due for 3 hours, its function gives no answer, and an
//     older ticket of the operation waits.
//   - 60,000 messages wait. (With 120,000 waiting messages, SQS would stop delivery.)
//
// While a function gives no answer, one ticket in each process tries the function. The
// function's other tickets wait, and the wait doesn't count as a try of their
// operations. A Handler is safe for concurrent use.
//
// The event source mapping of the completer's function must have
// ReportBatchItemFailures. The queue must have a redrive policy with a maxReceiveCount
// of 1000, because each wait counts as a receive.
type Handler struct {
	records  store.Store
	queue    *Queue
	resumer  Resumer
	opt      Options
	breakers breakers
	overdue  *overdue
}

// Options are a handler's settings; the zero value is the default.
type Options struct {
	// Grace is the time between the end of an operation's lease and the first try. Each failed try
	// doubles the pause before the next try, up to an hour. Grace is at most a day. Default:
	// [state.DefaultGrace].
	Grace time.Duration
	// Concurrency is how many tickets are resumed at once. Default: 1.
	Concurrency int
	// Logger gets warnings and errors. Default: slog.Default().
	Logger *slog.Logger
	// Resumed is called with each outcome of a ticket. Resumed may be nil. Calls may be
	// concurrent. Set an alarm on the outcome [TicketNotMine], since the operation then
	// waits for an operator.
	Resumed func(context.Context, jobs.Ticket, TicketOutcome)
	// Listed adds an operation to the list of what waits for people ([stream.Refer]).
	// The Handler calls Listed before it deletes a message for one of these reasons:
	// the message or its record is unreadable, the ticket has no handler, or the ticket
	// is too old. If Listed returns an error, the message stays in the queue. If the
	// message was unreadable, t.PK is a key that no record has. If Listed is nil,
	// nothing is listed.
	//
	// [stream.Refer]: https://pkg.go.dev/github.com/samekey/samekey/internal/background/stream#Refer
	Listed func(ctx context.Context, t jobs.Ticket, why error) error
	// Jobs delivers the jobs of a record, for a ticket that asks for jobs
	// ([jobs.Ticket.Jobs]). If Jobs returns an error, the ticket keeps waiting. If Jobs
	// is nil, such tickets end with [TicketNotMine].
	Jobs func(context.Context, jobs.Ticket) error
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

const minTime = time.Second // if less time is left, no ticket is tried

// New returns a handler for the tickets in queue. The parameter records is the store
// with the tickets' operations. New panics if records, queue or resumer is nil, or if
// an option is out of range.
func New(records store.Store, queue *Queue, resumer Resumer, optFns ...func(*Options)) *Handler {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if records == nil || queue == nil || resumer == nil || opt.Grace < 0 || opt.Grace > state.MaxGrace || opt.Concurrency < 0 {
		panic("completer: New: store, queue and resumer must not be nil, Grace at most a day, numbers not negative") //nolint:forbidigo // a mistake in the program
	}
	if opt.Grace == 0 {
		opt.Grace = state.DefaultGrace
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
	return &Handler{records: records, queue: queue, resumer: resumer, opt: opt, breakers: newBreakers(min(probePause, opt.Grace)), overdue: newOverdue()}
}

// Handle works on a batch of messages. The response names the messages that stay in the queue. The
// error is always nil.
func (h *Handler) Handle(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	return h.handle(ctx, ev), nil
}

func (h *Handler) handle(ctx context.Context, ev events.SQSEvent) events.SQSEventResponse {
	began := h.opt.Now()
	waits := make([]bool, len(ev.Records))
	var wg sync.WaitGroup
	slots := make(chan struct{}, h.opt.Concurrency)
	for i := range ev.Records {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			waits[i] = h.message(ctx, &received{&ev.Records[i], began})
		})
	}
	wg.Wait()
	re := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, wait := range waits {
		if wait {
			re.BatchItemFailures = append(re.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: ev.Records[i].MessageId})
		}
	}
	return re
}

// Invoke is Handle for the runtime: payload and result are JSON. An event from another source than
// SQS is an error.
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
	return json.Marshal(h.handle(ctx, ev))
}

// received is a message, and the time at which its batch arrived.
type received struct {
	*events.SQSMessage
	at time.Time
}

// received.number returns a system attribute of the message, or 0 if the attribute is
// missing.
func (m *received) number(attribute string) int64 {
	n, err := strconv.ParseInt(m.Attributes[attribute], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// received.rest returns the shortest wait of a message after this receive: after 100
// receives, 2.5 seconds for each further receive. So the queue's limit of 1000 receives
// lasts for 11 days, longer than [state.TicketLife], although a function may give no
// answer for days.
func (m *received) rest() time.Duration {
	const few, most = 100, 1000 // most is the queue's maxReceiveCount
	return 2500 * time.Millisecond * time.Duration(max(min(m.number("ApproximateReceiveCount"), most)-few, 0))
}

// Handler.message handles a message, and reports whether the message stays in the queue.
func (h *Handler) message(ctx context.Context, m *received) (waits bool) {
	t, err := parse(m.Body)
	now := h.opt.Now()
	switch sent := m.number("SentTimestamp"); {
	case err != nil:
		t.PK = state.NoTicket + m.MessageId
		return h.ended(ctx, m, t, err)
	case t.Due.After(now):
		return h.wait(ctx, m, t.Due)
	case sent > 0 && min(now.Sub(time.UnixMilli(sent)), now.Sub(t.Due)) > state.TicketLife: // a later job's ticket may be sent long before Due, so its age is counted from Due
		return h.ended(ctx, m, t, errors.New("its ticket was tried for ten days"))
	}
	deadline, ok := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		return true
	case ok && time.Until(deadline) < minTime: // other tickets have used up the time
		return h.wait(ctx, m, now.Add(state.JobPause))
	case t.Jobs:
		o := h.told(ctx, t, h.guarded(func() TicketOutcome { return h.deliver(ctx, t) }))
		return h.after(ctx, m, t, o, state.TicketBackOff(now.Sub(t.Due), int(m.number("ApproximateReceiveCount"))))
	}
	return h.operation(ctx, m, t)
}

// Handler.operation reads a ticket's record, and tries the operation if the operation
// is due.
func (h *Handler) operation(ctx context.Context, m *received, t jobs.Ticket) (waits bool) {
	rec, err := h.records.Load(ctx, t.PK)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return h.after(ctx, m, t, h.told(ctx, t, TicketOutcome{Kind: TicketUnreadable, Error: redact.Error(err)}), 0)
	case err != nil && (rec == nil || !errors.Is(err, store.ErrSealed)): // ErrSealed is no failure: the completer doesn't need the sealed contents
		return h.after(ctx, m, t, h.told(ctx, t, failed("read: "+redact.Error(err))), h.opt.Grace)
	}
	now := h.opt.Now()
	if rec == nil || rec.ID != t.Operation || !state.Completable(rec) || state.Overheld(rec, now) {
		h.opt.Logger.InfoContext(ctx, "ticket is over", "record", t.Record(), "outcome", TicketMoved)
		return false
	}
	made, due := t.Due, state.Due(rec, rec.Run, h.opt.Grace)
	t = state.TicketFor(rec).From(due)
	if due.After(now) {
		return h.wait(ctx, m, due)
	}
	left := now.Sub(due) > state.LeftToSweep
	until, may := h.breakers.enter(rec, due, now)
	switch {
	case !may && left && h.overdue.spare(m, t.Operation, made, now):
		return h.leave(ctx, t, "its function gives no answer")
	case !may:
		return h.wait(ctx, m, until)
	}
	o := h.guarded(func() TicketOutcome { return h.resumer.Resume(ctx, t) })
	h.breakers.leave(rec, h.opt.Now(), o)
	h.told(ctx, t, o)
	tries := rec.Tries
	switch {
	case !o.Unanswered:
		tries++
	case left && h.overdue.spare(m, t.Operation, made, now):
		return h.leave(ctx, t, o.Error)
	}
	return h.after(ctx, m, t, o, state.BackOff(h.opt.Grace, tries)) // tries is a guess: only the record says whether the function has counted this try
}

// Handler.leave ends a ticket that a sweep has made. The ticket isn't needed, because
// an older ticket of the operation still waits.
func (h *Handler) leave(ctx context.Context, t jobs.Ticket, why string) (waits bool) {
	h.opt.Logger.WarnContext(ctx, "ticket ended: another one of its operation waits", "record", t.Record(), "function", t.Function, "error", why)
	return false
}

func (h *Handler) told(ctx context.Context, t jobs.Ticket, o TicketOutcome) TicketOutcome {
	if h.opt.Resumed != nil {
		h.opt.Resumed(ctx, t, o)
	}
	return o
}

// Handler.after acts on a ticket's outcome. The parameter pause is the back-off after a
// failed try.
func (h *Handler) after(ctx context.Context, m *received, t jobs.Ticket, o TicketOutcome, pause time.Duration) (waits bool) {
	log := h.opt.Logger.With("record", t.Record(), "outcome", o.Kind)
	switch o.Kind {
	case TicketInFlight, TicketMoved: // the next read of the record shows whether the operation has ended
		return h.wait(ctx, m, h.opt.Now().Add(o.RetryAfter+h.opt.Grace))
	case TicketNotMine:
		log.ErrorContext(ctx, "no handler for an abandoned operation: it waits for people", "function", t.Function, "error", o.Error)
		return h.ended(ctx, m, t, errors.New("no handler: "+o.Error))
	case TicketUnreadable:
		return h.ended(ctx, m, t, fmt.Errorf("%w: %s", store.ErrCorrupt, o.Error))
	case TicketFailed:
		log.WarnContext(ctx, "not completed", "error", o.Error)
		return h.wait(ctx, m, h.opt.Now().Add(pause))
	case TicketStuck:
		log.ErrorContext(ctx, "operation is stuck and waits for an operator", "error", o.Error)
	default:
		log.InfoContext(ctx, "ticket is over")
	}
	return false
}

// Handler.ended lists a ticket's operation as waiting for people, and ends the ticket.
// If the listing fails, the message stays in the queue.
func (h *Handler) ended(ctx context.Context, m *received, t jobs.Ticket, why error) (waits bool) {
	h.opt.Logger.ErrorContext(ctx, "ticket ended: people are asked", "record", t.Record(), "message", m.MessageId, "error", why)
	if h.opt.Listed == nil {
		return false
	}
	if err := h.opt.Listed(ctx, t, why); err != nil {
		h.opt.Logger.ErrorContext(ctx, "not listed: the ticket waits on", "record", t.Record(), "error", err)
		h.hide(ctx, m, h.opt.Now().Add(h.opt.Grace)) // also in a crowd: no sweep makes an unreadable message anew
		return true
	}
	return false
}

// Handler.wait keeps a message until due, and longer if the message was received often.
// If too many messages wait, the message is deleted instead, and the sweep makes its
// ticket anew.
func (h *Handler) wait(ctx context.Context, m *received, due time.Time) (waits bool) {
	if h.queue.crowded(ctx) {
		h.opt.Logger.WarnContext(ctx, "too many tickets wait: the sweep makes this one anew", "message", m.MessageId)
		return false
	}
	if rested := h.opt.Now().Add(m.rest()); rested.After(due) {
		due = rested
	}
	h.hide(ctx, m, due)
	return true
}

// Handler.hide makes a message invisible until due. If the call fails, the queue's own
// visibility timeout applies.
func (h *Handler) hide(ctx context.Context, m *received, due time.Time) {
	now := h.opt.Now()
	if err := h.queue.hide(ctx, m.ReceiptHandle, min(due.Sub(now), maxHidden-now.Sub(m.at))); err != nil {
		h.opt.Logger.WarnContext(ctx, "ticket waits for the visibility timeout of its queue", "message", m.MessageId, "error", err)
	}
}

// Handler.guarded calls the function try. If the function panics, only this ticket fails.
func (h *Handler) guarded(try func() TicketOutcome) (o TicketOutcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed(redact.Panic(v))
		}
	}()
	return try()
}

func (h *Handler) deliver(ctx context.Context, t jobs.Ticket) TicketOutcome {
	if h.opt.Jobs == nil {
		return TicketOutcome{Kind: TicketNotMine, Error: "it is for a drain"}
	}
	if err := h.opt.Jobs(ctx, t); err != nil {
		return failed(err.Error())
	}
	return TicketOutcome{Kind: TicketDone}
}
