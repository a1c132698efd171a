package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// Worker is a background function. It is safe for concurrent use.
type Worker struct {
	feed    stream.Both
	handler *completer.Handler
	sweep   *stream.Sweep
	waiting *stream.Waiting
	opt     Options
}

// Options are a worker's settings; the zero value is the default.
type Options struct {
	// Sink is where jobs go: a [jobs.Route] with a sink for each kind, or one sink for all kinds.
	// Default: a route without sinks, in which each job waits.
	Sink jobs.Sink
	// Functions take the tickets of abandoned operations. By default, each ticket ends with
	// [completer.TicketNotMine].
	Functions completer.Resumer

	// Grace is how long the worker leaves an operation to its client after the lease
	// has ended. It must be at most a day. Default: [state.DefaultGrace].
	Grace time.Duration
	// Namespaces lists the namespaces ([idem.Options.Namespace]) in which the sweep marks
	// operations as stuck. In other namespaces the sweep only lists operations. Set Namespaces if
	// several workers share the table. Default: every namespace.
	Namespaces []string

	// Share is how long each sink, and the queue, may work on a batch of the stream.
	// After three shares, acknowledgements included, the batch ends; only tickets for
	// delayed jobs may still be queued then. Share must be longer than a sink needs for
	// one job, since a job that a ticket retries has a whole share. For each page of
	// the sweep, a sink has a whole share too, and further shares as long as it accepts
	// jobs. Default: 5 seconds.
	Share time.Duration

	// Logger gets warnings and errors, never a job's Args. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called as the worker works, for metrics.
	Hooks stream.Hooks
	// Tracer is passed to the drain: see [stream.DrainOptions.Tracer].
	Tracer trace.Tracer
	// Resumed is called with the outcome of each ticket that was due: see
	// [completer.Options.Resumed].
	Resumed func(context.Context, jobs.Ticket, completer.TicketOutcome)

	// Drain sets options of the drain. It may override options that the worker has set
	// from the fields above. If Drain is nil, nothing changes.
	Drain func(*stream.DrainOptions)
	// Completer sets options of the completer in the same way.
	Completer func(*stream.CompleterOptions)
	// Tickets sets options of the handler of tickets in the same way.
	Tickets func(*completer.Options)
	// Sweep sets options of the sweep in the same way.
	Sweep func(*stream.SweepOptions)
}

const (
	defaultShare = 5 * time.Second
	// shares is how many shares a batch may take. The sinks work concurrently, so
	// together they take one share. The rest is for acknowledgements and tickets.
	shares = 3
	// resumes is how many messages of the queue are worked on at once. This is a whole
	// batch, so that a slow function doesn't hold up the tickets of other functions.
	resumes = 10
)

// API is the part of *dynamodb.Client that a [Worker] uses in addition to its store.
type API interface {
	stream.ScanAPI
	stream.QueryAPI
}

// New returns the worker of the table of store. The worker scans and queries the table
// with api, and puts tickets into queue. New panics if api, store or queue is nil or a
// number is out of range.
func New(api API, store *dynamo.Store, queue *completer.Queue, optFns ...func(*Options)) *Worker {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if min(opt.Share, opt.Grace) < 0 {
		panic("worker: New: a time is negative") //nolint:forbidigo // a mistake in the program
	}
	opt.Share = cmp.Or(opt.Share, defaultShare)
	opt.Grace = cmp.Or(opt.Grace, state.DefaultGrace)
	if opt.Sink == nil {
		opt.Sink = jobs.Route{}
	}
	if opt.Functions == nil {
		opt.Functions = completer.Functions{}
	}
	w := &Worker{opt: opt}
	tickets := &sharedQueue{queue, newShare(opt.Share)}
	drain := stream.NewDrain(store, shareOut(opt.Sink, opt.Share), func(o *stream.DrainOptions) {
		o.Delayed, o.Logger, o.Hooks, o.Tracer = tickets, opt.Logger, opt.Hooks, opt.Tracer
		apply(opt.Drain, o)
	})
	w.feed = stream.Both{Drain: drain, Completer: stream.NewCompleter(tickets, func(o *stream.CompleterOptions) {
		o.LeaveToSweep, o.Grace, o.Logger, o.Hooks = true, opt.Grace, opt.Logger, opt.Hooks
		apply(opt.Completer, o)
	})}
	w.handler = completer.New(store, queue, opt.Functions, func(o *completer.Options) {
		o.Jobs, o.Listed, o.Concurrency, o.Grace, o.Logger, o.Resumed = drain.Retry, listed(store), resumes, opt.Grace, opt.Logger, tried(&opt)
		apply(opt.Tickets, o)
	})
	w.sweep = stream.NewSweep(api, store, func(o *stream.SweepOptions) {
		o.Drain, o.Queue, o.MarkStuck = drain, tickets, markStuck(store, &opt)
		o.Grace, o.Logger, o.Hooks = opt.Grace, opt.Logger, opt.Hooks
		apply(opt.Sweep, o)
	})
	w.waiting = stream.NewWaiting(api, store)
	return w
}

// listed returns the function that lists an operation as waiting for people.
func listed(store *dynamo.Store) func(context.Context, jobs.Ticket, error) error {
	return func(ctx context.Context, t jobs.Ticket, why error) error { return stream.Refer(ctx, store, t, why) }
}

func apply[O any](fn func(*O), o *O) {
	if fn != nil {
		fn(o)
	}
}

// markStuck returns the function that marks an operation as stuck. The function uses an
// engine of the operation's namespace.
func markStuck(store *dynamo.Store, opt *Options) func(context.Context, jobs.Ticket, string) error {
	return func(ctx context.Context, t jobs.Ticket, why string) error {
		namespace := state.Namespace(t.PK)
		if !state.IsNamespace(namespace) {
			return jobs.ErrMoved // no engine has this namespace
		}
		if len(opt.Namespaces) > 0 && !slices.Contains(opt.Namespaces, namespace) {
			return fmt.Errorf("%w: this worker's Namespaces lack %q", jobs.ErrNotMine, namespace)
		}
		e := idem.New(store, func(o *idem.Options) { o.Namespace, o.Logger = namespace, opt.Logger })
		return e.MarkStuck(ctx, t, why)
	}
}

// Invoke implements the runtime's Handler. For an event of the stream or the queue, it
// returns a report of the failed records. For an event of a schedule, it returns the
// sweep's report or the count of what waits for people. An event from another source is
// an error.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	from, err := sourceOf(payload)
	switch from {
	case sourceStream:
		ctx, cancel := context.WithTimeout(ctx, shares*w.opt.Share)
		defer cancel()
		return w.feed.Invoke(ctx, payload)
	case sourceQueue:
		return w.handler.Invoke(atEase(ctx), payload)
	case sourceSchedule:
		return w.runSweep(ctx)
	case sourceCount:
		counted, err := w.count(ctx)
		_, undone := w.sweep.GoOn(atEase(ctx))
		return counted, errors.Join(err, undone)
	default:
		return nil, err
	}
}

func (w *Worker) runSweep(ctx context.Context) ([]byte, error) {
	report, err := w.sweep.Run(atEase(ctx))
	if err != nil {
		return nil, err
	}
	return json.Marshal(report)
}

// If the index is missing, count fails, since an unknown count must not look like the
// count 0.
func (w *Worker) count(ctx context.Context) ([]byte, error) {
	counted, err := w.waiting.Count(ctx)
	if err != nil {
		return nil, err
	}
	if w.opt.Hooks.Counted != nil {
		w.opt.Hooks.Counted(ctx, counted)
	}
	return json.Marshal(counted)
}

// tried returns the function that passes the outcome of a ticket to Resumed and to the hook Tried.
func tried(opt *Options) func(context.Context, jobs.Ticket, completer.TicketOutcome) {
	return func(ctx context.Context, t jobs.Ticket, o completer.TicketOutcome) {
		if opt.Resumed != nil {
			opt.Resumed(ctx, t, o)
		}
		if opt.Hooks.Tried != nil {
			opt.Hooks.Tried(ctx, stream.Try{Ticket: t, Outcome: string(o.Kind), Err: o.Error})
		}
	}
}
