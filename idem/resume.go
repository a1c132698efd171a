package idem

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ticket names an operation as somebody saw it: it is good for one take-over,
// and worthless once anybody has written the record since. It holds nothing of
// the request, so whoever may send tickets can't invent an identity.
type Ticket struct {
	PK    string `json:"pk"`
	Owner string `json:"owner"`
	Ver   int64  `json:"ver"`

	// Released says that its attempt gave the record back. It only saves a call,
	// since the record itself decides.
	Released bool `json:"released,omitempty"`
}

// TicketFor returns a ticket for r as it is.
func TicketFor(r *Record) Ticket {
	return Ticket{PK: r.PK, Owner: r.Owner, Ver: r.Ver, Released: r.Lease.IsZero()}
}

// ResumeOptions say for whom [Engine.Resume] acts.
type ResumeOptions struct {
	// Handlers are the handlers that fn is, under their present names and former
	// ones; an empty Function stands for [Options.Function]. Default: the handler
	// without a name of that function.
	Handlers []HandlerID
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
// A nil error says that the operation has its answer now. [ErrMoved] says that
// there is nothing to do any more, [ErrInFlight] (with RetryAfter) that the
// lease is not over yet, [ErrNotMine] that the operation is another handler's,
// [ErrNotKept] that there is no stored request, or none that can be read: its
// client, who has it, may come back for [Options.Retention], and only then is it
// stuck. None of these has changed anything. [ErrStuck] says that it has been
// taken up [Options.MaxTries] times and waits for an operator. Any other error is
// a failed try: the record is released, and a later ticket may do better. The
// handler's own error comes as its text.
func (e *Engine) Resume(ctx context.Context, t Ticket, fn func(context.Context, *Request) (Response, error), optFns ...func(*ResumeOptions)) (Result, error) {
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
	a.req = rec.Input.request()
	a.req.Handler, a.req.Tenant = rec.Handler, rec.Tenant
	res, err := a.begin(ctx, rec, true, func(ctx context.Context) (Response, error) { return fn(ctx, a.req) })
	if h, ok := errors.AsType[*handlerError](err); ok {
		// The handler's own error may be one of this package's, of an operation inside.
		err = fmt.Errorf("idem: resume: the handler failed: %s", ErrorText(h.err))
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
		opt.Handlers = make([]HandlerID, 1)
	}
	opt.Handlers = slices.Clone(opt.Handlers)
	for i := range opt.Handlers {
		setDefault(&opt.Handlers[i].Function, e.opt.Function)
	}
	return opt
}

// handler is who serves a's request.
func (a *attempt) handler() HandlerID {
	h := a.req.Handler
	setDefault(&h.Function, a.opt.Function)
	return h
}

// takeUp takes the operation of a ticket over, in one write where the store can.
// missing says that the stored request is gone for good.
func (a *attempt) takeUp(ctx context.Context, ticket Ticket, opt ResumeOptions) (_ *Record, missing, _ error) {
	now := a.opt.Now()
	t := Take{
		Ticket: ticket, Now: millis(now), Handlers: opt.Handlers, Tenant: opt.Tenant, NewOwner: a.owner, Lease: a.leaseEnd(now),
	}
	rec, taken, err := a.takeOnce(ctx, t)
	switch {
	case err != nil:
		return nil, nil, err
	case taken:
		return a.took(rec), nil, nil
	}
	next, err := t.From(rec)
	if err != nil {
		return nil, nil, a.refused(rec, err)
	}
	missing = a.loadInput(ctx, rec)
	switch {
	case missing != nil && !errors.Is(missing, ErrNotKept):
		return nil, nil, a.unavailable("resume", missing)
	case missing != nil && leftToClient(rec, a.opt.Now(), a.opt.Retention):
		return nil, nil, a.fail("resume", fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	got, l, err := a.commit(ctx, change{prev: rec, next: next}, a.unbegun(), maxRounds)
	switch {
	case err != nil:
		return nil, nil, a.unavailable("take-over", err)
	case l != landed:
		return nil, nil, a.fail("resume", ErrMoved)
	}
	if got != next && got.Input != nil && next.Input != nil {
		got.Input.Body = next.Input.Body // read before
	}
	return a.took(got), missing, nil
}

// takeOnce takes the record over in one write. Where that is not done, it returns
// the record as it is.
func (a *attempt) takeOnce(ctx context.Context, t Take) (rec *Record, taken bool, _ error) {
	// Its answer was lost if the record shows it.
	ours := func(rec *Record) bool { return rec != nil && rec.Owner == t.NewOwner && rec.Ver == t.Ver+1 }
	var cause error
	if taker, ok := a.store.(Taker); ok {
		until := earlier(a.unbegun(), time.Now().Add(maxClaim))
		ctx, cancel := a.within(ctx, time.Now().Add(half(until)))
		defer cancel()
		rec, taken, cause = taker.Take(ctx, t)
		switch {
		case cause == nil:
			return rec, taken || ours(rec), nil // refused, where a store has sent it again by itself
		case !errors.Is(cause, ErrUnknown) && !errors.Is(cause, ErrConflict):
			return nil, false, a.unavailable("take-over", cause)
		}
	}
	rec, err := a.reads(ctx, a.unbegun())
	if err != nil {
		return nil, false, errors.Join(err, cause)
	}
	return rec, ours(rec), nil
}

func (a *attempt) took(rec *Record) *Record {
	a.scope, a.req.Route = rec.Scope, rec.Route
	return rec
}

// refused says why a ticket is of no use.
func (a *attempt) refused(rec *Record, err error) error {
	e := a.fail("resume", err)
	if errors.Is(err, ErrInFlight) {
		e.RetryAfter = rec.Lease.Sub(a.opt.Now())
	}
	return e
}

// GiveUp marks an abandoned operation as stuck, for what nobody can complete:
// it has no stored request. Errors are those of [Engine.Resume], but anybody may
// give up another handler's operation.
func (e *Engine) GiveUp(ctx context.Context, t Ticket, why string) error {
	a, rec, err := e.pickUp(ctx, t)
	if err != nil {
		return err
	}
	if rec, err = a.takeTicket(ctx, rec); err != nil {
		return err
	}
	f := &flow{a: a, rec: rec}
	err = f.giveUp(ctx, why)
	if end := f.ended(); end != nil && errors.Is(end.err, ErrStuck) {
		return nil
	}
	return err
}

// pickUp reads the record of a ticket that is still good.
func (e *Engine) pickUp(ctx context.Context, t Ticket) (*attempt, *Record, error) {
	a, err := e.operator(ctx, t.PK)
	if err != nil {
		return nil, nil, err
	}
	rec, err := a.reads(ctx, a.unbegun())
	if err != nil {
		return nil, nil, err
	}
	if err := t.fits(rec, e.opt.Now()); err != nil {
		return nil, nil, a.refused(rec, err)
	}
	return a, a.took(rec), nil
}

// operator returns an attempt at a record that comes without a request.
func (e *Engine) operator(ctx context.Context, pk string) (*attempt, error) {
	a := &attempt{Engine: e, req: &Request{}, pk: pk, owner: rand.Text(), resumed: true}
	if !strings.HasPrefix(pk, e.prefix) {
		return nil, a.fail("resume", fmt.Errorf("%w: the record is not of the namespace %q", ErrMoved, e.opt.Namespace))
	}
	return a, a.start(ctx)
}

func (a *attempt) reads(ctx context.Context, until time.Time) (*Record, error) {
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil {
		return nil, a.unavailable("resume", err)
	}
	return rec, nil
}

func (a *attempt) loadInput(ctx context.Context, rec *Record) error {
	if rec.Input == nil || rec.Input.Overflow == nil {
		return nil
	}
	loader, ok := a.store.(BodyLoader)
	if !ok {
		return ErrNotKept
	}
	ctx, cancel := a.within(ctx, a.unbegun())
	defer cancel()
	return loader.LoadBody(ctx, rec)
}

// takeTicket takes the record over. The try is counted in the take-over, so
// that one which dies is counted too.
func (a *attempt) takeTicket(ctx context.Context, rec *Record) (*Record, error) {
	now := a.opt.Now()
	next := taken(rec, a.owner, now, a.leaseEnd(now), a.opt.Retention)
	next.Tries++
	got, l, err := a.commit(ctx, change{prev: rec, next: next}, a.unbegun(), maxRounds)
	switch {
	case err != nil:
		return nil, a.unavailable("take-over", err)
	case l != landed:
		return nil, a.fail("resume", ErrMoved)
	}
	return got, nil
}

// Settlement is an operator's decision about a stuck operation. The zero
// Settlement lets it be tried again. Answer, Result, NotMade and RiskTwice
// exclude each other: of two that contradict each other neither is carried out.
type Settlement struct {
	// Answer ends the operation with this answer, replayed from now on: a stuck
	// one, or one that is open and held by nobody. Jobs that were staged are still
	// delivered.
	Answer *Response

	// Result tells what the call came to whose outcome is unknown (a
	// [NotIdempotent] phase, or one whose provider may have forgotten its key, see
	// [Remembers]), as JSON; NotMade that it had no effect. One of them, or
	// RiskTwice, is needed to try such an operation again.
	Result  json.RawMessage
	NotMade bool

	// RiskTwice lets such a call be made again although it may have been made: it
	// may then have its effect twice.
	RiskTwice bool

	// Seen is a ticket for the record as the operator saw it: if anybody has
	// written it since, the decision may be about something else, and is not
	// carried out. The zero Ticket takes the record as it is.
	Seen Ticket

	// By is who decides, for the record: at most 256 bytes, "" where that is not
	// known.
	By string
}

// Settle carries out an operator's decision about the stuck operation pk. It
// returns [ErrMoved] where that is not stuck (nor, for an answer, abandoned),
// [ErrResult] for a decision that doesn't fit or contradicts itself, and what the
// store returns. Who decided what, and when, stays in the record. The operation is
// then left to its client and the completer as if an attempt had just given it
// back.
func (e *Engine) Settle(ctx context.Context, pk string, s Settlement) error {
	a, err := e.operator(ctx, pk)
	if err != nil {
		return err
	}
	rec, err := a.reads(ctx, a.end())
	fits := rec != nil && (rec.State == Stuck || s.Answer != nil && abandoned(rec, e.opt.Now()))
	switch {
	case err != nil:
		return err
	case rec != nil && s.Seen.Owner != "" && (rec.Owner != s.Seen.Owner || rec.Ver != s.Seen.Ver):
		return a.fail("settle", fmt.Errorf("%w: somebody has written it since it was looked at", ErrMoved))
	case !fits:
		return a.fail("settle", fmt.Errorf("%w: it is not stuck, and has no use for this", ErrMoved))
	}
	if s.Answer != nil {
		if err := s.Answer.check(); err != nil {
			return a.fail("settle", err)
		}
	}
	now := e.opt.Now()
	next, err := settled(rec, s, now)
	if err != nil {
		return a.fail("settle", err)
	}
	if s.Answer != nil {
		answer := *s.Answer
		answer.clean()
		next = finished(next, answer.stored(e.headers), now, e.opt.Retention, e.opt.Tombstone)
		next.Ver = rec.Ver + 1
	}
	next.Owner = a.owner // a late write of the attempt that got stuck must not fit
	_, l, err := a.commit(ctx, change{prev: rec, next: next}, a.end(), maxRounds)
	switch {
	case err != nil:
		return a.unavailable("settle", err)
	case l != landed:
		return a.fail("settle", ErrMoved)
	}
	return nil
}

// abandoned reports whether rec is open, and nobody holds it.
func abandoned(rec *Record, now time.Time) bool {
	return rec.State == Open && !rec.Lease.After(now) && !over(rec.Expires, now)
}

// decisions counts what s says, of what excludes each other.
func (s *Settlement) decisions() (n int) {
	for _, said := range []bool{s.Answer != nil, s.Result != nil, s.NotMade, s.RiskTwice} {
		if said {
			n++
		}
	}
	return n
}

// again is how a call may be made once more.
func (s *Settlement) again() string {
	if s.RiskTwice {
		return "risk of twice"
	}
	return "not made"
}

// maxSettled is how many decisions of operators a record keeps.
const maxSettled = 10

// settled returns rec as it may be tried again. Run is renewed: whoever counts
// from the last attempt must not undo the decision a minute later.
func settled(rec *Record, s Settlement, now time.Time) (*Record, error) {
	r := *rec
	r.State, r.Ver, r.Tries, r.LastErr, r.Run = Open, rec.Ver+1, 0, "", millis(now)
	n := len(rec.Phases)
	begun := n > 0 && rec.Phases[n-1].Intent
	what := "try again"
	switch {
	case s.decisions() > 1:
		return nil, fmt.Errorf("%w: an answer, a result, not made and the risk of twice exclude each other: say one of them", ErrResult)
	case s.Answer != nil:
		what = fmt.Sprintf("answer %d", s.Answer.Status)
	case s.Result != nil && !json.Valid(s.Result):
		return nil, fmt.Errorf("%w: it is not JSON", ErrResult)
	case begun && s.Result != nil:
		r.Phases = append(slices.Clone(rec.Phases[:n-1]), Phase{Name: rec.Phases[n-1].Name, Result: s.Result})
		r.Calls = tally(rec.Calls, []string{skipped}) // it had keys that nobody counted
		r.doubt(nil, time.Time{})
		what = "result of " + rec.Phases[n-1].Name
	case begun && (s.NotMade || s.RiskTwice):
		r.Phases = slices.Clone(rec.Phases[:n-1])
		r.doubt(nil, time.Time{})
		what = s.again() + ": " + rec.Phases[n-1].Name
	case begun:
		return nil, fmt.Errorf("%w: the call of phase %q has an unknown outcome: say what it came to, as JSON, or that it was not made",
			ErrResult, rec.Phases[n-1].Name)
	case (s.NotMade || s.RiskTwice) && len(rec.Doubts) > 0:
		r.doubt(nil, time.Time{})
		what = s.again()
	case s.Result != nil || s.NotMade || s.RiskTwice:
		return nil, fmt.Errorf("%w: no call of this operation has an unknown outcome", ErrResult)
	}
	r.Settled = append(slices.Clone(rec.Settled), Decision{By: truncate(s.By), At: millis(now), What: truncate(what)})
	if n := len(r.Settled); n > maxSettled {
		r.Settled = r.Settled[n-maxSettled:]
	}
	return &r, nil
}
