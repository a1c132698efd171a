package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Settlement is an operator's decision about a stuck operation. The zero Settlement
// allows another try. Settle accepts at most one of Answer, Result, NotMade, RiskTwice
// and Ask.
type Settlement struct {
	// Answer ends a stuck operation, or an open operation that no attempt holds. Later
	// requests get Answer as a replay, for the [Options.Retention] of the program that
	// last claimed or took over the record. Staged jobs are still delivered.
	Answer *Response

	// Result is the result, as JSON, of a phase whose call has an unknown outcome. The
	// call may be [NotIdempotent], or the provider may have forgotten its key
	// ([Remembers]). NotMade means that the call had no effect. If the operation is
	// stuck in such a phase, Settle refuses the zero Settlement.
	Result  json.RawMessage
	NotMade bool

	// RiskTwice allows another call although the first call may have been made: the
	// effect may then happen twice.
	RiskTwice bool

	// Ask lets a completer take up an operation with a call in doubt, and look up the
	// call ([LookUp]). If the program's phase has no look-up, the operation becomes
	// stuck again. But if the call may still be repeated with its key, the completer
	// repeats the call and doesn't look it up. Settle refuses Ask if the request isn't
	// stored.
	Ask bool

	// Seen is a ticket for the record that the operator saw. If the record has been written
	// since, Settle refuses the decision. The zero Ticket accepts the record as it is.
	Seen jobs.Ticket

	// By is the operator's name, to be stored in the record: at most 256 bytes, "" if
	// unknown.
	By string
}

// Settle carries out an operator's decision about a stuck operation. pk is the
// partition key of the operation's record. The record stores the decision, its author
// and its time. After an Answer the operation is finished. After any other decision,
// the client or a completer may continue the operation.
//
// If the operation isn't stuck, Settle returns [jobs.ErrMoved], with two exceptions. An
// Answer may also end an abandoned operation. A Result may also correct the last Result
// that people gave, as long as no attempt can have made another call since then.
//
// Settle returns [ErrResult] if s doesn't fit the operation, or contains more than one
// decision. Settle returns [store.ErrUnknown] if it isn't known whether the decision
// was stored, and [ErrNoTime] if ctx ends within half a second. Other errors are the
// store's.
func (e *Engine) Settle(ctx context.Context, pk string, s Settlement) error {
	decision := state.Settlement{Answer: s.Answer, Result: s.Result, NotMade: s.NotMade, RiskTwice: s.RiskTwice, Ask: s.Ask, By: s.By}
	var seen *jobs.Ticket
	if s.Seen.Owner != "" {
		seen = &s.Seen
	}
	return e.core.decide(ctx, "settle", pk, seen, false, func(rec *store.Record, now time.Time) (*store.Record, error) {
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

// EndLease ends the lease of the attempt that holds an operation. seen is a ticket for
// the operation. Use EndLease if you know that the attempt will not come back. Then the
// client's retry needn't wait for the end of the lease. If the attempt still works, it
// can no longer write, but it may still send calls to other systems.
//
// EndLease returns [jobs.ErrMoved] and changes nothing if the record has no lease, or
// has been written since seen was made. EndLease returns [store.ErrUnknown] if it isn't
// known whether the lease was ended. The parameter by is the operator's name, which the
// record stores.
func (e *Engine) EndLease(ctx context.Context, seen jobs.Ticket, by string) error {
	return e.core.decide(ctx, "end lease", seen.PK, &seen, false, func(rec *store.Record, now time.Time) (*store.Record, error) {
		return fitting(state.LeaseEnded(rec, now, by))
	})
}

// Loss says which losses an operator accepts. [Engine.Forget] refuses to cause other losses.
type Loss = state.Loss

// Forget frees the key of an operation. seen is a ticket for the operation. The record
// expires, and the next request with the key begins another operation with other
// derived keys. Forget refuses an operation that an attempt holds, that has finished,
// or that has committed phases, calls in doubt or undelivered jobs. Forget also refuses
// an operation whose last attempt never gave up its lease, even if the lease is over:
// the attempt may have had effects ([Loss].Work). To forget an operation nevertheless,
// name the losses that you accept, in the parameter accepted. Forget returns
// [jobs.ErrMoved] if it refuses, or if the record has been written since seen was made.
// Forget returns [store.ErrUnknown] if it isn't known whether the key was freed.
//
// The result lost has the ids of the undelivered jobs that Forget has removed from the
// record. No ticket, sweep, redrive or later claim finds these jobs any more. But a
// delivery that has begun continues. A drain that is behind may also deliver such a job
// from the table's stream, unless the job is parked or is a later job.
func (e *Engine) Forget(ctx context.Context, seen jobs.Ticket, by string, accepted Loss) (lost []string, _ error) {
	err := e.core.decide(ctx, "forget", seen.PK, &seen, false, func(rec *store.Record, now time.Time) (*store.Record, error) {
		lost = nil
		for _, name := range slices.Sorted(maps.Keys(rec.Jobs)) {
			lost = append(lost, state.JobID(rec.ID, name))
		}
		return fitting(state.Forgotten(rec, now, by, accepted))
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// Erase removes the caller, the answer and the texts of errors from the record of a
// finished operation, when a person demands erasure. seen is a ticket for the
// operation. The key stays taken until the record expires: a retry gets 410
// ([ErrNotKept]), and a different request with the key gets 422. If the key is free,
// and the record isn't deleted yet, Erase also removes the stored request and the
// results of phases.
//
// Erase returns [jobs.ErrMoved] in four cases: the record has been written since seen
// was made; the operation isn't finished, and its key isn't free; the record has
// undelivered jobs; or the record is erased already. Erase returns [store.ErrSealed] if
// the record's contents are sealed and can't be opened.
func (e *Engine) Erase(ctx context.Context, seen jobs.Ticket, by string) error {
	return e.core.decide(ctx, "erase", seen.PK, &seen, true, func(rec *store.Record, now time.Time) (*store.Record, error) {
		return fitting(state.Erased(rec, now, by))
	})
}

// fitting adds [jobs.ErrMoved] to err, which says why the operator's decision doesn't
// fit the record.
func fitting(next *store.Record, err error) (*store.Record, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: %w", jobs.ErrMoved, err)
	}
	return next, nil
}

// core.decide writes an operator's decision. The function next returns the record with
// the decision. If the record was written after the ticket seen was made, decide
// returns [jobs.ErrMoved]. seen may be nil. open says that next looks at the record's
// contents: decide then returns [store.ErrSealed] if the contents can't be opened.
func (e *core) decide(ctx context.Context, op, pk string, seen *jobs.Ticket, open bool, next func(*store.Record, time.Time) (*store.Record, error)) error {
	a, err := e.unattended(ctx, pk)
	if err != nil {
		return err
	}
	read := a.readsClosed
	if open {
		read = a.reads
	}
	rec, err := read(ctx, a.times.lastCall)
	for round := 1; err == nil; round++ {
		if seen != nil && (rec == nil || rec.Owner != seen.Owner || rec.Ver != seen.Ver) {
			return recordError(op, pk, fmt.Errorf("%w: somebody has written it since it was read", jobs.ErrMoved))
		}
		to, nerr := next(rec, e.opt.Now())
		if nerr != nil {
			return recordError(op, pk, nerr)
		}
		to.Settled[len(to.Settled)-1].ID = a.ask.owner // HasDecision finds the decision by this id
		// The write makes this attempt the owner. The store then refuses a late write
		// of the attempt that held the record.
		held, _, werr := a.writer().write(ctx, change{prev: rec, next: to, rerun: true}, a.times.lastCall, maxRounds)
		if werr != nil {
			if held, err = read(ctx, a.times.lastCall); err != nil {
				return unavailable(op, pk, fmt.Errorf("%w: %w", store.ErrUnknown, errors.Join(werr, err)))
			}
		}
		moved := held == nil || held.Owner != rec.Owner || held.Ver != rec.Ver // if true, the store refuses a late copy of this write
		switch made, known := state.HasDecision(held, rec, a.ask.owner); {
		case made:
			return nil
		case moved && known:
			return recordError(op, pk, fmt.Errorf("%w: somebody has written it since it was read", jobs.ErrMoved))
		case moved:
			return recordError(op, pk, fmt.Errorf("%w: the record can't tell any more whether this was decided", store.ErrUnknown))
		case !errors.Is(werr, ErrConflict) || round == maxRounds || !a.times.pause(ctx, round, a.times.lastCall):
			return unavailable(op, pk, werr)
		}
		rec = held // the record's jobs have changed, so next decides again
	}
	return err
}

// attempt.readsClosed reads the record for a change that perhaps doesn't need the record's
// contents. If the contents are sealed and can't be opened, readsClosed returns the record
// without them. If the change needs the contents after all, the store refuses the write.
func (a *attempt) readsClosed(ctx context.Context, until time.Time) (*store.Record, error) {
	rec, err := a.writer().read(ctx, a.ask.home.pk, until)
	if err != nil && (rec == nil || !errors.Is(err, store.ErrSealed)) {
		return nil, unavailable("read", a.ask.home.pk, err)
	}
	return rec, nil
}

// MarkStuck marks an abandoned operation as stuck. Use MarkStuck for operations whose
// request isn't stored, since no completer can finish them. If nothing was done under
// the key, MarkStuck frees the key instead, and returns [jobs.ErrMoved].
// [Engine.Resume] describes the other errors. Unlike Resume, MarkStuck accepts the
// operations of any handler.
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

// pickUp reads the record of a ticket and checks that the ticket is still valid.
func (e *core) pickUp(ctx context.Context, t jobs.Ticket) (*attempt, *store.Record, error) {
	a, err := e.unattended(ctx, t.PK)
	if err != nil {
		return a, nil, err
	}
	rec, err := a.reads(ctx, a.times.handlerEnd)
	if err != nil {
		return a, nil, err
	}
	if why := state.Fits(rec, t.Owner, t.Ver, e.opt.Now()); why != state.Good {
		return a, nil, a.unfit(rec, why)
	}
	return a, a.took(rec), nil
}

// takeTicket takes the record over to mark it as stuck, and counts the try. The record
// keeps its own retention, because the worker may have another Options.Retention than
// the handler's program.
func (a *attempt) takeTicket(ctx context.Context, rec *store.Record) (*store.Record, error) {
	now := a.core.opt.Now()
	next := state.TakenUp(rec, now, a.times.leaseEnd(now), rec.Retention)
	got, l, err := a.writer().write(ctx, change{prev: rec, next: next}, a.times.handlerEnd, maxRounds)
	switch {
	case err != nil:
		return nil, unavailable("take-over", a.ask.home.pk, err)
	case l != state.Landed:
		return nil, recordError("resume", a.ask.home.pk, jobs.ErrMoved)
	}
	return got, nil
}
