package idem

import (
	"context"
	"crypto/sha256"
	"errors"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
	"github.com/samekey/samekey/internal/state"
	"maps"
	"slices"
)

// conclude stores the handler's own answer and gives it. The effect has
// happened, so what fails here need not make it an error: at worst the answer of
// a handler without phases is given unstored. It is an error where something
// else hangs on the commit: a merged claim, results or jobs that wait for it, and
// phases or a stored request, by which another attempt may come to another
// answer.
func (a *attempt) conclude(ctx context.Context, f *flow, resp Response) (Result, error) {
	var err error
	for try := range 3 {
		if f.statusOnly = try == 2; f.statusOnly {
			// That it is done matters more than what it said.
			a.log.ErrorContext(ctx, "answer can't be stored: storing its status only", "record", redact.Record(a.pk), "error", err)
		}
		err = f.finish(ctx, resp, nil, nil, false)
		if end := f.ended(); end != nil {
			return end.res, end.err
		}
		if !refused(err) {
			break
		}
	}
	rec := f.record()
	if rec == nil {
		if _, ours := errors.AsType[*Error](err); !ours {
			err = a.unavailable("claim", err)
		}
		return Result{}, err
	}
	// The lease stays: a retry must not repeat the effect at once.
	err = a.fail("finish", err)
	a.log.ErrorContext(ctx, "answer not stored: a retry after the lease runs again", "record", redact.Record(a.pk), "error", err)
	call(ctx, a.opt.Hooks.Failed, a.event(rec, err))
	if rec.Keep == store.KeepOpen || f.outstanding() {
		return Result{}, a.unavailable("finish", err)
	}
	return Result{Response: resp, Unstored: true}, nil
}

// finished is what an operation that has just been stored answers: resp, which
// was made into the record made, or what rec holds if that is another.
func (a *attempt) finished(ctx context.Context, rec, made *store.Record, resp Response) (Result, error) {
	call(ctx, a.opt.Hooks.Finished, a.event(rec, nil))
	if rec == made || samePayload(rec, made) {
		if made.Overflow == nil || made.Overflow.Count > 0 {
			whole := *made // the store may have put its body elsewhere; here it is
			whole.Overflow = nil
			a.cache.put(&whole)
		}
		return Result{Response: resp, Expires: state.Lifetime(rec)}, nil
	}
	if err := a.body(ctx, rec); err != nil { // an earlier run of the phase was stored after all
		return Result{}, err
	}
	return Result{Response: rec.Response.Clone(), Expires: state.Lifetime(rec)}, nil
}

// samePayload reports whether a record read back holds the answer that was made.
// A body that lies elsewhere is compared by its hash.
func samePayload(rec, made *store.Record) bool {
	sum := func(r *store.Record) [sha256.Size]byte {
		if r.Overflow != nil {
			return r.Overflow.SHA256
		}
		return sha256.Sum256(r.Response.Body)
	}
	return rec.Response != nil && rec.Response.Status == made.Response.Status && sum(rec) == sum(made) &&
		maps.EqualFunc(rec.Response.Header, made.Response.Header, slices.Equal)
}

// refused reports whether a write failed for good, and not for want of time.
func refused(err error) bool {
	return err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, ErrConflict)
}

// release gives the lease back, so that the next retry needn't wait for its
// end. A failure is logged and never hides why it was released (R38).
func (a *attempt) release(ctx context.Context, rec *store.Record, b state.GiveBack, cause error) (*store.Record, state.Landing, error) {
	if b.Why == "" && cause != nil {
		b.Why = redact.Error(cause)
	}
	prev := rec
	for range maxRounds {
		next := state.Released(prev, a.opt.Now(), b)
		held, l, err := a.commit(ctx, change{prev: prev, next: next}, a.until(prev), maxRounds)
		switch {
		case err != nil:
			err = a.fail("release", err)
			a.log.ErrorContext(ctx, "lease not released: retries wait for its end", "record", redact.Record(a.pk), "error", err)
			call(ctx, a.opt.Hooks.Failed, a.event(rec, err))
			return nil, state.NotYet, err
		case l == state.Fenced:
			return held, state.Fenced, nil
		case held.State != store.Open || held.Lease.IsZero():
			call(ctx, a.opt.Hooks.Released, a.event(rec, cause))
			if held.State == store.Open && held.Blocked {
				a.log.ErrorContext(ctx, "the program refuses to go on with an operation: it waits for people", "record", redact.Record(a.pk),
					"operation", held.ID, "route", held.Route, "error", held.LastErr)
				call(ctx, a.opt.Hooks.Blocked, a.event(held, b.Refusal))
			}
			return held, state.Landed, nil
		}
		prev = held // our own later write had landed after all: decide again from it
	}
	return nil, state.NotYet, a.fail("release", ErrConflict)
}

// overtaken answers an attempt that lost its lease. It has written nothing
// since, and what it would have said is not the key's answer.
func (a *attempt) overtaken(ctx context.Context, held *store.Record) (Result, error) {
	a.log.WarnContext(ctx, "lease lost: another attempt has taken over", "record", redact.Record(a.pk))
	call(ctx, a.opt.Hooks.LeaseLost, a.event(held, ErrLeaseLost))
	v, err := a.judge(held)
	if err == nil && (v == state.Replay || v == state.InFlight) {
		res, err := a.answer(ctx, held, v)
		if err == nil {
			return res, nil
		}
		return Result{}, errors.Join(err, ErrLeaseLost)
	}
	return Result{}, a.fail("finish", ErrLeaseLost)
}

// answer gives what the record in the way calls for.
func (a *attempt) answer(ctx context.Context, held *store.Record, v state.Verdict) (Result, error) {
	hooks := &a.opt.Hooks
	refuse := func(hook func(context.Context, Event), err *Error) (Result, error) {
		if held != nil {
			err.Expires = state.Lifetime(held)
		}
		call(ctx, hook, a.event(held, err))
		return Result{}, err
	}
	switch v {
	case state.Replay:
		if err := a.body(ctx, held); err != nil {
			return refuse(hooks.Failed, err)
		}
		resp := held.Response.Clone()
		clean(&resp) // what was stored by other hands may hold anything
		call(ctx, hooks.Replayed, a.event(held, nil))
		return Result{Response: resp, Replayed: true, Expires: state.Lifetime(held)}, nil
	case state.OtherCaller:
		err := a.fail("claim", ErrCredentials) // not even when it expires is told
		call(ctx, hooks.Refused, a.event(held, err))
		return Result{}, err
	case state.Mismatch:
		return refuse(hooks.Mismatch, a.fail("claim", ErrMismatch))
	case state.Expired:
		return refuse(hooks.Refused, a.fail("claim", ErrExpired))
	case state.Stuck:
		return refuse(hooks.Refused, a.fail("claim", ErrStuck))
	case state.InFlight:
		if a.accepts && a.opt.InFlight == InFlightAccept && held != nil {
			call(ctx, hooks.InFlight, a.event(held, ErrInFlight))
			return a.accepted(held), nil
		}
		fallthrough
	default:
		err := a.fail("claim", ErrInFlight)
		err.RetryAfter = a.retryAfter(held)
		return refuse(hooks.InFlight, err)
	}
}

// body completes a finished record whose body lies elsewhere, and remembers it.
func (a *attempt) body(ctx context.Context, held *store.Record) *Error {
	if o := held.Overflow; o != nil {
		if o.Count == 0 {
			return a.fail("replay", ErrNotKept)
		}
		loader, ok := a.store.(store.BodyLoader)
		if !ok {
			return a.fail("replay", ErrNotKept)
		}
		ctx, cancel := a.within(ctx, a.until(nil))
		defer cancel()
		if err := loader.LoadBody(ctx, held); err != nil {
			a.log.ErrorContext(ctx, "stored body can't be read", "record", redact.Record(a.pk), "error", err)
			if !errors.Is(err, ErrNotKept) {
				err = errors.Join(ErrUnavailable, err)
			}
			return a.fail("replay", err)
		}
		whole := *held
		whole.Overflow = nil
		a.cache.put(&whole)
		return nil
	}
	a.cache.put(held)
	return nil
}
