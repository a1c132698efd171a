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
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
)

// ResumeOptions say for whom [Engine.Resume] acts.
type ResumeOptions struct {
	// Handlers are the handlers that fn is, under their present names and former
	// ones; an empty Function stands for [Options.Function]. Default: the handler
	// without a name of that function.
	Handlers []store.HandlerID
	// Tenant is the one that this process works for, where its platform keeps
	// tenants apart.
	Tenant string
}

// Resume takes over an operation that its attempt has abandoned, and brings it
// to an end with the request stored in its record ([Options.Resumable]). It is
// for completers: a client's retry needs none of it. fn gets that request, whose
// Handler says which of [ResumeOptions.Handlers] it is for, and may set its
// Answer; what it returns is treated as [Engine.Do] does.
//
// A nil error says that the operation has its answer now. [jobs.ErrMoved] says that
// there is nothing to do any more, [ErrInFlight] (with RetryAfter) that the
// lease is not over yet, [jobs.ErrNotMine] that the operation is another handler's,
// [ErrNotKept] that there is no stored request, or none that can be read: its
// client, who has it, may come back for [Options.Retention], and only then is it
// stuck. None of these has changed anything. [ErrStuck] says that it has been
// taken up [Options.MaxTries] times and waits for an operator. Any other error is
// a failed try: the record is released, and a later ticket may do better. The
// handler's own error comes as its text.
func (e *Engine) Resume(ctx context.Context, t jobs.Ticket, fn func(context.Context, *Request) (Response, error), optFns ...func(*ResumeOptions)) (Result, error) {
	a, err := e.operator(ctx, t.PK)
	if err != nil {
		return Result{}, err
	}
	rec, missing, err := a.takeUp(ctx, t, e.resumeOptions(optFns))
	if err != nil {
		return Result{}, err
	}
	f := &flow{a: a, rec: rec}
	switch {
	case missing != nil:
		return Result{}, f.giveUp(ctx, "the stored request is gone: "+missing.Error())
	case rec.Tries > e.opt.MaxTries:
		return Result{}, f.giveUp(ctx, fmt.Sprintf("not completed in %d tries: %s", e.opt.MaxTries, rec.LastErr))
	}
	a.req = requestOf(rec.Input)
	a.req.Handler, a.req.Tenant = rec.Handler, rec.Tenant
	res, err := a.begin(ctx, rec, true, func(ctx context.Context) (Response, error) { return fn(ctx, a.req) })
	if h, ok := errors.AsType[*handlerError](err); ok {
		// The handler's own error may be one of this package's, of an operation inside.
		err = fmt.Errorf("idem: resume: the handler failed: %s", redact.Error(h.err))
	}
	if err == nil && res.Expires.IsZero() {
		err = a.fail("resume", errors.New(notStored(res.Status)))
	}
	return res, err
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

// operator returns an attempt at a record that comes without a request.
func (e *Engine) operator(ctx context.Context, pk string) (*attempt, error) {
	a := &attempt{Engine: e, req: &Request{}, pk: pk, owner: rand.Text(), resumed: true}
	if !strings.HasPrefix(pk, e.prefix) {
		return nil, a.fail("resume", fmt.Errorf("%w: the record is not of the namespace %q", jobs.ErrMoved, e.opt.Namespace))
	}
	return a, a.start(ctx)
}

// takeUp takes the operation of a ticket over, in one write where the store can.
// missing says that the stored request is gone for good.
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
		got.Input.Body = next.Input.Body // read before
	}
	return a.took(got), missing, nil
}

// takeOnce takes the record over in one write. Where that is not done, it returns
// the record as it is.
func (a *attempt) takeOnce(ctx context.Context, t store.Take) (rec *store.Record, taken bool, _ error) {
	// Its answer was lost if the record shows it.
	ours := func(rec *store.Record) bool { return rec != nil && rec.Owner == t.NewOwner && rec.Ver == t.Ver+1 }
	var cause error
	if taker, ok := a.store.(store.Taker); ok {
		until := earlier(a.unbegun(), time.Now().Add(maxClaim))
		ctx, cancel := a.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // refused, where a store has sent it again by itself
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
	return rec
}

// refused is the error of a ticket that is of no use.
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

func (a *attempt) reads(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil {
		return nil, a.unavailable("resume", err)
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
