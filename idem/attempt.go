package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// attempt is one try at one operation. An attempt gets all its data at the start, so
// nested and concurrent attempts can't mix up their data. It claims a record (enter.go),
// runs the handler (run.go), and ends with an answer (end.go).
type attempt struct {
	core  *core
	ask   ask
	times times
	watch watch
}

func (e *core) attempt() *attempt {
	a := &attempt{core: e, ask: ask{core: e}, times: times{core: e}}
	a.ask.req = &a.ask.reqValue
	a.watch.core, a.watch.ask = e, &a.ask
	return a
}

// attemptAt doesn't copy r.
func (e *core) attemptAt(r *Request) *attempt {
	a := e.attempt()
	a.ask.req = r
	return a
}

// attempt.do handles the request a.ask.req, which has a key.
func (a *attempt) do(ctx context.Context, fn func(context.Context) (Response, error)) (Result, error) {
	switch inside, err := a.ask.find(ctx); {
	case err != nil:
		a.refused(ctx, err)
		return Result{}, err
	case inside:
		return a.core.pass(ctx, a.ask.req, fn)
	}
	if a.core.opt.Hooks.Ended == nil && a.core.opt.Tracer == nil {
		return a.proceed(ctx, fn)
	}
	return a.watch.watched(ctx, func(ctx context.Context) (Result, error) {
		if a.core.opt.Tracer == nil {
			return a.proceed(ctx, fn)
		}
		return a.watch.operate(ctx, func(ctx context.Context) (Result, error) { return a.proceed(ctx, fn) })
	})
}

// attempt.proceed claims the record of the request, and runs fn or answers from the
// record.
func (a *attempt) proceed(ctx context.Context, fn func(context.Context) (Response, error)) (Result, error) {
	a.prepare(ctx)
	c := a.claiming()
	if a.core.opt.Quota != nil {
		defer func() { c.seat.leave() }()
	}
	found, v, err := c.enter(ctx)
	if v == state.InFlight {
		found, v, err = c.patiently(ctx, found)
	}
	switch {
	case err != nil:
		return a.unclaimed(ctx, &c, err, fn)
	case v != state.Own && v != state.TakeOver:
		return a.answers(c.writer.owner).answer(ctx, found, v)
	}
	return a.execute(ctx, &c, found, v, fn)
}

// attempt.prepare sets the deadlines. If the request is too large to be stored, or if
// too little time is left, prepare also notes that the request must not begin an
// operation.
func (a *attempt) prepare(ctx context.Context) {
	q, opt := &a.ask, &a.core.opt
	a.times.arrives(ctx)
	if opt.Resumable && !q.req.Redelivered {
		q.input = inputOf(q.req, opt.InputHeaders)
		q.bar("request", storable(q.input, opt.MaxRequest))
	}
	q.bar("start", a.times.short())
}

// attempt.unclaimed ends an attempt whose claim returned the error err. In ModeOpen,
// unclaimed runs fn if the store couldn't be reached.
func (a *attempt) unclaimed(ctx context.Context, c *claiming, err error, fn func(context.Context) (Response, error)) (Result, error) {
	if e, ok := errors.AsType[*Error](err); ok {
		a.watch.name = e.Record
	}
	switch {
	case a.core.opt.Mode == ModeOpen && !c.hasRecord && unreachable(err):
		a.core.log.ErrorContext(ctx, "store unavailable: handler runs unprotected", "record", redact.Record(a.ask.home.pk), "route", a.ask.req.Route, "error", err)
		a.watch.tell(ctx, evUnprotected, nil, err)
		return a.core.unprotected(ctx, a.ask.req, fn)
	case errors.Is(err, ErrQuota):
		a.watch.tell(ctx, evLimited, nil, err)
	case c.barred != nil && errors.Is(err, c.barred):
		a.watch.tell(ctx, evRefused, nil, err)
	default:
		a.core.log.ErrorContext(ctx, "claim failed", "record", a.watch.recordName(), "error", err)
		a.watch.tell(ctx, evFailed, nil, err)
	}
	return Result{}, err
}

// attempt.execute runs fn for the record held. v says whether this attempt has claimed
// the record (verdict Own) or taken it over.
func (a *attempt) execute(ctx context.Context, c *claiming, held *store.Record, v state.Verdict, fn func(context.Context) (Response, error)) (Result, error) {
	r := a.run(held, c.writer)
	if short := a.times.short(); short != nil { // the claim used up the time, or the sandbox was frozen
		err := recordError("start", held.PK, short)
		_, _, _ = r.release(ctx, state.Release{}, err)
		if v == state.TakeOver {
			return r.answers().answer(ctx, held, state.TooSoon)
		}
		a.watch.tell(ctx, evRefused, nil, err)
		return Result{}, err
	}
	defer func() { c.seat.holds(r.record()) }() // also if fn panics
	return r.handleAndEnd(ctx, v == state.TakeOver, fn)
}

func (a *attempt) writer() writer { return writer{&a.times, a.ask.owner} }

func (a *attempt) claiming() claiming {
	return claiming{core: a.core, ask: &a.ask, times: &a.times, watch: &a.watch, writer: a.writer(), id: a.ask.id, barred: a.ask.barred}
}

func (a *attempt) run(rec *store.Record, w writer) *run {
	return &run{
		ask: &a.ask, times: &a.times, watch: &a.watch, writer: w,
		progress: progress{rec: rec, started: time.Now()}, gate: gate{pk: rec.PK},
	}
}

// unreachable reports whether a claim failed because the store could not be reached. It
// returns false if the store answered and refused the call. It also returns false if
// the data key can't be had, because the record may hold an answer.
func unreachable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Op == "claim" && errors.Is(err, ErrUnavailable) && !errors.Is(err, store.ErrRefused) && !errors.Is(err, store.ErrSealed)
}

// attempt.refused tells the hooks that the request is refused before its record is
// read.
func (a *attempt) refused(ctx context.Context, err error) {
	_, _ = a.watch.watched(ctx, func(ctx context.Context) (Result, error) {
		a.watch.tell(ctx, evRefused, nil, err)
		return Result{}, err
	})
}

// core.refuses tells the hooks that r is refused because an adapter couldn't read it.
func (e *core) refuses(ctx context.Context, r *Request, err error) {
	e.attemptAt(r).refused(ctx, err)
}
