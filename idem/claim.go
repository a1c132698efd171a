package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// maxClaimRounds limits the tries of a claim whose record keeps changing.
const maxClaimRounds = 5

// claiming.claim claims the key with a new record. If the key is taken, claim returns
// the key's record and the verdict about it.
func (c *claiming) claim(ctx context.Context) (rec *store.Record, v state.Verdict, err error) {
	ctx, sp := c.watch.step(ctx, trace.Claim, "")
	t := tries{until: c.claimDeadline(), begun: c.core.opt.Now().Round(0), replaces: c.replaces}
	ctx, cancel := c.times.within(ctx, t.until)
	defer cancel()
	defer func() {
		if rec == nil {
			c.times.ranOut(ctx)
		}
		if sp.end != nil {
			c.watch.claimEnds(sp, rec, v, err)
		}
	}()
	for round := range maxClaimRounds {
		if round > 0 && !t.noPause && !pause(ctx, round) {
			break
		}
		rec, v, err = c.once(ctx, &t)
		if err != nil || v != state.Claimable {
			return rec, v, err
		}
	}
	if t.cause != nil { // the store failed although the key was free, so nothing is in flight
		return nil, 0, unavailable("claim", c.ask.home.pk, t.cause)
	}
	return nil, state.InFlight, nil
}

// tries is the state that a claim keeps from try to try.
type tries struct {
	until time.Time // deadline of the claim's calls to the store
	begun time.Time // wall time of the first try with the present nonce (owner); the wall clock advances even while a sandbox is frozen
	cause error     // the store's error in the most recent try; nil if the store didn't fail

	replaces *store.Record // the freed record that the next try replaces
	noPause  bool          // the previous try found a freed record, which the next try can replace without a pause
	there    *store.Record // an expired or freed record at the other place, which the next try fences
	fenced   *store.Record // the record at the other place after it was fenced
}

// claiming.once makes one try to claim the record. If the verdict is Claimable, the next
// try may succeed.
func (c *claiming) once(ctx context.Context, t *tries) (rec *store.Record, v state.Verdict, err error) {
	t.noPause, t.cause = false, nil
	if t.there != nil {
		if t.fenced, err = c.bury(ctx, t.there, t.until); err != nil {
			return nil, 0, err
		}
		t.there = nil
	}
	now := c.core.opt.Now()
	if now.Round(0).Sub(t.begun) > maxClaim || t.replaces != nil && t.replaces.ID == c.id {
		// An earlier try with this nonce may have been applied, and its record may have
		// expired or been freed since. This attempt must not take that record for its
		// own claim, so it continues with another nonce.
		c.writer.owner, c.id, t.begun = rand.Text(), rand.Text(), now.Round(0)
	}
	next := c.fresh(now)
	for _, r := range []*store.Record{t.replaces, t.fenced} {
		if r == nil {
			continue
		}
		// Keep the decision by which an operator freed the key. If the write of the
		// decision got no answer, core.decide looks for the decision in the new record.
		if by := state.ForgottenBy(r); by != nil {
			next.Settled = []store.Decision{*by}
		}
	}
	state.Stamp(next, nil, c.writer.owner)
	found, err := c.core.store.Claim(ctx, store.Claim{Next: next, Now: now, Seen: t.replaces, Beside: c.ask.beside(), Fenced: t.fenced})
	switch {
	case err == nil && found == nil:
		return next, state.Own, nil
	case errors.Is(err, ErrConflict):
		return nil, state.Claimable, nil // another process is writing this record
	case errors.Is(err, ErrCorrupt):
		return nil, 0, recordError("claim", c.ask.home.pk, err)
	case err != nil:
		// The error doesn't show whether the claim was applied. Even if the store
		// refused the call, the store's client may have sent the claim twice, and the
		// first copy may have been applied. The current record shows the outcome.
		t.cause = err
		if found, err = c.load(ctx, err); err != nil {
			return nil, 0, err
		}
	}
	rec, v, away, err := c.resolve(ctx, found, t.until)
	switch {
	case err != nil || v != state.Claimable:
		return rec, v, err
	case away:
		t.there, t.fenced = rec, nil
	case rec != nil && state.Freed(rec):
		t.replaces, t.noPause = rec, true
	default:
		t.replaces = nil
	}
	return nil, state.Claimable, nil
}

// claimDeadline returns the deadline of a claim's calls to the store.
func (c *claiming) claimDeadline() time.Time {
	return earlier(c.times.handlerEnd, time.Now().Add(maxClaim))
}

// claiming.fresh returns the unwritten record of a new operation.
func (c *claiming) fresh(now time.Time) *store.Record {
	q, opt := c.ask, &c.core.opt
	r := store.Record{
		PK: q.home.pk, ID: c.id, Fingerprint: q.print, Secret: q.secret, Scheme: c.core.scheme, Route: q.req.Route, Scope: q.home.scope,
		Handler: q.req.Handler, Tenant: q.req.Tenant, DeliveryKey: q.req.DeliveryKey, Trace: c.watch.course.own, Retention: c.core.retention,
	}
	if q.input != nil {
		r.Input = new(*q.input) // a copy, since the store moves a large body out of the Input that it gets
	}
	if opt.CallsOut {
		r.Keep, r.Mark = store.KeepOpen, state.AnyCall
	}
	return state.Claimed(r, now, c.times.leaseEnd(now))
}

// claiming.load reads the record after a claim whose outcome is unknown. Either this
// claim has written the record, or the record existed before and the claim was refused.
// If there is no record, the claim was not applied, and load returns an error.
func (c *claiming) load(ctx context.Context, cause error) (*store.Record, error) {
	rec, err := c.either(ctx)
	if err == nil && rec == nil {
		err = errors.New("not applied")
	}
	if err != nil {
		return nil, unavailable("claim", c.ask.home.pk, errors.Join(cause, err))
	}
	return rec, nil
}

// claiming.resolve judges the record that the claim found. If the record is open and no
// attempt holds it, resolve takes the record over. If another request has the record at
// home, resolve also looks at the key's other place (if the key has one). The result
// away tells whether the verdict is about the other place.
func (c *claiming) resolve(ctx context.Context, found *store.Record, until time.Time) (rec *store.Record, v state.Verdict, away bool, err error) {
	away = c.ask.away(found.PK)
	rec, v, err = c.judgeOrTakeOver(ctx, found, until)
	if v == state.Mismatch && !away {
		rec, v, err = c.elsewhere(ctx, "claim", rec, v, until)
		away = rec != nil && c.ask.away(rec.PK)
	}
	return rec, v, away, err
}

// judgeAt reads the record at pk, and calls judgeOrTakeOver.
func (c *claiming) judgeAt(ctx context.Context, op, pk string, until time.Time) (*store.Record, state.Verdict, error) {
	found, err := c.core.store.Load(ctx, pk)
	if err != nil {
		return nil, 0, unavailable(op, pk, err)
	}
	return c.judgeOrTakeOver(ctx, found, until)
}

// judgeOrTakeOver judges the record found, and takes the record over if it is open and no
// attempt holds it. If too little time is left to take it over, the verdict is TooSoon.
func (c *claiming) judgeOrTakeOver(ctx context.Context, found *store.Record, until time.Time) (*store.Record, state.Verdict, error) {
	v, err := c.judge(found)
	if v == state.TakeOver && c.times.short() != nil {
		v = state.TooSoon
	}
	if v != state.TakeOver {
		return found, v, err
	}
	now := c.core.opt.Now()
	next := state.TakenByClient(found, now, c.times.leaseEnd(now), c.core.retention, c.supplied(found.Input), c.ask.req.Handler)
	rec, l, err := c.writer.write(ctx, change{prev: found, next: next}, until, maxRounds)
	switch {
	case errors.Is(err, ErrConflict):
		return found, state.InFlight, nil // another process is writing this record
	case err != nil:
		return nil, 0, unavailable("take-over", found.PK, err)
	case l == state.Landed:
		return rec, state.TakeOver, nil
	}
	// Another attempt was faster, the holder continued, or the record is gone.
	if v, err = c.judge(rec); v == state.TakeOver {
		v = state.Claimable // the holder released the record in the meantime: claim tries again
	}
	return rec, v, err
}

// claiming.supplied returns the stored request in. If the request's body lies outside
// of the record, supplied returns a copy with this attempt's body, since the attempt
// that claimed the record may have died before it wrote the body.
func (c *claiming) supplied(in *store.Input) *store.Input {
	if in == nil || in.Overflow == nil {
		return in
	}
	with := *in
	with.Body = c.ask.req.Body
	return &with
}

// claiming.judge returns this claim's verdict about the record found.
func (c *claiming) judge(found *store.Record) (state.Verdict, error) {
	c.hasRecord = c.hasRecord || found != nil && found.State != store.None
	return c.ask.judge(found, c.writer.owner)
}

func (c *claiming) isFree(r *store.Record) bool {
	return r != nil && state.Free(r, c.core.opt.Now())
}
