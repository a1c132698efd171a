package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// GiveUp marks an abandoned operation as stuck, for what nobody can complete:
// it has no stored request. Errors are those of [Engine.Resume], but anybody may
// give up another handler's operation.
func (e *Engine) GiveUp(ctx context.Context, t jobs.Ticket, why string) error {
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
func (e *Engine) pickUp(ctx context.Context, t jobs.Ticket) (*attempt, *store.Record, error) {
	a, err := e.operator(ctx, t.PK)
	if err != nil {
		return nil, nil, err
	}
	rec, err := a.reads(ctx, a.unbegun())
	if err != nil {
		return nil, nil, err
	}
	if why := state.Fits(rec, t.Owner, t.Ver, e.opt.Now()); why != state.Good {
		return nil, nil, a.refused(rec, why)
	}
	return a, a.took(rec), nil
}

// takeTicket takes the record over, and counts the try.
func (a *attempt) takeTicket(ctx context.Context, rec *store.Record) (*store.Record, error) {
	now := a.opt.Now()
	next := state.TakenUp(rec, now, a.leaseEnd(now), a.opt.Retention)
	got, l, err := a.write(ctx, change{prev: rec, next: next}, a.unbegun(), maxRounds)
	switch {
	case err != nil:
		return nil, a.unavailable("take-over", err)
	case l != state.Landed:
		return nil, a.fail("resume", jobs.ErrMoved)
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
	Seen jobs.Ticket

	// By is who decides, for the record: at most 256 bytes, "" where that is not
	// known.
	By string
}

// Settle carries out an operator's decision about the stuck operation pk. It
// returns [jobs.ErrMoved] where that is not stuck (nor, for an answer, abandoned),
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
	decision := state.Settlement{Answer: s.Answer, Result: s.Result, NotMade: s.NotMade, RiskTwice: s.RiskTwice, By: s.By}
	switch {
	case err != nil:
		return err
	case rec != nil && s.Seen.Owner != "" && (rec.Owner != s.Seen.Owner || rec.Ver != s.Seen.Ver):
		return a.fail("settle", fmt.Errorf("%w: somebody has written it since it was looked at", jobs.ErrMoved))
	case !state.Settleable(rec, decision, e.opt.Now()):
		return a.fail("settle", fmt.Errorf("%w: it is not stuck, and has no use for this", jobs.ErrMoved))
	}
	if s.Answer != nil {
		if err := checkStatus(s.Answer); err != nil {
			return a.fail("settle", err)
		}
	}
	now := e.opt.Now()
	next, err := state.Settled(rec, decision, now)
	if err != nil {
		return a.fail("settle", fmt.Errorf("%w: %w", ErrResult, err))
	}
	if s.Answer != nil {
		answer := *s.Answer
		clean(&answer)
		next = state.Finished(next, storedPart(answer, e.headers), now, e.opt.Retention, e.opt.Tombstone)
	}
	// Under this attempt's owner: a late write of the attempt that got stuck must not fit.
	_, l, err := a.write(ctx, change{prev: rec, next: next}, a.end(), maxRounds)
	switch {
	case err != nil:
		return a.unavailable("settle", err)
	case l != state.Landed:
		return a.fail("settle", jobs.ErrMoved)
	}
	return nil
}
