package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// An attempt that no client asks for: a completer's, or an operator's. It begins with a
// record, and without a request.

// unattended returns an attempt at the record pk.
func (e *core) unattended(ctx context.Context, pk string) (*attempt, error) {
	a := e.attempt()
	a.ask.home.pk, a.ask.resumed, a.ask.owner = pk, true, rand.Text()
	if !strings.HasPrefix(pk, e.names.prefix) {
		return a, fail("resume", pk, fmt.Errorf("%w: the record is not of the namespace %q", jobs.ErrMoved, e.opt.Namespace))
	}
	a.times.arrives(ctx)
	return a, a.times.enough(pk)
}

// pickUp reads the record of a ticket and checks that the ticket is still valid.
func (e *core) pickUp(ctx context.Context, t jobs.Ticket) (*attempt, *store.Record, error) {
	a, err := e.unattended(ctx, t.PK)
	if err != nil {
		return a, nil, err
	}
	rec, err := a.reads(ctx, a.times.unbegun)
	if err != nil {
		return a, nil, err
	}
	if why := state.Fits(rec, t.Owner, t.Ver, e.opt.Now()); why != state.Good {
		return a, nil, a.unfit(rec, why)
	}
	return a, a.took(rec), nil
}

// takeTicket takes the record over to give it up, and counts the try. Any program may do
// that, so the retention stays.
func (a *attempt) takeTicket(ctx context.Context, rec *store.Record) (*store.Record, error) {
	now := a.core.opt.Now()
	next := state.TakenUp(rec, now, a.times.leaseEnd(now), rec.Retention)
	got, l, err := a.writer().write(ctx, change{prev: rec, next: next}, a.times.unbegun, maxRounds)
	switch {
	case err != nil:
		return nil, unavailable("take-over", a.ask.home.pk, err)
	case l != state.Landed:
		return nil, fail("resume", a.ask.home.pk, jobs.ErrMoved)
	}
	return got, nil
}

// decide writes an operator's decision, which next makes of the record, if the record is as
// seen; nil accepts any.
func (e *core) decide(ctx context.Context, op, pk string, seen *jobs.Ticket, next func(*store.Record, time.Time) (*store.Record, error)) error {
	a, err := e.unattended(ctx, pk)
	if err != nil {
		return err
	}
	rec, err := a.readsClosed(ctx, a.times.end)
	for round := 1; err == nil; round++ {
		if seen != nil && (rec == nil || rec.Owner != seen.Owner || rec.Ver != seen.Ver) {
			return fail(op, pk, fmt.Errorf("%w: somebody has written it since it was looked at", jobs.ErrMoved))
		}
		to, nerr := next(rec, e.opt.Now())
		if nerr != nil {
			return fail(op, pk, nerr)
		}
		to.Settled[len(to.Settled)-1].ID = a.ask.owner // by which it is found again
		// This attempt's owner fences a late write of the attempt that holds the record.
		held, _, werr := a.writer().write(ctx, change{prev: rec, next: to, rerun: true}, a.times.end, maxRounds)
		if werr != nil {
			if held, err = a.readsClosed(ctx, a.times.end); err != nil {
				return unavailable(op, pk, fmt.Errorf("%w: %w", store.ErrUnknown, errors.Join(werr, err)))
			}
		}
		moved := held == nil || held.Owner != rec.Owner || held.Ver != rec.Ver // no copy of the write lands any more
		switch made, known := state.HasDecision(held, rec, a.ask.owner); {
		case made:
			return nil
		case moved && known:
			return fail(op, pk, fmt.Errorf("%w: somebody has written it since it was looked at", jobs.ErrMoved))
		case moved:
			return fail(op, pk, fmt.Errorf("%w: the record can't tell any more whether this was decided", store.ErrUnknown))
		case !errors.Is(werr, ErrConflict) || round == maxRounds || !a.times.pause(ctx, round, a.times.end):
			return unavailable(op, pk, werr)
		}
		rec = held // its jobs have changed: decide about those that are left
	}
	return err
}

// goOn continues the operation of a record that a took over, or gives it up.
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
	res, err := r.course(ctx, true, func(ctx context.Context) (Response, error) {
		if err := a.core.opt.completable(a.ask.req, a.ask.home.whose); err != nil { // an earlier program took the caller from the operation
			return Response{}, err
		}
		return fn(ctx, a.ask.req)
	})
	if h, ok := errors.AsType[*handlerError](err); ok {
		// The handler's error may wrap this package's errors from a nested operation.
		err = fmt.Errorf("idem: resume: the handler failed: %s", redact.Error(h.err))
	}
	if err == nil && res.Expires.IsZero() {
		err = fail("resume", a.ask.home.pk, errors.New(notStored(res.Status)))
	}
	return res, err
}

// endTries marks an operation that can't be completed as stuck, or frees its key and returns
// [jobs.ErrMoved] if nothing was done under it: there is nothing that people could decide,
// and one client could have any number of such requests.
func (a *attempt) endTries(ctx context.Context, r *run, why string) error {
	b := state.Release{Refused: true, Why: why}
	if rec := r.record(); !state.Kept(state.Released(rec, a.core.opt.Now(), b)) {
		a.core.log.ErrorContext(ctx, "key freed: nothing was done under it", "record", redact.Record(a.ask.home.pk), "operation", rec.ID,
			"route", rec.Route, "error", why)
		if _, _, err := r.release(ctx, b, errors.New(why)); err != nil {
			return err
		}
		return fail("resume", a.ask.home.pk, fmt.Errorf("%w: the key was freed", jobs.ErrMoved))
	}
	err := r.markStuck(ctx, why)
	if end, ok := errors.AsType[*ended](err); ok {
		return end.seen
	}
	return err
}

// takeUp takes over the operation of a ticket, in one write if the store can.
// missing is set if the stored request is lost for good.
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
		return nil, nil, fail("resume", a.ask.home.pk, fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	got, l, err := a.writer().write(ctx, change{prev: rec, next: next}, a.times.unbegun, maxRounds)
	switch {
	case err != nil:
		return nil, nil, unavailable("take-over", a.ask.home.pk, err)
	case l != state.Landed:
		return nil, nil, fail("resume", a.ask.home.pk, jobs.ErrMoved)
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
	if taker, ok := a.core.store.(store.Taker); ok {
		until := earlier(a.times.unbegun, time.Now().Add(maxClaim))
		ctx, cancel := a.times.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // taken although refused, if the store itself sent the write twice
		case !store.Passing(cause):
			return nil, false, unavailable("take-over", a.ask.home.pk, cause)
		}
	}
	rec, err := a.reads(ctx, a.times.unbegun)
	if err != nil {
		return nil, false, errors.Join(err, cause)
	}
	return rec, ours(rec), nil
}

func (a *attempt) took(rec *store.Record) *store.Record {
	a.ask.home.scope, a.ask.req.Route = rec.Scope, rec.Route
	_, _, a.ask.home.whose, _ = scope.Parse(rec.Scope)
	return rec
}

// unfit returns the error for a ticket that can't be used.
func (a *attempt) unfit(rec *store.Record, why state.Refusal) error {
	switch why {
	case state.Held:
		e := fail("resume", a.ask.home.pk, ErrInFlight)
		e.RetryAfter = rec.Lease.Sub(a.core.opt.Now())
		return e
	case state.OtherHandler:
		return fail("resume", a.ask.home.pk, fmt.Errorf("%w: it is of the %v", jobs.ErrNotMine, rec.Handler))
	case state.OtherTenant:
		return fail("resume", a.ask.home.pk, fmt.Errorf("%w: it was invoked for another tenant", jobs.ErrNotMine))
	case state.NoRequest:
		return fail("resume", a.ask.home.pk, fmt.Errorf("%w: the request was not stored with its claim", ErrNotKept))
	default:
		return fail("resume", a.ask.home.pk, jobs.ErrMoved)
	}
}

// reads returns the record; nil without one.
func (a *attempt) reads(ctx context.Context, until time.Time) (*store.Record, error) {
	rec, err := a.writer().read(ctx, a.ask.home.pk, until)
	if err != nil {
		return nil, unavailable("resume", a.ask.home.pk, err)
	}
	return rec, nil
}

// readsClosed is reads for a change that may need no contents: if they are sealed, and
// can't be opened, it returns the record without them. The store refuses a write that
// needs them.
func (a *attempt) readsClosed(ctx context.Context, until time.Time) (*store.Record, error) {
	rec, err := a.writer().read(ctx, a.ask.home.pk, until)
	if err != nil && (rec == nil || !errors.Is(err, store.ErrSealed)) {
		return nil, unavailable("read", a.ask.home.pk, err)
	}
	return rec, nil
}

func (a *attempt) loadInput(ctx context.Context, rec *store.Record) error {
	if rec.Input == nil || rec.Input.Overflow == nil {
		return nil
	}
	loader, ok := a.core.store.(store.BodyLoader)
	if !ok {
		return ErrNotKept
	}
	ctx, cancel := a.times.within(ctx, a.times.unbegun)
	defer cancel()
	return loader.LoadBody(ctx, rec)
}
