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

// unattended is an attempt that no client asks for: a completer's, or an operator's. It
// begins with a record, and without a request.
type unattended struct{ *attempt }

// unattended returns an attempt at the record pk.
func (e *core) unattended(ctx context.Context, pk string) (unattended, error) {
	a := e.attempt()
	a.pk, a.owner, a.resumed = pk, rand.Text(), true
	if !strings.HasPrefix(pk, e.prefix) {
		return unattended{a}, a.fail("resume", fmt.Errorf("%w: the record is not of the namespace %q", jobs.ErrMoved, e.opt.Namespace))
	}
	return unattended{a}, a.start(ctx)
}

// pickUp reads the record of a ticket and checks that the ticket is still valid.
func (e *core) pickUp(ctx context.Context, t jobs.Ticket) (unattended, *store.Record, error) {
	a, err := e.unattended(ctx, t.PK)
	if err != nil {
		return a, nil, err
	}
	rec, err := a.reads(ctx, a.unbegun)
	if err != nil {
		return a, nil, err
	}
	if why := state.Fits(rec, t.Owner, t.Ver, e.opt.Now()); why != state.Good {
		return a, nil, a.refused(rec, why)
	}
	return a, a.took(rec), nil
}

// takeTicket takes the record over to give it up, and counts the try. Any program may do
// that, so retention and tombstone stay.
func (a unattended) takeTicket(ctx context.Context, rec *store.Record) (*store.Record, error) {
	now := a.opt.Now()
	next := state.TakenUp(rec, now, a.leaseEnd(now), state.Life{Retention: rec.Retention, Tombstone: rec.Tombstone})
	got, l, err := a.write(ctx, change{prev: rec, next: next}, a.unbegun, maxRounds)
	switch {
	case err != nil:
		return nil, a.unavailable("take-over", err)
	case l != state.Landed:
		return nil, a.fail("resume", jobs.ErrMoved)
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
	rec, err := a.readsClosed(ctx, a.end)
	for round := 1; err == nil; round++ {
		if seen != nil && (rec == nil || rec.Owner != seen.Owner || rec.Ver != seen.Ver) {
			return a.fail(op, fmt.Errorf("%w: somebody has written it since it was looked at", jobs.ErrMoved))
		}
		to, nerr := next(rec, e.opt.Now())
		if nerr != nil {
			return a.fail(op, nerr)
		}
		to.Settled[len(to.Settled)-1].ID = a.owner // by which it is found again
		// This attempt's owner fences a late write of the attempt that holds the record.
		held, _, werr := a.write(ctx, change{prev: rec, next: to, rerun: true}, a.end, maxRounds)
		if werr != nil {
			if held, err = a.readsClosed(ctx, a.end); err != nil {
				return a.unavailable(op, fmt.Errorf("%w: %w", store.ErrUnknown, errors.Join(werr, err)))
			}
		}
		moved := held == nil || held.Owner != rec.Owner || held.Ver != rec.Ver // no copy of the write lands any more
		switch made, known := state.HasDecision(held, rec, a.owner); {
		case made:
			return nil
		case moved && known:
			return a.fail(op, fmt.Errorf("%w: somebody has written it since it was looked at", jobs.ErrMoved))
		case moved:
			return a.fail(op, fmt.Errorf("%w: the record can't tell any more whether this was decided", store.ErrUnknown))
		case !errors.Is(werr, ErrConflict) || round == maxRounds || !a.pause(ctx, round, a.end):
			return a.unavailable(op, werr)
		}
		rec = held // its jobs have changed: decide about those that are left
	}
	return err
}

// goOn continues the operation of a record that a took over, or gives it up.
func (a unattended) goOn(ctx context.Context, rec *store.Record, missing error, fn func(context.Context, *Request) (Response, error)) (Result, error) {
	f, why := a.flow(rec), ""
	switch {
	case missing != nil:
		why = "the stored request is gone: " + missing.Error()
	case rec.Tries > a.opt.MaxTries:
		why = fmt.Sprintf("not completed in %d tries: %s", a.opt.MaxTries, rec.LastErr)
	}
	if why != "" {
		return Result{}, a.endTries(ctx, f, why)
	}
	a.req = requestOf(rec.Input)
	a.req.Handler, a.req.Tenant = rec.Handler, rec.Tenant
	res, err := entry(a).run(ctx, rec, true, func(ctx context.Context) (Response, error) {
		if err := a.opt.completable(a.req, a.whose); err != nil { // an earlier program took the caller from the operation
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

// endTries marks an operation that can't be completed as stuck, or frees its key and returns
// [jobs.ErrMoved] if nothing was done under it: there is nothing that people could decide,
// and one client could have any number of such requests.
func (a unattended) endTries(ctx context.Context, f *flow, why string) error {
	b := state.Release{Refused: true, Why: why}
	if rec := f.record(); !state.Kept(state.Released(rec, a.opt.Now(), b)) {
		a.log.ErrorContext(ctx, "key freed: nothing was done under it", "record", redact.Record(a.pk), "operation", rec.ID,
			"route", rec.Route, "error", why)
		if _, _, err := a.release(ctx, rec, b, errors.New(why)); err != nil {
			return err
		}
		return a.fail("resume", fmt.Errorf("%w: the key was freed", jobs.ErrMoved))
	}
	return f.markStuck(ctx, why)
}

// takeUp takes over the operation of a ticket, in one write if the store can.
// missing is set if the stored request is lost for good.
func (a unattended) takeUp(ctx context.Context, ticket jobs.Ticket, handlers []store.HandlerID, tenant string) (_ *store.Record, missing, _ error) {
	now := a.opt.Now()
	t := state.WithFrom(store.Take{
		PK: ticket.PK, Owner: ticket.Owner, Ver: ticket.Ver, Released: ticket.Released,
		Now: state.Millis(now), Handlers: handlers, Tenant: tenant, NewOwner: a.owner, Lease: a.leaseEnd(now),
		Retention: a.life.Retention, Tombstone: a.life.Tombstone,
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
	case missing != nil && a.opt.Now().Before(state.LeftUntil(rec)):
		return nil, nil, a.fail("resume", fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	got, l, err := a.write(ctx, change{prev: rec, next: next}, a.unbegun, maxRounds)
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
func (a unattended) takeOnce(ctx context.Context, t store.Take) (rec *store.Record, taken bool, _ error) {
	// The record shows whether the take-over was applied without an acknowledgement.
	ours := func(rec *store.Record) bool { return rec != nil && rec.Owner == t.NewOwner && rec.Ver == t.Ver+1 }
	var cause error
	if taker, ok := a.store.(store.Taker); ok {
		until := earlier(a.unbegun, time.Now().Add(maxClaim))
		ctx, cancel := a.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // taken although refused, if the store itself sent the write twice
		case !store.Passing(cause):
			return nil, false, a.unavailable("take-over", cause)
		}
	}
	rec, err := a.reads(ctx, a.unbegun)
	if err != nil {
		return nil, false, errors.Join(err, cause)
	}
	return rec, ours(rec), nil
}

func (a unattended) took(rec *store.Record) *store.Record {
	a.scope, a.req.Route = rec.Scope, rec.Route
	_, _, a.whose, _ = scope.Parse(rec.Scope)
	return rec
}

// refused returns the error for a ticket that can't be used.
func (a unattended) refused(rec *store.Record, why state.Refusal) error {
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
func (a unattended) readsClosed(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil && (rec == nil || !errors.Is(err, store.ErrSealed)) {
		return nil, a.unavailable("read", err)
	}
	return rec, nil
}

func (a unattended) loadInput(ctx context.Context, rec *store.Record) error {
	if rec.Input == nil || rec.Input.Overflow == nil {
		return nil
	}
	loader, ok := a.store.(store.BodyLoader)
	if !ok {
		return ErrNotKept
	}
	ctx, cancel := a.within(ctx, a.unbegun)
	defer cancel()
	return loader.LoadBody(ctx, rec)
}
