package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/trace"
)

// Delivery is a staged job on its way to a [Sink].
type Delivery struct {
	// JobID names the job: all deliveries of the job have this id, and no other job has it.
	// A consumer must do the work of each JobID only once.
	JobID string
	// Operation is the id of the operation that staged the job.
	Operation string
	Kind      string
	Args      json.RawMessage
	// Group is the job's group. If the job has no group, Group has the value of Operation.
	// If the sink keeps an order, an operation's jobs of one group are delivered in the
	// order of their commits, except jobs with a time (At) and parked jobs. The jobs of
	// two operations have no certain order, even in one group.
	Group string
	// Tries is the number of the job's failed deliveries when the record was read,
	// without failures that aren't counted ([ErrSinkDown], [ErrHeldBack]).
	Tries int
	// Tenant is the tenant for whom the operation was invoked. It is empty if the
	// function doesn't isolate tenants.
	Tenant string
	// Trace is the trace context of the phase that staged the job. It is the same in every
	// delivery of the job, and zero if the phase was not traced. A sink passes Trace on, so
	// that the consumer continues the trace.
	Trace trace.Context
}

// Sink delivers jobs to a queue, a topic or a function.
//
// A Sink gets each job at least once: if a delivery may have failed, the job is delivered
// again under the same JobID. A Sink must be safe for concurrent use.
type Sink interface {
	// Deliver delivers the jobs of a batch. A sink that keeps an order delivers the
	// jobs in the batch's order. If all deliveries succeeded, Deliver returns nil.
	// Otherwise Deliver returns a list with one element for each delivery: the
	// delivery's error, or nil for a success. If the list is shorter than the batch,
	// the deliveries without an element have failed. A job stays staged until a
	// delivery succeeds.
	//
	// A job is parked after too many errors. Errors that match ErrSinkDown or
	// ErrHeldBack are not counted. Deliver must return when ctx ends.
	Deliver(ctx context.Context, batch []Delivery) []error
}

var (
	// ErrSinkDown matches errors from a [Sink] that is unreachable or refuses everything.
	// Such an error isn't counted as a failure of the job.
	ErrSinkDown = errors.New("sink is unavailable")
	// ErrHeldBack matches errors from deliveries that were not tried. Either an earlier
	// delivery of the same group failed, or the sink was unavailable to an earlier
	// delivery, or the context ended. Such an error isn't counted as a failure of the
	// job.
	ErrHeldBack = errors.New("not tried")
)

// SinkFunc is a [Sink] made of a function that delivers one job. The jobs of a batch are
// delivered one after the other. After an error, the remaining jobs of the same group are
// held back ([ErrHeldBack]), and other groups continue. After an error that matches
// [ErrSinkDown], all remaining jobs are held back. A panic counts as an error of the job.
type SinkFunc func(ctx context.Context, d Delivery) error

// Deliver implements [Sink].
func (f SinkFunc) Deliver(ctx context.Context, batch []Delivery) []error {
	errs := make([]error, len(batch))
	held := make(map[string]bool)
	down := false
	for i, d := range batch {
		switch {
		case ctx.Err() != nil:
			errs[i] = fmt.Errorf("%w: %w", ErrHeldBack, context.Cause(ctx))
		case down:
			errs[i] = fmt.Errorf("%w: the sink is unavailable to an earlier one", ErrHeldBack)
		case held[d.Group]:
			errs[i] = fmt.Errorf("%w: an earlier job of its group failed", ErrHeldBack)
		default:
			errs[i] = f.try(ctx, d)
			held[d.Group] = errs[i] != nil
			down = errors.Is(errs[i], ErrSinkDown)
		}
	}
	return errs
}

func (f SinkFunc) try(ctx context.Context, d Delivery) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("panic: %w", v)
		default:
			err = fmt.Errorf("panic with a %T", v) // only the type, since the panic's text may contain the job's data
		}
	}()
	return f(ctx, d)
}

// Route is a [Sink] that hands each job to the sink of the job's Kind. If no sink is set
// for a kind, jobs of this kind fail with [ErrSinkDown], and wait until a sink is set. If
// several kinds have the same sink, the sink gets the jobs of these kinds in one batch. So
// a group's jobs for one sink keep their order, whatever their kinds. (Functions can't be
// compared, so a [SinkFunc] counts as a separate sink for each kind.) The sinks work
// concurrently, so that a slow sink doesn't delay the others. A sink that panics counts as
// unavailable.
type Route map[string]Sink

// Deliver implements [Sink].
func (r Route) Deliver(ctx context.Context, batch []Delivery) []error {
	errs := make([]error, len(batch))
	at := make(map[end][]int)
	for i, d := range batch {
		if r[d.Kind] == nil {
			errs[i] = fmt.Errorf("%w: there is none for jobs of kind %q (the worker's Sinks)", ErrSinkDown, d.Kind)
			continue
		}
		e := r.end(d.Kind)
		at[e] = append(at[e], i)
	}
	var wg sync.WaitGroup
	for _, places := range at {
		part := make([]Delivery, len(places))
		for n, i := range places {
			part[n] = batch[i]
		}
		wg.Go(func() {
			for n, err := range errlist.Pad(guarded(ctx, r[part[0].Kind], part), len(part)) {
				errs[places[n]] = err
			}
		})
	}
	wg.Wait()
	return errs
}

// Together reports whether the jobs of two kinds go to the same sink, and so keep a common
// order.
func (r Route) Together(a, b string) bool { return r.end(a) == r.end(b) }

// An end identifies the sink to which the jobs of a kind go.
type end struct {
	sink Sink
	kind string // set instead of sink if the sink can't be compared or is nil
}

func (r Route) end(kind string) end {
	if sink := r[kind]; sink != nil && reflect.ValueOf(sink).Comparable() {
		return end{sink: sink}
	}
	return end{kind: kind}
}

// guarded delivers a batch to a sink, and turns a panic into errors. An unrecovered panic
// would end the process and with it the deliveries of the other sinks.
func guarded(ctx context.Context, sink Sink, batch []Delivery) (errs []error) {
	defer func() {
		if v := recover(); v != nil {
			errs = slices.Repeat([]error{fmt.Errorf("%w: %s", ErrSinkDown, redact.Panic(v))}, len(batch))
		}
	}()
	return sink.Deliver(ctx, batch)
}
