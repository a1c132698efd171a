package idem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// EndLease ends the lease of the attempt that holds the operation of the ticket seen,
// for an operator who knows that the attempt will not come back: the client's retry
// then continues at once. An attempt that works all the same can write nothing more,
// but its calls may still go out.
//
// EndLease returns [jobs.ErrMoved] if the record has been written since seen was made,
// or if no attempt holds it: then nothing was changed. It returns [store.ErrUnknown] if
// neither an answer nor the record tells whether this was decided. The record keeps who
// decided.
func (e *Engine) EndLease(ctx context.Context, seen jobs.Ticket, by string) error {
	return e.core.decide(ctx, "end lease", seen.PK, &seen, func(rec *store.Record, now time.Time) (*store.Record, error) {
		return fitting(state.LeaseEnded(rec, now, by))
	})
}

// Loss says which losses an operator accepts; [Engine.Forget] refuses the others.
type Loss = state.Loss

// Forget frees the key of the operation of the ticket seen: the record expires, and a
// request with the key runs anew, as another operation with other derived keys.
// Without accepted, Forget refuses an operation that an attempt holds, that has
// committed work or calls in doubt, or undelivered jobs. Errors are those of EndLease.
//
// Forget returns the ids of the undelivered jobs that it has taken from the record. A ticket,
// sweep, redrive or later claim doesn't find them there. A delivery that is under way goes on,
// and a drain that is behind may still deliver a job as the table's stream shows it staged,
// unless the job is parked or has a time.
func (e *Engine) Forget(ctx context.Context, seen jobs.Ticket, by string, accepted Loss) (lost []string, _ error) {
	err := e.core.decide(ctx, "forget", seen.PK, &seen, func(rec *store.Record, now time.Time) (*store.Record, error) {
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

// Erase removes caller and answer of the finished operation of the ticket seen, for a
// person who asks for it. Its key stays taken: a retry hears 410, as of an answer that is
// not kept, and another request with the key 422, until the record expires.
//
// Erase returns [jobs.ErrMoved] if the record has been written since seen was made, has not
// finished, has jobs that are not delivered, or is erased already; and
// [store.ErrSealed] if the contents are sealed and can't be opened.
func (e *Engine) Erase(ctx context.Context, seen jobs.Ticket, by string) error {
	return e.core.decide(ctx, "erase", seen.PK, &seen, func(rec *store.Record, now time.Time) (*store.Record, error) {
		return fitting(state.Erased(rec, now, by))
	})
}

// fitting is a change that an operator's decision makes, or why it doesn't fit the record.
func fitting(next *store.Record, err error) (*store.Record, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: %w", jobs.ErrMoved, err)
	}
	return next, nil
}
