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
}

// TicketFor returns a ticket for r as it is.
func TicketFor(r *Record) Ticket { return Ticket{PK: r.PK, Owner: r.Owner, Ver: r.Ver} }

// Resume takes over an operation that its attempt has abandoned, and brings it
// to an end with the request stored in its record ([Options.Resumable]). It is
// for completers: a client's retry needs none of it. fn gets that request and
// may set its Answer; what it returns is treated as [Engine.Do] does.
//
// A nil error says that the operation has its answer now. [ErrMoved] says that
// there is nothing to do any more, [ErrInFlight] (with RetryAfter) that the
// lease is not over yet, [ErrNotKept] that there is no stored request,
// or none that can be read: its client, who has it, may come back for
// [Options.Retention], and only then is it stuck,
// [ErrStuck] that it has been taken up [Options.MaxTries] times and waits for
// an operator. Any other error is a failed try: the record is released, and a
// later ticket may do better. The handler's own error comes as its text.
func (e *Engine) Resume(ctx context.Context, t Ticket, fn func(context.Context, *Request) (Response, error)) (Result, error) {
	a, rec, err := e.pickUp(ctx, t)
	if err != nil {
		return Result{}, err
	}
	if rec.Input == nil {
		return Result{}, a.fail("resume", fmt.Errorf("%w: the request was not stored with its claim", ErrNotKept))
	}
	missing := a.loadInput(ctx, rec)
	if missing != nil && !errors.Is(missing, ErrNotKept) {
		return Result{}, a.unavailable("resume", missing)
	}
	if missing != nil && leftToClient(rec, e.opt.Now(), e.opt.Retention) {
		return Result{}, a.fail("resume", fmt.Errorf("%w: the stored request is not there; it is left to its client, who has it", missing))
	}
	rec, err = a.takeTicket(ctx, rec)
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

// GiveUp marks an abandoned operation as stuck, for what nobody can complete:
// it has no stored request. Errors are those of [Engine.Resume].
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
	switch {
	case err != nil:
		return nil, nil, err
	case rec == nil || rec.Owner != t.Owner || rec.Ver != t.Ver || rec.State != Open || over(rec.Expires, e.opt.Now()):
		return nil, nil, a.fail("resume", ErrMoved)
	case rec.Lease.After(e.opt.Now()):
		inFlight := a.fail("resume", ErrInFlight)
		inFlight.RetryAfter = rec.Lease.Sub(e.opt.Now())
		return nil, nil, inFlight
	}
	a.scope, a.req.Route = rec.Scope, rec.Route
	return a, rec, nil
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
	if got != next && got.Input != nil && next.Input != nil {
		got.Input.Body = next.Input.Body // read before
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
