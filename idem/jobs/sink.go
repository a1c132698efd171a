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

	"github.com/samekey/samekey/internal/errlist"
	"github.com/samekey/samekey/internal/redact"
)

// Delivery is a staged job on its way to a [Sink].
type Delivery struct {
	// JobID names the job: the same on every delivery, and different from all
	// others. Whoever does the job does each id once.
	JobID string
	// Operation is the id of the operation that staged the job.
	Operation string
	Kind      string
	Args      json.RawMessage
	// Group is that of the job, or else Operation: jobs of one group are handed
	// on in the order in which they were committed, where the sink can.
	Group string
	// Tries is how often a delivery had failed when the job was read.
	Tries int
	// Tenant is the one that the operation was invoked for, where its function keeps
	// tenants apart.
	Tenant string
}

// Sink hands jobs on: to a queue, to a topic, to a function.
//
// It gets a job at least once: again whenever it can't be known that the last
// delivery succeeded, under the same JobID. It is safe for concurrent use.
type Sink interface {
	// Deliver hands on a batch, in its order where that matters, and says what
	// became of each delivery: nil for a batch that was delivered, else one
	// error for each, nil for those that were. What has an error stays staged.
	// Deliveries beyond the end of a list that is too short have failed too.
	//
	// An error counts against its job, which is parked after too many of them,
	// unless it matches ErrSinkDown or ErrHeldBack. Deliver returns when ctx
	// ends.
	Deliver(ctx context.Context, batch []Delivery) []error
}

var (
	// ErrSinkDown matches errors from a [Sink] that can't be reached, or refuses
	// everything: they don't count against a job.
	ErrSinkDown = errors.New("sink is unavailable")
	// ErrHeldBack matches errors from deliveries that were held back, since an
	// earlier one of their group failed, the sink was down for an earlier one, or
	// time was up: they don't count either.
	ErrHeldBack = errors.New("not tried")
)

// SinkFunc is a function that hands on one job, as a [Sink]. It is called for
// one after the other. Once it fails, the rest of the job's group is held back
// ([ErrHeldBack]) and other groups go on; once its error matches [ErrSinkDown], the
// whole rest is. A panic is a failure of its job.
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
			err = fmt.Errorf("panic with a %T", v) // its text may hold what was in the job
		}
	}()
	return f(ctx, d)
}

// Route is a [Sink] that hands jobs on by their Kind. A kind without a sink is a
// failure of its job: it is parked, and can be handed out again once there is a
// sink for it. Kinds with the same sink are handed to it together, so that the
// order of a group holds within each sink. (A [SinkFunc] is another one for each
// kind: functions can't be compared.) The sinks work side by side, so that a slow
// one doesn't hold up the others. A sink that panics counts as unavailable
// ([ErrSinkDown]).
type Route map[string]Sink

// Deliver implements [Sink].
func (r Route) Deliver(ctx context.Context, batch []Delivery) []error {
	errs := make([]error, len(batch))
	at := make(map[end][]int)
	for i, d := range batch {
		if r[d.Kind] == nil {
			errs[i] = fmt.Errorf("no sink for jobs of kind %q", d.Kind)
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

// Together reports whether jobs of two kinds go to the same sink, in their order.
func (r Route) Together(a, b string) bool { return r.end(a) == r.end(b) }

// end is where jobs of a kind go.
type end struct {
	sink Sink
	kind string // of a sink that can't be compared
}

func (r Route) end(kind string) end {
	if sink := r[kind]; sink != nil && reflect.ValueOf(sink).Comparable() {
		return end{sink: sink}
	}
	return end{kind: kind}
}

// guarded hands a batch to a sink. A panic would end the process, and with it what
// the other sinks are at.
func guarded(ctx context.Context, sink Sink, batch []Delivery) (errs []error) {
	defer func() {
		if v := recover(); v != nil {
			errs = slices.Repeat([]error{fmt.Errorf("%w: %s", ErrSinkDown, redact.Panic(v))}, len(batch))
		}
	}()
	return sink.Deliver(ctx, batch)
}

// JobID names a job for whoever it is handed to: the same on every delivery,
// and different from all others. name is its key in [store.Record].Jobs.
func JobID(operation, name string) string { return operation + "." + name }
