package stream

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// Drain.work calls netted, putOff, recheck, holdBack, run and delay, in this order. run calls begin,
// deliver (which calls open) and conclude.

// Drain delivers staged jobs as their commits appear in the table's stream. It
// acknowledges all delivered jobs of an operation with one update. A Drain is safe for
// concurrent use. It may handle a batch twice or late. It may also miss a batch, since
// an unacknowledged job stays in its record, where a sweep finds it.
//
// Jobs are delivered in the order of the stream. Each job is delivered at least once,
// under the same id each time. A job whose delivery fails holds up its batch: the
// report names the first failed record ([Drain.Handle]), and Lambda delivers the batch
// again from that record on. After [DrainOptions.MaxTries] failures, the job is parked,
// so that the jobs after it are delivered. Failures of the whole sink
// ([jobs.ErrSinkDown]) don't count. If [DrainOptions.Delayed] is set, a failed job
// doesn't hold up its batch.
//
// The stream must have old and new images. The function's event source mapping must start at
// TRIM_HORIZON and have ReportBatchItemFailures and at least MaxTries retries.
type Drain struct {
	reader
	writer jobWriter
	sink   jobs.Sink
	opt    DrainOptions
	recent recent
}

// DrainOptions are a drain's settings; the zero value is the default.
type DrainOptions struct {
	// MaxTries is how many failed deliveries park a job. Default: 5.
	MaxTries int
	// Concurrency is how many records the drain reads or writes at once. Default: 8.
	Concurrency int
	// Delayed gets a ticket for each operation with a job that could not be delivered.
	// The drain then goes on with the rest of the batch. When the ticket is due,
	// [Drain.Retry] delivers the jobs in the record. If the ticket can't be queued, the
	// sweep delivers these jobs. If Delayed is nil or the record was deleted, the batch
	// is retried from the failed stream record on.
	//
	// Delayed also gets a ticket for each job with a time ([store.Job].At), due at that
	// time. If Delayed is nil, a sweep delivers jobs with a time.
	//
	// If Delayed is set, a failed job holds up the following jobs of its operation that
	// have the same Group and the same sink. Jobs of other operations with the same
	// Group are delivered, unless the sink holds them back in the same batch.
	Delayed TicketQueue
	// Logger gets warnings and errors, never a job's Args. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called as the drain works, for metrics.
	Hooks Hooks
	// Tracer makes a span for each delivery, in the trace of the phase that staged the job.
	// Default: none.
	Tracer trace.Tracer
}

// NewDrain returns a drain that delivers the jobs in store's table to sink. It panics if store or
// sink is nil, or if an option is negative.
func NewDrain(store *dynamo.Store, sink jobs.Sink, optFns ...func(*DrainOptions)) *Drain {
	var opt DrainOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if store == nil || sink == nil || opt.MaxTries < 0 || opt.Concurrency < 0 {
		panic("stream: NewDrain: store and sink must not be nil, numbers not negative") //nolint:forbidigo // a mistake in the program
	}
	opt.MaxTries = cmp.Or(opt.MaxTries, state.MaxRefusals)
	opt.Concurrency = cmp.Or(opt.Concurrency, 8)
	d := &Drain{writer: jobWriter{store.Table()}, sink: sink, opt: opt}
	d.unreadable = d.writer.list
	d.log, d.hooks = cmp.Or(opt.Logger, slog.Default()), &d.opt.Hooks
	return d
}

// Handle processes a batch of the stream. The report names the first stream record that must be
// retried. The error is always nil.
func (d *Drain) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return d.handle(ctx, batchOf(ev))
}

func (d *Drain) handle(ctx context.Context, b batch) (events.DynamoDBEventResponse, error) {
	return d.inParts(ctx, b, func(changes []change) int { return d.work(ctx, changes) })
}

// Invoke is Handle for the Lambda runtime, with payload and result as JSON. It returns an error if
// the event is not from DynamoDB.
func (d *Drain) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, d.handle)
}

// Drain.work processes the changes of a batch. It returns the index of the first stream
// record that must be retried.
func (d *Drain) work(ctx context.Context, changes []change) (first int) {
	todos := netted(changes)
	for _, t := range todos {
		t.putOff(time.Now())
	}
	d.recheck(ctx, todos)
	if d.opt.Delayed == nil {
		first, _ = d.run(ctx, todos)
		return first
	}
	for _, t := range todos {
		d.holdBack(ctx, t)
	}
	d.run(ctx, todos)
	return d.delay(ctx, todos)
}

// inParallel calls fn for each todo, at most [DrainOptions.Concurrency] at once.
func (d *Drain) inParallel(todos []*todo, fn func(*todo)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, d.opt.Concurrency)
	for _, t := range todos {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fn(t)
		})
	}
	wg.Wait()
}

// The index none means that no record must be retried. It is greater than every index in a batch.
const none = int(^uint(0) >> 1)

// Drain.run delivers the jobs of todos and acknowledges them. It returns the index of
// the first stream record that must be retried, and how many jobs were delivered.
func (d *Drain) run(ctx context.Context, todos []*todo) (first, delivered int) {
	for _, t := range todos {
		t.ready(time.Now())
	}
	d.inParallel(todos, func(t *todo) { d.begin(ctx, t) })
	outcomes := d.deliver(ctx, deliveries(todos))
	first = none
	var mu sync.Mutex
	d.inParallel(todos, func(t *todo) {
		at, n := d.conclude(ctx, t, outcomes[t])
		t.retry, t.retryFrom = at != none, at
		mu.Lock()
		defer mu.Unlock()
		first, delivered = min(first, at), delivered+n
	})
	return first, delivered
}
