package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// All writes of the store: claim, take-over and commit, which are each repeated
// until the record shows whether they were applied, and the release.

// change is one conditional write of an attempt.
type change struct {
	prev, next *store.Record
	writes     []Write
	rerun      bool // return a conflict to the caller, who then builds other writes
}

// fresh returns the unwritten record of a new operation.
func (a *attempt) fresh(now time.Time) *store.Record {
	r := store.Record{
		PK: a.pk, ID: a.id, Fingerprint: a.print, Secret: a.secret, Scheme: a.scheme, Route: a.req.Route, Scope: a.scope,
		Handler: a.req.Handler, Tenant: a.req.Tenant, DeliveryKey: a.req.DeliveryKey, Trace: a.course.own,
	}
	if a.input != nil {
		r.Input = new(*a.input) // a store moves a large body
	}
	if a.opt.CallsOut {
		r.Keep, r.Mark = store.KeepOpen, state.AnyCall
	}
	return state.Claimed(r, now, a.leaseEnd(now), a.life)
}

// supplied returns in with this attempt's body, if the body lies outside of the
// record: the claiming attempt may have died before it wrote the body.
func (a *attempt) supplied(in *store.Input) *store.Input {
	if in == nil || in.Overflow == nil {
		return in
	}
	with := *in
	with.Body = a.req.Body
	return &with
}

// claim claims the record, or returns the record in the way and the verdict about
// it. With the verdicts Own and TakeOver, this attempt holds the record.
func (a *attempt) claim(ctx context.Context) (rec *store.Record, v state.Verdict, err error) {
	until := earlier(a.unbegun, time.Now().Add(maxClaim))
	ctx, sp := a.step(ctx, trace.Claim, "")
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	defer func() {
		if rec == nil {
			a.gaveUp(ctx)
		}
		if a.place != nil {
			a.place.settle(v, err)
		}
		if sp.end != nil {
			a.claimEnds(sp, rec, v, err)
		}
	}()
	begun := a.opt.Now().Round(0) // wall clock, which advances while a sandbox is frozen
	var cause error               // why the last claim was not applied, though no record is in the way
	seen := a.freed               // what the next claim replaces
	var fenced *store.Record      // what stands beside it
	atOnce := true
	for round := range maxRounds {
		if !atOnce && !pause(ctx, round) {
			break
		}
		atOnce = false
		if a.away { // the record there has gone, has expired, or was freed
			if fenced, err = a.bury(ctx, rec, until); err != nil {
				return nil, 0, err
			}
			a.turn()
		}
		now := a.opt.Now()
		if now.Round(0).Sub(begun) > maxClaim || seen != nil && seen.ID == a.id {
			// A claim with this nonce may have been applied and expired, or was applied
			// and freed by another attempt: continue as another one.
			a.owner, a.id, begun = rand.Text(), rand.Text(), now.Round(0)
		}
		next := a.fresh(now)
		for _, r := range []*store.Record{seen, fenced} {
			if r == nil {
				continue
			}
			if by := state.ForgottenBy(r); by != nil { // its author may not have got an answer
				next.Settled = []store.Decision{*by}
			}
		}
		state.Stamp(next, nil, a.owner)
		cause = nil
		var beside string
		if a.beside != nil {
			beside = a.beside.pk
		}
		held, err := a.store.Claim(ctx, store.Claim{Next: next, Now: now, Seen: seen, Beside: beside, Fenced: fenced})
		switch {
		case err == nil && held == nil:
			return next, state.Own, nil
		case errors.Is(err, ErrConflict):
			continue // another process is writing this record
		case errors.Is(err, ErrCorrupt):
			return nil, 0, a.fail("claim", err)
		case err != nil:
			// The current record shows whether our claim was applied. Even a refusal may
			// follow an earlier send by the store's client whose acknowledgement was lost.
			cause = err
			if held, err = a.load(ctx, err); err != nil {
				return nil, 0, err
			}
		}
		if a.beside != nil && held.PK == a.beside.pk { // the record is there
			a.turn()
		}
		rec, v, err = a.judgeOrTakeOver(ctx, held, until)
		if v == state.Mismatch && !a.away {
			rec, v, err = a.elsewhere(ctx, "claim", rec, v, until)
		}
		if err != nil || v != state.Again {
			return rec, v, err
		}
		if !a.away {
			seen = nil
			if rec != nil && state.Freed(rec) {
				seen, atOnce = rec, true
			}
		}
	}
	if cause != nil { // an expired record is not in flight
		return nil, 0, a.unavailable("claim", cause)
	}
	return nil, state.InFlight, nil
}

// bury fences the holders of an expired or freed record at the key's other place, so that
// a can claim the key in its own, and returns the fenced record. Where a key has one place
// only, the claim itself does that, since it replaces the record. A record that another
// attempt has released in the meantime stays as it is.
func (a *attempt) bury(ctx context.Context, held *store.Record, until time.Time) (*store.Record, error) {
	if !a.over(held) { // gone, or released meanwhile: the next claim shows it
		return nil, nil
	}
	// A nonce of its own: what this attempt takes over later must not look like the fenced record.
	defer func(me string) { a.owner = me }(a.owner)
	a.owner = rand.Text()
	fenced, l, err := a.write(ctx, change{prev: held, next: state.Buried(held, a.opt.Now())}, until, maxRounds)
	switch {
	case err != nil && !errors.Is(err, ErrConflict):
		a.log.ErrorContext(ctx, "an expired record under the other scope can't be fenced", "record", redact.Record(a.pk), "error", err)
		return nil, a.unavailable("claim", err)
	case l != state.Landed: // the next claim shows what stands there
		return nil, nil
	}
	return fenced, nil
}

// over reports whether a record is there whose key is free.
func (a *attempt) over(r *store.Record) bool {
	return r != nil && state.Free(r, a.opt.Now())
}

// elsewhere looks for the request at the key's other place, if nothing is at a's own place,
// or another request: scopes that change may make one key of two, or two of one. It
// returns the verdict about the own place if the request is at neither.
func (a *attempt) elsewhere(ctx context.Context, op string, own *store.Record, v state.Verdict, until time.Time) (*store.Record, state.Verdict, error) {
	if a.beside == nil || v != state.Again && v != state.Mismatch {
		return own, v, nil
	}
	a.turn()
	there, found, err := a.lookUp(ctx, op, until)
	gone := there == nil || there.State == store.None || a.over(there) // otherwise it was released meanwhile
	if err == nil && (gone || found == state.Mismatch && v == state.Mismatch) {
		a.turn()
		return own, v, nil
	}
	return there, found, err
}

// lookUp reads the record of a's key, and judges it or takes it over.
func (a *attempt) lookUp(ctx context.Context, op string, until time.Time) (*store.Record, state.Verdict, error) {
	held, err := a.store.Load(ctx, a.pk)
	if err != nil {
		return nil, 0, a.unavailable(op, err)
	}
	return a.judgeOrTakeOver(ctx, held, until)
}

// either reads the record that a claim meets, at either of the key's places; nil without
// one.
func (a *attempt) either(ctx context.Context) (*store.Record, error) {
	rec, err := a.store.Load(ctx, a.pk)
	if err == nil && rec == nil && a.beside != nil {
		rec, err = a.store.Load(ctx, a.beside.pk)
	}
	return rec, err
}

// load reads the record after a claim with an unknown outcome: the claim's own, or
// the one that has refused it. Without a record the claim was not applied.
func (a *attempt) load(ctx context.Context, cause error) (*store.Record, error) {
	rec, err := a.either(ctx)
	if err == nil && rec == nil {
		err = errors.New("not applied")
	}
	if err != nil {
		return nil, a.unavailable("claim", errors.Join(cause, err))
	}
	return rec, nil
}

// judgeOrTakeOver judges the record in the way, and takes the record over if no
// attempt holds it and the time suffices. Otherwise it is too soon.
func (a *attempt) judgeOrTakeOver(ctx context.Context, held *store.Record, until time.Time) (*store.Record, state.Verdict, error) {
	v, err := a.judge(held)
	if v == state.TakeOver && a.short() != nil {
		v = state.TooSoon
	}
	if v != state.TakeOver {
		return held, v, err
	}
	now := a.opt.Now()
	next := state.TakenByClient(held, now, a.leaseEnd(now), a.life, a.supplied(held.Input), a.req.Handler)
	rec, l, err := a.write(ctx, change{prev: held, next: next}, until, maxRounds)
	switch {
	case errors.Is(err, ErrConflict):
		return held, state.InFlight, nil // another process is writing this record
	case err != nil:
		return nil, 0, a.unavailable("take-over", err)
	case l == state.Landed:
		return rec, state.TakeOver, nil
	}
	// Another attempt was faster, the holder came back, or the record has gone.
	if v, err = a.judge(rec); v == state.TakeOver {
		v = state.Again // released in the meantime: the next round decides
	}
	return rec, v, err
}

func (a *attempt) judge(held *store.Record) (state.Verdict, error) {
	if held == nil || held.State == store.None {
		return state.Again, nil
	}
	a.seen = true
	if state.Corrupt(held) {
		return 0, a.fail("claim", fmt.Errorf("%w: state %q, without what belongs to it", ErrCorrupt, held.State))
	}
	same, err := a.compare(held)
	if err != nil && held.Owner != a.owner && !a.over(held) { // nor is it compared
		e := a.fail("fingerprint", err)
		e.RetryAfter = untilDeployed
		return 0, e
	}
	return state.Judge(held, a.owner, same, a.opt.Now()), nil
}

// release gives the lease back, so that the next retry needn't wait for its end.
// A failure is logged and never hides the cause of the release (R38).
func (a *attempt) release(ctx context.Context, rec *store.Record, b state.Release, cause error) (_ *store.Record, _ state.Landing, err error) {
	ctx, sp := a.step(ctx, trace.Release, "")
	defer func() { sp.done(err) }()
	if b.Why == "" && cause != nil {
		b.Why = redact.Error(cause)
	}
	prev := rec
	for range maxRounds {
		next := state.Released(prev, a.opt.Now(), b)
		held, l, err := a.write(ctx, change{prev: prev, next: next}, a.until(prev), maxRounds)
		switch {
		case err != nil:
			err = a.fail("release", err)
			a.log.ErrorContext(ctx, "lease not released: retries wait for its end", "record", redact.Record(a.pk), "error", err)
			a.tell(ctx, evFailed, rec, err)
			return nil, state.NotYet, err
		case l == state.Fenced:
			return held, state.Fenced, nil
		case held.Lease.IsZero():
			a.tell(ctx, evReleased, rec, cause)
			if held.Blocked {
				a.log.ErrorContext(ctx, "the program refuses to go on with an operation: it waits for people", "record", redact.Record(a.pk),
					"operation", held.ID, "route", held.Route, "error", held.LastErr)
				a.tell(ctx, evBlocked, held, b.Refusal)
			}
			return held, state.Landed, nil
		}
		prev = held // an earlier write of ours was applied after all: decide again from that record
	}
	return nil, state.NotYet, a.fail("release", ErrConflict)
}

// write sends a conditional write until its outcome is known, at most rounds
// times and until the deadline. write returns the resulting record: c.next if the
// write landed.
func (a *attempt) write(ctx context.Context, c change, until time.Time, rounds int) (*store.Record, state.Landing, error) {
	if a.limit > 0 {
		until = earlier(until, time.Now().Add(a.limit))
	}
	held, l, err := a.send(ctx, c, until, rounds)
	if err != nil && !time.Now().Before(until) {
		a.spent.Store(true)
	}
	return held, l, err
}

// send makes c.next this attempt's write. The context of each try ends by until, so
// that send needs none of its own.
func (a *attempt) send(ctx context.Context, c change, until time.Time, rounds int) (*store.Record, state.Landing, error) {
	state.Stamp(c.next, c.prev, a.owner)
	var err error
	for round := range rounds {
		if round > 0 && !a.pause(ctx, round, until) {
			break
		}
		var held *store.Record
		var l state.Landing
		if held, l, err = a.sendOnce(ctx, c, until); err == nil && l != state.NotYet {
			return held, l, nil
		}
		blind := errors.Is(err, errUnread) && rounds < patient
		if err != nil && (blind || c.rerun && errors.Is(err, ErrConflict) || !store.Passing(err)) {
			break
		}
		// As far as is known, the write was not applied: send the same bytes again. If
		// the first copy lands in between, the condition refuses the second copy and
		// Land recognises the first.
	}
	if err == nil {
		err = store.ErrUnknown
	}
	return nil, 0, err
}

// sendOnce takes at most half of the time left until the deadline.
func (a *attempt) sendOnce(ctx context.Context, c change, until time.Time) (*store.Record, state.Landing, error) {
	ctx, cancel := a.within(ctx, earlier(until, time.Now().Add(half(until))))
	defer cancel()
	held, err := a.store.Commit(ctx, store.Commit{Prev: c.prev, Next: c.next, Writes: c.writes})
	switch {
	case err == nil && held == nil:
		return c.next, state.Landed, nil
	case err == nil:
		return held, state.Land(held, c.prev, c.next, a.owner), nil
	case !errors.Is(err, store.ErrUnknown):
		return nil, 0, err
	}
	now, lerr := a.store.Load(ctx, a.pk)
	if lerr != nil {
		return nil, 0, errors.Join(err, errUnread, lerr)
	}
	return now, state.Land(now, c.prev, c.next, a.owner), nil
}
