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
	// Handlers are the present and former names of the handlers that fn can run. A
	// HandlerID without a Function gets [Options.Function]. Default: the unnamed handler
	// of Options.Function.
	Handlers []store.HandlerID
	// Tenant is the tenant of this process, if its platform isolates tenants.
	Tenant string
}

// Resume takes over an abandoned operation, and finishes it with the request that is
// stored in the record ([Options.Resumable]). Completers call Resume; a client's retry
// doesn't need Resume. fn gets the stored request. The request's Handler says which of
// [ResumeOptions.Handlers] must run. fn may set [Request.Answer]. Resume treats the
// results of fn as [Engine.Do] does.
//
// A nil error means that the operation now has its answer. [jobs.ErrMoved] means that
// nothing is left to do for the ticket: usually because the record has changed since,
// or because Resume freed the key, under which nothing was done. Four errors mean that
// nothing has changed, unless they also match [ErrLeaseLost]:
//
//   - [ErrInFlight]: the lease has not ended. Try again after [Error.RetryAfter].
//   - [jobs.ErrNotMine]: the operation belongs to another handler or tenant.
//   - [ErrNotKept]: the stored request is missing or unreadable.
//   - [ErrUnprotected]: the engine is in [ModeOff].
//
// After ErrNotKept, a retry of the client can still finish the operation. If no retry
// comes within [Options.Retention] of the most recent attempt, the operation becomes
// stuck, or its key is freed if nothing was done under it.
//
// [ErrStuck] means that the operation waits for an operator, for example because
// [Options.MaxTries] tries have failed. After any other error, a later ticket may
// succeed. If Resume had taken the operation over before such an error, it has tried to
// release the record. But if the write of the answer failed, Resume may have kept the
// lease. The returned error contains the handler's own error as text.
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

// core.unattended returns an attempt that has no client, for the record at pk.
func (e *core) unattended(ctx context.Context, pk string) (*attempt, error) {
	a := e.attempt()
	a.ask.home.pk, a.ask.unattended, a.ask.owner = pk, true, rand.Text()
	if e.opt.Mode == ModeOff {
		return a, recordError("resume", pk, ErrUnprotected)
	}
	if !strings.HasPrefix(pk, e.names.prefix) {
		return a, recordError("resume", pk, fmt.Errorf("%w: the record is not of the namespace %q", jobs.ErrMoved, e.opt.Namespace))
	}
	a.times.arrives(ctx)
	return a, a.times.enough(pk)
}

// takeUp takes over the operation of a ticket, in one write if the store is a
// [store.Taker] and doesn't refuse. If the stored request is lost for good, missing
// says why.
func (a *attempt) takeUp(ctx context.Context, ticket jobs.Ticket, handlers []store.HandlerID, tenant string) (_ *store.Record, missing, _ error) {
	now := a.core.opt.Now()
	t := state.WithFrom(store.Take{
		PK: ticket.PK, Owner: ticket.Owner, Ver: ticket.Ver, Released: ticket.Released,
		Now: state.Millis(now), Handlers: handlers, Tenant: tenant, NewOwner: a.ask.owner, Lease: a.times.leaseEnd(now),
		Retention: a.core.retention,
	})
	rec, taken, err := a.takeOnce(ctx, t)
	switch {
	case err != nil:
		return nil, nil, err
	case taken:
		return a.took(rec), nil, nil
	}
	if why := state.MayTake(rec, t); why != state.Good {
		return nil, nil, a.unfit(rec, why)
	}
	next := t.From(rec)
	missing = a.loadInput(ctx, rec)
	switch {
	case missing != nil && !errors.Is(missing, ErrNotKept):
		return nil, nil, unavailable("resume", a.ask.home.pk, missing)
	case missing != nil && a.core.opt.Now().Before(state.LeftUntil(rec)):
		return nil, nil, recordError("resume", a.ask.home.pk, fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	got, l, err := a.writer().write(ctx, change{prev: rec, next: next}, a.times.handlerEnd, maxRounds)
	switch {
	case err != nil:
		return nil, nil, unavailable("take-over", a.ask.home.pk, err)
	case l != state.Landed:
		return nil, nil, recordError("resume", a.ask.home.pk, jobs.ErrMoved)
	}
	if got != next && got.Input != nil && next.Input != nil {
		got.Input.Body = next.Input.Body // loadInput loaded the body into rec; got comes from the store, without the body
	}
	return a.took(got), missing, nil
}

// takeOnce takes the record over in one write, if the store can. If the record isn't
// taken over, takeOnce returns the current record.
func (a *attempt) takeOnce(ctx context.Context, t store.Take) (rec *store.Record, taken bool, _ error) {
	// ours reports whether rec shows that the take-over was applied. The store's
	// acknowledgement may have been lost.
	ours := func(rec *store.Record) bool { return rec != nil && rec.Owner == t.NewOwner && rec.Ver == t.Ver+1 }
	var cause error
	if taker, ok := a.core.store.(store.Taker); ok {
		until := earlier(a.times.handlerEnd, time.Now().Add(maxClaim))
		ctx, cancel := a.times.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // if the store sent the write twice, the first copy may have been applied and the second refused: then taken is false, but the record is ours
		case !store.Passing(cause):
			return nil, false, unavailable("take-over", a.ask.home.pk, cause)
		}
	}
	rec, err := a.reads(ctx, a.times.handlerEnd)
	if err != nil {
		return nil, false, errors.Join(err, cause)
	}
	return rec, ours(rec), nil
}

func (a *attempt) reads(ctx context.Context, until time.Time) (*store.Record, error) {
	rec, err := a.writer().read(ctx, a.ask.home.pk, until)
	if err != nil {
		return nil, unavailable("read", a.ask.home.pk, err)
	}
	return rec, nil
}

func (a *attempt) took(rec *store.Record) *store.Record {
	a.ask.home.scope, a.ask.req.Route = rec.Scope, rec.Route
	_, _, a.ask.home.whose, _ = scope.Parse(rec.Scope)
	return rec
}

// attempt.unfit returns the error for a ticket that can't be used.
func (a *attempt) unfit(rec *store.Record, why state.Refusal) error {
	switch why {
	case state.Held:
		e := recordError("resume", a.ask.home.pk, ErrInFlight)
		e.RetryAfter = rec.Lease.Sub(a.core.opt.Now())
		return e
	case state.OtherHandler:
		return recordError("resume", a.ask.home.pk, fmt.Errorf("%w: it is of the %v", jobs.ErrNotMine, rec.Handler))
	case state.OtherTenant:
		return recordError("resume", a.ask.home.pk, fmt.Errorf("%w: it was invoked for another tenant", jobs.ErrNotMine))
	case state.NoRequest:
		return recordError("resume", a.ask.home.pk, fmt.Errorf("%w: the request was not stored with its claim", ErrNotKept))
	default:
		return recordError("resume", a.ask.home.pk, jobs.ErrMoved)
	}
}

func (a *attempt) loadInput(ctx context.Context, rec *store.Record) error {
	if rec.Input == nil || rec.Input.Overflow == nil {
		return nil
	}
	loader, ok := a.core.store.(store.BodyLoader)
	if !ok {
		return ErrNotKept
	}
	ctx, cancel := a.times.within(ctx, a.times.handlerEnd)
	defer cancel()
	return loader.LoadBody(ctx, rec)
}

// goOn continues the operation of rec, which this attempt has taken over. If the
// operation can't be completed, goOn calls [attempt.endTries].
func (a *attempt) goOn(ctx context.Context, rec *store.Record, missing error, fn func(context.Context, *Request) (Response, error)) (Result, error) {
	r, why := a.run(rec, a.writer()), ""
	switch {
	case missing != nil:
		why = "the stored request is gone: " + missing.Error()
	case rec.Tries > a.core.opt.MaxTries:
		why = fmt.Sprintf("not completed in %d tries: %s", a.core.opt.MaxTries, rec.LastErr)
	}
	if why != "" {
		return Result{}, a.endTries(ctx, r, why)
	}
	a.ask.req = requestOf(rec)
	a.ask.req.Handler, a.ask.req.Tenant = rec.Handler, rec.Tenant
	res, err := r.handleAndEnd(ctx, true, func(ctx context.Context) (Response, error) {
		if err := a.core.opt.checkCaller(a.ask.req, a.ask.home.whose); err != nil { // fails if CallerFromOp was set when the request was stored, and isn't set now
			return Response{}, err
		}
		return fn(ctx, a.ask.req)
	})
	if h, ok := errors.AsType[*handlerError](err); ok {
		// The handler's error may wrap an error of this package, from a nested operation. The
		// error is made a text, so that no caller takes it for an error of this operation.
		err = fmt.Errorf("idem: resume: the handler failed: %s", redact.Error(h.err))
	}
	if err == nil && res.Expires.IsZero() {
		err = recordError("resume", a.ask.home.pk, errors.New(notStored(res.Status)))
	}
	return res, err
}

// endTries marks an operation that can't be completed as stuck. But if nothing was done
// under the key, endTries frees the key, and returns [jobs.ErrMoved]: a person would
// have nothing to decide, and one client could make any number of such stuck
// operations.
func (a *attempt) endTries(ctx context.Context, r *run, why string) error {
	b := state.Release{Refused: true, Why: why}
	if rec := r.record(); !state.Kept(state.Released(rec, a.core.opt.Now(), b)) {
		a.core.log.ErrorContext(ctx, "key freed: nothing was done under it", "record", redact.Record(a.ask.home.pk), "operation", rec.ID,
			"route", rec.Route, "error", why)
		if _, _, err := r.release(ctx, b, errors.New(why)); err != nil {
			return err
		}
		return recordError("resume", a.ask.home.pk, fmt.Errorf("%w: the key was freed", jobs.ErrMoved))
	}
	err := r.markStuck(ctx, why)
	if end, ok := errors.AsType[*attemptOver](err); ok {
		return end.toPhase
	}
	return err
}
