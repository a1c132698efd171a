package idem

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// ResumeOptions are options of [Engine.Resume].
type ResumeOptions struct {
	// Handlers are the present and former names of the handlers that fn stands for;
	// an empty Function means [Options.Function]. Default: the handler without a
	// name of that function.
	Handlers []store.HandlerID
	// Tenant is the tenant of this process, if its platform isolates tenants.
	Tenant string
}

// Resume takes over an abandoned operation and finishes the operation with the
// request stored in its record ([Options.Resumable]). Resume is for completers; a
// client's retry doesn't need Resume. fn gets the stored request. Its Handler
// tells which of [ResumeOptions.Handlers] the request is for, and fn may set its
// Answer. Resume treats the results of fn as [Engine.Do] does.
//
// A nil error means that the operation now has its answer. These errors mean that
// nothing has changed: [jobs.ErrMoved] (nothing is left to do), [ErrInFlight]
// (the lease has not ended, see RetryAfter), [jobs.ErrNotMine] (the operation
// belongs to another handler or tenant) and [ErrNotKept] (the stored request is
// missing or unreadable). After ErrNotKept the client, who has the request, may
// come back within the retention of the last attempt; only then is the operation stuck.
// [ErrStuck] means that [Options.MaxTries] take-ups have failed and the operation
// waits for an operator. Any other error is a failed try: the record is released,
// and a later ticket may succeed. The handler's own error is included as text.
func (e *Engine) Resume(ctx context.Context, t jobs.Ticket, fn func(context.Context, *Request) (Response, error), optFns ...func(*ResumeOptions)) (Result, error) {
	began := time.Now()
	a, err := e.core.unattended(ctx, t.PK)
	if err != nil {
		return Result{}, err
	}
	return a.watch.watched(ctx, func(ctx context.Context) (Result, error) {
		opt := resumeOptions(optFns, e.core.opt.Function)
		rec, missing, err := a.takeUp(ctx, t, opt.Handlers, opt.Tenant)
		if err != nil {
			return Result{}, err
		}
		return a.watch.resume(ctx, rec, began, func(ctx context.Context) (Result, error) { return a.goOn(ctx, rec, missing, fn) })
	})
}

func resumeOptions(optFns []func(*ResumeOptions), function string) ResumeOptions {
	var opt ResumeOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if len(opt.Handlers) == 0 {
		opt.Handlers = make([]store.HandlerID, 1)
	}
	opt.Handlers = slices.Clone(opt.Handlers)
	for i := range opt.Handlers {
		opt.Handlers[i].Function = cmp.Or(opt.Handlers[i].Function, function)
	}
	return opt
}
