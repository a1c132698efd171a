package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// claiming claims the record of a request's key. The result is a record that this attempt
// holds (verdict Own or TakeOver), or another attempt's record and the verdict about it.
type claiming struct {
	core   *core
	ask    *ask
	times  *times
	watch  *watch
	writer writer

	id        string        // id of the operation if this attempt begins it
	barred    *Error        // why the request must not begin an operation; nil if it may
	seat      *seat         // seat in the caller's quota; nil unless one is taken
	hasRecord bool          // the store has returned a record of the key, from a read or a refused claim
	foundFree bool          // a read before the claim has found the key free, at both places
	replaces  *store.Record // the freed record that the read before the claim has found: the claim replaces it
}

// claiming.enter reads the record first if the request is probably a repetition, since
// a read costs less than a refused claim. If that guess is wrong, the only harm is a
// higher cost. For a new operation, enter then asks the quota, and claims. c.seat.leave
// must be called at the attempt's end.
func (c *claiming) enter(ctx context.Context) (rec *store.Record, v state.Verdict, err error) {
	v = state.Claimable
	if c.barred == nil && (c.ask.req.ReadFirst || retrysign.In(c.ask.req.Header)) {
		rec, v, err = c.readFirst(ctx)
	}
	if err == nil && v == state.Claimable {
		rec, v, err = c.begin(ctx)
	}
	c.watch.finds(rec)
	return rec, v, err
}

// claiming.begin begins a new operation if the request and the quota allow it. If the
// key already has a record, the operation is not new, and begin returns the record and
// the verdict about it.
func (c *claiming) begin(ctx context.Context) (*store.Record, state.Verdict, error) {
	if rec, v, err := c.admit(ctx); err != nil || v != state.Claimable {
		return rec, v, err
	}
	rec, v, err := c.claim(ctx)
	c.seat.settle(v, err)
	return rec, v, err
}

// claiming.admit decides whether the request may begin a new operation. If there is a
// quota, and the operation isn't nested, admit takes a seat. The verdict Claimable
// allows the claim. Any other verdict is about a record of the key: the operation is
// not new.
func (c *claiming) admit(ctx context.Context) (*store.Record, state.Verdict, error) {
	if c.barred != nil {
		return c.known(ctx, c.barred)
	}
	if c.core.opt.Quota == nil || nested(ctx) {
		return nil, state.Claimable, nil
	}
	until := c.claimDeadline()
	sctx, cancel := c.times.within(ctx, until)
	defer cancel()
	refusal := c.takeSeat(sctx, until)
	switch {
	case refusal == nil:
		return nil, state.Claimable, nil
	case c.foundFree:
		return nil, 0, refusal
	}
	return c.known(ctx, refusal)
}

// claiming.known returns the key's record and the verdict about it, for a request that
// must not begin an operation. If there is no record, known returns refusal as the
// error.
func (c *claiming) known(ctx context.Context, refusal *Error) (*store.Record, state.Verdict, error) {
	home := c.ask.home.pk
	refusal.Record = redact.Record(home)
	until, short := c.times.handlerEnd, c.times.short()
	if short != nil {
		until = c.times.lastCall // too little time for an operation may be enough for a read
	}
	until = earlier(until, time.Now().Add(maxClaim))
	ctx, cancel := c.times.within(ctx, until)
	defer cancel()
	var rec *store.Record
	var v state.Verdict
	var err error = recordError(refusal.Op, home, ErrUnavailable)
	if time.Now().Before(until) {
		lctx, sp := c.watch.step(ctx, trace.Read, "")
		if rec, v, err = c.judgeAt(lctx, refusal.Op, home, until); err == nil {
			rec, v, err = c.elsewhere(lctx, refusal.Op, rec, v, until)
		}
		sp.done(err)
	}
	switch {
	case err == nil && v == state.Claimable:
		return nil, 0, refusal
	case short != nil && errors.Is(err, ErrUnavailable):
		c.barred = recordError("start", home, &recordUnread{short})
		return nil, 0, c.barred
	}
	return rec, v, err
}

// readFirst reads the record before the claim, by a consistent read. A record that
// would refuse the claim is judged or taken over, as after a refused claim. In all
// other cases the verdict is Claimable, and the claim decides: the read failed, there
// is no record, or the record would not refuse the claim. If readFirst learns that
// there is a record, it sets c.hasRecord, so that ModeOpen doesn't run the request
// without protection.
func (c *claiming) readFirst(ctx context.Context) (found *store.Record, v state.Verdict, err error) {
	until := c.claimDeadline()
	ctx, cancel := c.times.within(ctx, until)
	defer cancel()
	ctx, sp := c.watch.step(ctx, trace.Read, "")
	rec, err := c.readQuickly(ctx, until)
	if rec == nil {
		c.foundFree = err == nil
		sp.done(err)
		return nil, state.Claimable, nil
	}
	defer func() { sp.done(err) }()
	found, v, away, err := c.resolve(ctx, rec, until)
	if err != nil || v != state.Claimable {
		return found, v, err
	}
	c.foundFree = away || c.ask.other == nil
	if !away && found != nil && state.Freed(found) {
		c.replaces = found
	}
	return nil, state.Claimable, nil
}

// readQuickly reads the record in at most half of the time until the deadline, and
// leaves the other half for the claim. If the read fails although the record exists,
// readQuickly sets c.hasRecord.
func (c *claiming) readQuickly(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, half(until))
	defer cancel()
	rec, err := c.either(ctx)
	if err != nil {
		c.hasRecord = c.hasRecord || rec != nil || errors.Is(err, ErrCorrupt) // the record exists, but can't be decrypted or decoded
		return nil, err
	}
	return rec, nil
}
