package idem

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// How many times a write is sent, at most, while its outcome is unknown.
const (
	maxRounds     = 5           // for a write that the attempt can do without
	untilDeadline = math.MaxInt // for a write that must succeed, such as a write after the handler's effect: only the write's deadline ends the tries
)

// writer makes the conditional writes of one owner. If the outcome of a write is
// unknown, writer sends the write again. In this package every write after the claim
// uses a writer, except a completer's first try to take a record over ([store.Taker]).
type writer struct {
	times *times
	owner string // the nonce that each write stores as the record's owner
}

// change is one conditional write.
type change struct {
	prev, next *store.Record
	writes     []Write
	rerun      bool // if true, send returns ErrConflict at once, because the caller then builds a new change
}

// writer.write sends c until its outcome is known. It gives up at the time until,
// or after the given number of rounds. It returns the record as it is after the write,
// and what became of c.
func (w writer) write(ctx context.Context, c change, until time.Time, rounds int) (*store.Record, state.Landing, error) {
	until = w.times.capped(until)
	held, l, err := w.send(ctx, c, until, rounds)
	if err != nil && !time.Now().Before(until) {
		w.times.spent.Store(true)
	}
	return held, l, err
}

// writer.send stamps c.next with w's owner, and sends c with the same limits as write.
// ctx needs no deadline, because until limits each try.
func (w writer) send(ctx context.Context, c change, until time.Time, rounds int) (*store.Record, state.Landing, error) {
	state.Stamp(c.next, c.prev, w.owner)
	var err error
	for round := range rounds {
		if round > 0 && !w.times.pause(ctx, round, until) {
			break
		}
		var held *store.Record
		var l state.Landing
		if held, l, err = w.once(ctx, c, until); err == nil && l != state.NotYet {
			return held, l, nil
		}
		blind := errors.Is(err, errUnread) && rounds < untilDeadline
		if err != nil && (blind || c.rerun && errors.Is(err, ErrConflict) || !store.Passing(err)) {
			break
		}
		// The write may not have been applied, so send the same bytes again. If the first
		// copy is applied before the second copy arrives, the condition refuses the second
		// copy. Land then finds that the first copy was applied.
	}
	if err == nil {
		err = store.ErrUnknown
	}
	return nil, 0, err
}

// writer.once sends c a single time. If the store doesn't know the outcome, once
// reads the record. The time limit leaves time for another try ([half]).
func (w writer) once(ctx context.Context, c change, until time.Time) (*store.Record, state.Landing, error) {
	ctx, cancel := w.times.within(ctx, earlier(until, time.Now().Add(half(until))))
	defer cancel()
	held, err := w.times.core.store.Commit(ctx, store.Commit{Prev: c.prev, Next: c.next, Writes: c.writes})
	switch {
	case err == nil && held == nil:
		return c.next, state.Landed, nil
	case err == nil:
		return held, state.Land(held, c.prev, c.next, w.owner), nil
	case !errors.Is(err, store.ErrUnknown):
		return nil, 0, err
	}
	current, lerr := w.times.core.store.Load(ctx, c.next.PK)
	if lerr != nil {
		return nil, 0, errors.Join(err, errUnread, lerr)
	}
	return current, state.Land(current, c.prev, c.next, w.owner), nil
}

// writer.read returns the current record with the partition key pk, or nil if there is
// none. The parameter until is the read's deadline.
func (w writer) read(ctx context.Context, pk string, until time.Time) (*store.Record, error) {
	ctx, cancel := w.times.within(ctx, until)
	defer cancel()
	return w.times.core.store.Load(ctx, pk)
}

// countJobs reads rec's record again and returns how many jobs it has now. Jobs that
// were delivered since rec was read no longer count. If the record can't be read,
// countJobs returns the number of jobs in rec.
func (w writer) countJobs(ctx context.Context, rec *store.Record) int {
	if now, err := w.read(ctx, rec.PK, w.times.writeDeadline(rec)); err == nil && now != nil {
		return len(now.Jobs)
	}
	return len(rec.Jobs)
}
