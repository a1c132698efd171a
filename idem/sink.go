package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
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
	// unless it matches ErrSinkDown or ErrNotTried. Deliver returns when ctx
	// ends.
	Deliver(ctx context.Context, batch []Delivery) []error
}

var (
	// ErrSinkDown matches errors from a [Sink] that can't be reached, or refuses
	// everything: they don't count against a job.
	ErrSinkDown = errors.New("sink is unavailable")
	// ErrNotTried matches errors from deliveries that were held back, since an
	// earlier one of their group failed or time was up: they don't count either.
	ErrNotTried = errors.New("not tried")
)

// SinkFunc is a function that hands on one job, as a [Sink]. It is called for
// one after the other. Once it fails, the rest of the job's group is held back
// ([ErrNotTried]) and other groups go on. A panic is a failure of its job.
type SinkFunc func(ctx context.Context, d Delivery) error

// Deliver implements [Sink].
func (f SinkFunc) Deliver(ctx context.Context, batch []Delivery) []error {
	errs := make([]error, len(batch))
	held := make(map[string]bool)
	for i, d := range batch {
		switch {
		case ctx.Err() != nil:
			errs[i] = fmt.Errorf("%w: %w", ErrNotTried, context.Cause(ctx))
		case held[d.Group]:
			errs[i] = fmt.Errorf("%w: an earlier job of its group failed", ErrNotTried)
		default:
			if errs[i] = f.try(ctx, d); errs[i] != nil {
				held[d.Group] = true
			}
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
// sink for it. The order of a group holds within each kind.
type Route map[string]Sink

// Deliver implements [Sink].
func (r Route) Deliver(ctx context.Context, batch []Delivery) []error {
	errs := make([]error, len(batch))
	at := make(map[string][]int)
	var kinds []string // in order of appearance
	for i, d := range batch {
		if r[d.Kind] == nil {
			errs[i] = fmt.Errorf("no sink for jobs of kind %q", d.Kind)
			continue
		}
		if at[d.Kind] == nil {
			kinds = append(kinds, d.Kind)
		}
		at[d.Kind] = append(at[d.Kind], i)
	}
	for _, kind := range kinds {
		part := make([]Delivery, len(at[kind]))
		for n, i := range at[kind] {
			part[n] = batch[i]
		}
		for n, err := range Delivered(r[kind].Deliver(ctx, part), len(part)) {
			errs[at[kind][n]] = err
		}
	}
	return errs
}

// Delivered completes what [Sink.Deliver] or [TicketQueue.Put] returned for n
// deliveries to a list of n.
func Delivered(errs []error, n int) []error {
	if len(errs) == n {
		return errs
	}
	all := make([]error, n)
	if errs == nil {
		return all
	}
	for i := copy(all, errs); i < n; i++ {
		all[i] = errors.New("the sink did not say what became of it")
	}
	return all
}

// RecordName is the short name of a record in logs, [Event] and [Error].
func RecordName(pk string) string { return short(pk) }
