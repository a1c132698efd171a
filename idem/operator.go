package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// MarkStuck marks an abandoned operation as stuck if nobody can complete the
// operation, because its request is not stored. If nothing was done under its key,
// MarkStuck frees the key instead, and returns [jobs.ErrMoved]. Errors are those of
// [Engine.Resume], but any process may give up another handler's operation.
func (e *Engine) MarkStuck(ctx context.Context, t jobs.Ticket, why string) error {
	a, rec, err := e.core.pickUp(ctx, t)
	if err != nil {
		return err
	}
	_, err = a.watch.watched(ctx, func(ctx context.Context) (Result, error) {
		taken, err := a.takeTicket(ctx, rec)
		if err != nil {
			return Result{}, err
		}
		return Result{}, a.endTries(ctx, a.run(taken, a.writer()), why)
	})
	if errors.Is(err, ErrStuck) {
		return nil
	}
	return err
}

// Settlement is an operator's decision about a stuck operation. The zero
// Settlement allows another try. Answer, Result, NotMade, RiskTwice and Ask exclude
// each other: Settle refuses two of them.
type Settlement struct {
	// Answer ends a stuck operation, or an open operation that no attempt holds.
	// Later requests replay the answer, for the retention of the program that last
	// took the operation, as its record has it. Staged jobs are still delivered.
	Answer *Response

	// Result is the result, as JSON, of the call with an unknown outcome (a
	// [NotIdempotent] phase, or a phase whose provider may have forgotten its key,
	// see [Remembers]). NotMade means that the call had no effect. Such an operation
	// needs Result, NotMade, RiskTwice or Ask for another try.
	Result  json.RawMessage
	NotMade bool

	// RiskTwice allows another call although the first call may have been made: the
	// effect may then happen twice.
	RiskTwice bool

	// Ask lets a completer take up an operation with a call in doubt, whose phase looks the
	// call up ([LookUp]). In a program whose phase has no look-up, the operation is stuck
	// again. Ask needs a stored request.
	Ask bool

	// Seen is a ticket for the record as the operator saw the record. If the record
	// has been written since, Settle refuses the decision. The zero Ticket accepts
	// the record as it is.
	Seen jobs.Ticket

	// By names the operator, for the record: at most 256 bytes, "" if unknown.
	By string
}

// Settle carries out an operator's decision about the stuck operation pk. Settle
// returns [jobs.ErrMoved] if the operation is not stuck (nor, for an answer,
// abandoned), [ErrResult] if the decision doesn't fit or contradicts itself,
// [store.ErrUnknown] as [Engine.EndLease] does, and the store's errors. The record keeps
// the decision, its author and its time.
// Afterwards the client and the completer may continue as after a release by an
// attempt.
func (e *Engine) Settle(ctx context.Context, pk string, s Settlement) error {
	decision := state.Settlement{Answer: s.Answer, Result: s.Result, NotMade: s.NotMade, RiskTwice: s.RiskTwice, Ask: s.Ask, By: s.By}
	var seen *jobs.Ticket
	if s.Seen.Owner != "" {
		seen = &s.Seen
	}
	return e.core.decide(ctx, "settle", pk, seen, func(rec *store.Record, now time.Time) (*store.Record, error) {
		if !state.Settleable(rec, decision, now) {
			return nil, fmt.Errorf("%w: the operation is not stuck", jobs.ErrMoved)
		}
		if s.Answer != nil {
			if err := checkStatus(s.Answer); err != nil {
				return nil, err
			}
		}
		next, err := state.Settled(rec, decision, now)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrResult, err)
		}
		if s.Answer != nil {
			answer := *s.Answer
			clean(&answer)
			next = state.Finished(next, storedPart(answer, e.core.headers), now)
		}
		return next, nil
	})
}
