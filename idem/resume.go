package idem

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
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
// come back within [Options.Retention]; only then is the operation stuck.
// [ErrStuck] means that [Options.MaxTries] take-ups have failed and the operation
// waits for an operator. Any other error is a failed try: the record is released,
// and a later ticket may succeed. The handler's own error is included as text.
func (e *Engine) Resume(ctx context.Context, t jobs.Ticket, fn func(context.Context, *Request) (Response, error), optFns ...func(*ResumeOptions)) (Result, error) {
	began := time.Now()
	a, err := e.operator(ctx, t.PK)
	if err != nil {
		return Result{}, err
	}
	return a.watched(ctx, func(ctx context.Context) (Result, error) {
		rec, missing, err := a.takeUp(ctx, t, e.resumeOptions(optFns))
		if err != nil {
			return Result{}, err
		}
		return a.resume(ctx, rec, began, func(ctx context.Context) (Result, error) { return a.goOn(ctx, rec, missing, fn) })
	})
}

// goOn continues the operation of a record that a took over, or gives it up.
func (a *attempt) goOn(ctx context.Context, rec *store.Record, missing error, fn func(context.Context, *Request) (Response, error)) (Result, error) {
	f := &flow{a: a, rec: rec}
	switch {
	case missing != nil:
		return Result{}, f.giveUp(ctx, "the stored request is gone: "+missing.Error())
	case rec.Tries > a.opt.MaxTries:
		err := a.endTries(ctx, f, fmt.Sprintf("not completed in %d tries: %s", a.opt.MaxTries, rec.LastErr))
		if err == nil {
			err = a.fail("resume", fmt.Errorf("%w: the request was let go", jobs.ErrMoved))
		}
		return Result{}, err
	}
	a.req = requestOf(rec.Input)
	a.req.Handler, a.req.Tenant = rec.Handler, rec.Tenant
	res, err := a.begin(ctx, rec, true, func(ctx context.Context) (Response, error) {
		if err := a.completable(a.req, a.whose); err != nil { // an earlier program took the caller from the operation
			return Response{}, err
		}
		return fn(ctx, a.req)
	})
	if h, ok := errors.AsType[*handlerError](err); ok {
		// The handler's error may wrap this package's errors from a nested operation.
		err = fmt.Errorf("idem: resume: the handler failed: %s", redact.Error(h.err))
	}
	if err == nil && res.Expires.IsZero() {
		err = a.fail("resume", errors.New(notStored(res.Status)))
	}
	return res, err
}

// endTries marks an operation that is not completed as stuck. If nothing was done under
// its key, endTries frees the key instead, without an error: there is nothing that people
// could decide, and one client could have any number of such requests.
func (a *attempt) endTries(ctx context.Context, f *flow, why string) error {
	b := state.GiveBack{Refused: true, Why: why}
	if rec := f.record(); !state.Kept(state.Released(rec, a.opt.Now(), b)) {
		a.log.ErrorContext(ctx, "request let go: nothing was done under its key", "record", redact.Record(a.pk), "operation", rec.ID,
			"route", rec.Route, "error", why)
		_, _, err := a.release(ctx, rec, b, errors.New(why))
		return err
	}
	return f.giveUp(ctx, why)
}

func (e *Engine) resumeOptions(optFns []func(*ResumeOptions)) ResumeOptions {
	var opt ResumeOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if len(opt.Handlers) == 0 {
		opt.Handlers = make([]store.HandlerID, 1)
	}
	opt.Handlers = slices.Clone(opt.Handlers)
	for i := range opt.Handlers {
		opt.Handlers[i].Function = cmp.Or(opt.Handlers[i].Function, e.opt.Function)
	}
	return opt
}

// operator returns an attempt at a record without a request.
func (e *Engine) operator(ctx context.Context, pk string) (*attempt, error) {
	a := &attempt{Engine: e, req: &Request{}, pk: pk, owner: rand.Text(), resumed: true}
	if !strings.HasPrefix(pk, e.prefix) {
		return nil, a.fail("resume", fmt.Errorf("%w: the record is not of the namespace %q", jobs.ErrMoved, e.opt.Namespace))
	}
	return a, a.start(ctx)
}

// takeUp takes over the operation of a ticket, in one write if the store can.
// missing is set if the stored request is lost for good.
func (a *attempt) takeUp(ctx context.Context, ticket jobs.Ticket, opt ResumeOptions) (_ *store.Record, missing, _ error) {
	now := a.opt.Now()
	t := state.WithFrom(store.Take{
		PK: ticket.PK, Owner: ticket.Owner, Ver: ticket.Ver, Released: ticket.Released,
		Now: state.Millis(now), Handlers: opt.Handlers, Tenant: opt.Tenant, NewOwner: a.owner, Lease: a.leaseEnd(now),
	})
	rec, taken, err := a.takeOnce(ctx, t)
	switch {
	case err != nil:
		return nil, nil, err
	case taken:
		return a.took(rec), nil, nil
	}
	if why := state.MayTake(rec, t); why != state.Good {
		return nil, nil, a.refused(rec, why)
	}
	next := t.From(rec)
	missing = a.loadInput(ctx, rec)
	switch {
	case missing != nil && !errors.Is(missing, ErrNotKept):
		return nil, nil, a.unavailable("resume", missing)
	case missing != nil && state.LeftToClient(rec, a.opt.Now(), a.opt.Retention):
		return nil, nil, a.fail("resume", fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	got, l, err := a.write(ctx, change{prev: rec, next: next}, a.unbegun(), maxRounds)
	switch {
	case err != nil:
		return nil, nil, a.unavailable("take-over", err)
	case l != state.Landed:
		return nil, nil, a.fail("resume", jobs.ErrMoved)
	}
	if got != next && got.Input != nil && next.Input != nil {
		got.Input.Body = next.Input.Body // loaded before the take-over
	}
	return a.took(got), missing, nil
}

// takeOnce takes the record over in one write. If the take-over is refused or not
// possible, takeOnce returns the current record.
func (a *attempt) takeOnce(ctx context.Context, t store.Take) (rec *store.Record, taken bool, _ error) {
	// The record shows whether the take-over was applied without an acknowledgement.
	ours := func(rec *store.Record) bool { return rec != nil && rec.Owner == t.NewOwner && rec.Ver == t.Ver+1 }
	var cause error
	if taker, ok := a.store.(store.Taker); ok {
		until := earlier(a.unbegun(), time.Now().Add(maxClaim))
		ctx, cancel := a.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // taken although refused, if the store itself sent the write twice
		case !errors.Is(cause, store.ErrUnknown) && !errors.Is(cause, ErrConflict):
			return nil, false, a.unavailable("take-over", cause)
		}
	}
	rec, err := a.reads(ctx, a.unbegun())
	if err != nil {
		return nil, false, errors.Join(err, cause)
	}
	return rec, ours(rec), nil
}

func (a *attempt) took(rec *store.Record) *store.Record {
	a.scope, a.req.Route = rec.Scope, rec.Route
	_, _, a.whose, _ = scope.Parse(rec.Scope)
	return rec
}

// refused returns the error for a ticket that can't be used.
func (a *attempt) refused(rec *store.Record, why state.Refusal) error {
	switch why {
	case state.Held:
		e := a.fail("resume", ErrInFlight)
		e.RetryAfter = rec.Lease.Sub(a.opt.Now())
		return e
	case state.OtherHandler:
		return a.fail("resume", fmt.Errorf("%w: it is of the %v", jobs.ErrNotMine, rec.Handler))
	case state.OtherTenant:
		return a.fail("resume", fmt.Errorf("%w: it was invoked for another tenant", jobs.ErrNotMine))
	case state.NoRequest:
		return a.fail("resume", fmt.Errorf("%w: the request was not stored with its claim", ErrNotKept))
	default:
		return a.fail("resume", jobs.ErrMoved)
	}
}

// readsClosed is reads for a change that may need no contents: if they are sealed, and
// can't be opened, it returns the record without them. The store refuses a write that
// needs them.
func (a *attempt) readsClosed(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil && (rec == nil || !errors.Is(err, store.ErrSealed)) {
		return nil, a.unavailable("read", err)
	}
	return rec, nil
}

func (a *attempt) loadInput(ctx context.Context, rec *store.Record) error {
	if rec.Input == nil || rec.Input.Overflow == nil {
		return nil
	}
	loader, ok := a.store.(store.BodyLoader)
	if !ok {
		return ErrNotKept
	}
	ctx, cancel := a.within(ctx, a.unbegun())
	defer cancel()
	return loader.LoadBody(ctx, rec)
}
