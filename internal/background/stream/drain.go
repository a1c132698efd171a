package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// Drain delivers staged jobs as their commits appear in the table's stream, and
// acknowledges delivered jobs: one update for each operation, however many jobs it
// has. A Drain is safe for concurrent use, and may run twice, late or never: a job
// stays in its record until it is acknowledged.
//
// Delivery is at least once, in the order of the stream, under stable ids. A job
// whose delivery fails holds up its batch: the report names the first failed record
// ([Drain.Handle]), and the source delivers all records from there again. After
// [DrainOptions.MaxTries] failures of its own a job is parked, and later jobs go on.
// Failures of the whole sink ([jobs.ErrSinkDown]) park nothing. With
// [DrainOptions.Delayed] a failed job holds up only the later jobs of its operation.
//
// The function's event source mapping needs the stream with both images, from
// TRIM_HORIZON, ReportBatchItemFailures, and at least as many retries as
// MaxTries.
type Drain struct {
	reader
	jobs jobWriter
	sink jobs.Sink
	opt  DrainOptions
	sent recent
}

// DrainOptions are a drain's settings; the zero value is the default.
type DrainOptions struct {
	// MaxTries is how many failed deliveries park a job. Default: 5.
	MaxTries int
	// Concurrency is how many records are acknowledged at once. Default: 8.
	Concurrency int
	// Delayed takes a ticket for each operation with a job that could not be
	// delivered, and the batch goes on: [Drain.Retry] delivers from the record when
	// the ticket is due. The sweep handles an operation whose ticket can't be
	// queued. nil: the batch comes again from the failed record on.
	//
	// A job with a time ([store.Job].At) gets a ticket for that time, and so a sweep delivers
	// it if Delayed is nil.
	//
	// The jobs of an operation keep their order. If a Group has jobs of several
	// operations, a failed job doesn't hold up those of other operations.
	Delayed TicketQueue
	// Logger gets warnings and errors, never a job's Args. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called as the drain works, for metrics.
	Hooks Hooks
	// Tracer makes a span of each delivery, in the trace of the phase that staged the
	// job. Default: none.
	Tracer trace.Tracer
}

// NewDrain returns a drain of store's table into sink. It panics if store or sink is
// nil or a number is negative: mistakes in the program, which show at cold start.
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
	d := &Drain{jobs: jobWriter{store.Table()}, sink: sink, opt: opt}
	d.unreadable = d.jobs.list
	d.log, d.hooks = cmp.Or(opt.Logger, slog.Default()), &d.opt.Hooks
	return d
}

// Handle works on a batch of the stream. The report names the first record that
// has to come again; the error is always nil.
func (d *Drain) Handle(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return d.handle(ctx, batchOf(ev))
}

func (d *Drain) handle(ctx context.Context, b batch) (events.DynamoDBEventResponse, error) {
	return d.inParts(ctx, b, func(changes []change) int { return d.work(ctx, changes) })
}

// Invoke is Handle for the runtime: payload and result are JSON. An event of
// another source is an error.
func (d *Drain) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return invokeStream(ctx, payload, d.handle)
}

// work works on the changes of a batch. It returns the first stream record that has
// to come again.
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

// oldImage is from which age on an image is no evidence that its jobs still wait: a
// mapping that is made anew, or was off, shows a day of them.
const oldImage = 5 * time.Minute

// recheck reads the records of old images, by one read for each, and keeps the jobs that are
// undelivered there. If a record is gone, a later stream record has its undelivered jobs. If
// a record can't be read, its jobs are delivered again rather than never.
func (d *Drain) recheck(ctx context.Context, todos []*todo) {
	d.inParallel(todos, func(t *todo) {
		if t.gone || t.time.IsZero() || time.Since(t.time) < oldImage {
			return
		}
		now, err := d.jobs.table.Glance(ctx, t.image.PK)
		if err != nil {
			d.log.WarnContext(ctx, "can't look for delivered jobs", "record", redact.Record(t.image.PK), "error", err)
			return
		}
		if now == nil || now.ID != t.image.ID {
			now = &store.Record{PK: t.image.PK, ID: t.image.ID}
		}
		t.image, t.letGo = now, state.KeptForNothing(now)
		over := func(j jobRef) bool { return !state.Pending(now, j.name) }
		t.jobs, t.later = slices.DeleteFunc(t.jobs, over), slices.DeleteFunc(t.later, over)
	})
}

// inParallel calls fn for each of todos, for some at once.
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

// none is beyond every batch.
const none = int(^uint(0) >> 1)

// run works on todos. It returns the first stream record that has to come again,
// and how many jobs were delivered.
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
		t.again, t.first = at != none, at
		mu.Lock()
		defer mu.Unlock()
		first, delivered = min(first, at), delivered+n
	})
	return first, delivered
}

// begin notes in its record that the jobs of t whose time has come are being delivered: nobody
// cancels them from then on. Jobs that somebody has cancelled, or another drain has delivered,
// leave t. If the write fails, none of them is delivered, and t comes again.
func (d *Drain) begin(ctx context.Context, t *todo) {
	var names []string
	for _, j := range t.jobs {
		if !t.gone && state.MayCancel(t.image, j.name) {
			names = append(names, j.name)
		}
	}
	now, err := d.jobs.begin(ctx, t.image, names)
	again := d.failed(ctx, t, "begin to deliver", err)
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool {
		if err == nil {
			return !state.Pending(now, j.name)
		}
		begins := slices.Contains(names, j.name)
		if begins && again {
			t.held = append(t.held, j)
		}
		return begins
	})
	if err == nil && now.ID == t.image.ID {
		t.image = now
	}
}

// deliver passes jobs to the sink and returns the error of each, by its name.
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
		if !d.sent.has(j.JobID) {
			fresh = append(fresh, j)
		}
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
	ends := d.traced(ctx, fresh)
	for i, err := range errlist.Pad(d.sink.Deliver(ctx, batch), len(batch)) {
		j := fresh[i]
		ends(i, err)
		if err != nil {
			note(j, err)
			d.undelivered(ctx, j, err)
			continue
		}
		d.sent.add(j.JobID)
		if d.hooks.Delivered != nil {
			d.hooks.Delivered(ctx, j.Delivery)
		}
	}
	return outcomes
}

// traced begins the span of each delivery, and returns the function that ends it. The
// sink gets the batch's own context, since it delivers many jobs in one call.
func (d *Drain) traced(ctx context.Context, all []delivery) (ends func(i int, err error)) {
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

// withReserve ends a tenth of the time early, at least a second: a delivery that
// isn't acknowledged in time is delivered again.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-max(time.Until(deadline)/10, time.Second)))
}

// conclude writes the results of an operation. It returns the first record that has
// to come again, and how many jobs were delivered.
func (d *Drain) conclude(ctx context.Context, t *todo, outcomes map[string]error) (first, delivered int) {
	first = t.heldFrom()
	again := func(at int) { first = min(first, at) }
	var names []string
	failures := make(map[string]error)
	for _, j := range t.jobs {
		switch err := outcomes[j.name]; {
		case err == nil:
			names = append(names, j.name)
		case t.gone, errors.Is(err, jobs.ErrSinkDown), errors.Is(err, jobs.ErrHeldBack):
			again(j.at) // a deleted record can't count the failure; the other failures don't count
			if isDown(err) {
				if t.down == nil {
					t.down = make(map[string]error)
				}
				t.down[t.image.Jobs[j.name].Kind] = err
			}
		default:
			failures[j.name] = err
		}
	}
	if t.gone {
		for _, j := range t.lost {
			d.lost(ctx, jobEntry(state.ReasonJobLost, t.image, j.name))
		}
		return first, len(names)
	}
	if err := d.jobs.acknowledge(ctx, t.image, names...); d.failed(ctx, t, "acknowledge", err) {
		for _, j := range t.jobs {
			again(j.at)
		}
		return first, len(names)
	}
	if t.letGo {
		if err := d.jobs.letGo(ctx, t.image); d.failed(ctx, t, "let go", err) {
			again(t.at)
		}
	}
	now, err := d.jobs.fail(ctx, t.image, failures, d.opt.MaxTries)
	bad := d.failed(ctx, t, "count failures", err)
	for _, j := range t.jobs {
		switch {
		case failures[j.name] == nil:
		case bad, state.Pending(now, j.name):
			again(j.at)
		case err == nil && now.Jobs[j.name].Failed != "":
			d.parked(ctx, jobEntry(state.ReasonParked, now, j.name))
		}
	}
	return first, len(names)
}

// isDown reports whether a sink that was asked takes no job: it was not merely out of time, or
// left out.
func isDown(err error) bool {
	return errors.Is(err, jobs.ErrSinkDown) && !errors.Is(err, jobs.ErrHeldBack) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// failed reports whether a write has to be tried again. Another try can't help a
// record that has become unreadable; the sweep lists it.
func (d *Drain) failed(ctx context.Context, t *todo, what string, err error) bool {
	if err == nil {
		return false
	}
	name := redact.Record(t.image.PK)
	d.log.ErrorContext(ctx, "can't "+what, "record", name, "error", err)
	if !errors.Is(err, store.ErrCorrupt) {
		return true
	}
	if d.hooks.Skipped != nil {
		d.hooks.Skipped(ctx, Skipped{Reason: SkipUnreadable, Record: name, Err: err})
	}
	return false
}

func (d *Drain) lost(ctx context.Context, e Entry) {
	d.log.ErrorContext(ctx, "a job that waited for people or for its time is gone with its record", "record", e.Record, "operation", e.ID, "job", e.Job,
		"kind", e.Kind, "tries", e.Tries, "error", e.LastErr)
	if d.hooks.JobLost != nil {
		d.hooks.JobLost(ctx, e)
	}
}

func (d *Drain) parked(ctx context.Context, e Entry) {
	d.log.ErrorContext(ctx, "job parked: an operator has to redrive it", "record", e.Record, "operation", e.ID, "job", e.Job,
		"kind", e.Kind, "tries", e.Tries, "error", e.LastErr)
	if d.hooks.Parked != nil {
		d.hooks.Parked(ctx, e)
	}
}
