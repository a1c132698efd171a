package idem

import (
	"context"

	"github.com/samekey/samekey/idem/store"
)

// run is one run of a handler by the attempt that holds the record. It keeps what changes
// while the handler runs, such as the record. Three files carry out a run: phaserun.go runs
// phases, commit.go commits them, and end.go ends the run.
type run struct {
	ask    *ask
	times  *times
	watch  *watch
	writer writer

	progress progress
	gate     gate
	lease    lease
	calls    calls

	written *store.Overflow // the companions that an earlier try to store the answer has written

	within opContext // the handler's context, allocated together with the run
}

// run.record returns the record as this attempt last wrote or read it.
func (r *run) record() *store.Record { return r.progress.record() }

// handleAndEnd runs the handler once, and then ends the operation, or releases the
// record. takenOver says that another attempt began the operation.
func (r *run) handleAndEnd(ctx context.Context, takenOver bool, fn func(context.Context) (Response, error)) (Result, error) {
	begins := evClaimed
	if takenOver {
		begins = evTakenOver
	}
	r.watch.tell(ctx, begins, r.record(), nil)
	return r.end(ctx, r.handle(ctx, takenOver, fn))
}

// run.handle calls fn, and releases the lease if fn doesn't return. A panic of fn (or
// runtime.Goexit) goes on after that: handle doesn't recover it.
func (r *run) handle(ctx context.Context, takenOver bool, fn func(context.Context) (Response, error)) (o outcome) {
	outer, _ := FromContext(ctx)
	r.within = opContext{ctx, Op{run: r, takenOver: takenOver, outer: outer}}
	defer r.within.op.over.Store(true)
	ctx = &r.within //nolint:contextcheck // it inherits from ctx
	hctx := ctx
	if !r.times.observing() { // in ModeObserve, the engine never ends the handler's context
		lctx, lost := context.WithCancelCause(ctx)
		defer lost(nil)
		var cancel context.CancelFunc
		hctx, cancel = context.WithDeadline(lctx, r.times.handlerEnd)
		defer cancel()
		r.keepLease(ctx, lost)
	}
	back := false
	defer func() {
		r.lease.unkeep()
		o.end, o.outlived, o.failed = r.gate.close()
		if !back && o.end == nil {
			_, _, _ = r.release(ctx, r.releasing(), errPanic) // release logs its own failure
		}
	}()
	o.resp, o.err = fn(hctx)
	back = true
	return o
}
