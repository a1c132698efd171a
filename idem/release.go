package idem

import (
	"context"
	"errors"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The end of a run without a stored answer.

// release ends an attempt without a stored answer. Its outcome is resp or err.
func (f *flow) release(ctx context.Context, resp Response, err, failed error) (Result, error) {
	a := f.a
	rec := f.record()
	if rec == nil {
		return f.consult(ctx, resp, err)
	}
	cause := err
	if cause == nil {
		cause = failed
	}
	b := f.releasing()
	b.Answers, b.Counted = err == nil && final(resp.Status), a.resumed
	if cause == nil {
		b.Refused, b.Why = resp.Status/100 == 4, notStored(resp.Status)
	}
	if next := state.Released(rec, a.opt.Now(), b); b.Answers && !a.resumed && state.Kept(next) && next.Tries >= a.opt.MaxTries {
		return Result{}, f.tires(ctx, b)
	}
	held, l, rerr := a.release(ctx, rec, b, cause)
	switch {
	case l == state.Fenced:
		if err != nil {
			a.log.ErrorContext(ctx, "handler failed in an overtaken attempt", "record", redact.Record(a.pk), "error", err)
		}
		return reply{a}.overtaken(ctx, held)
	case l == state.Landed && held.State == store.Done:
		return reply{a}.answer(ctx, held, state.Replay) // the answer was stored after all
	case err != nil:
		if rerr != nil {
			err = errors.Join(err, rerr)
		}
		return Result{}, &handlerError{err}
	case b.Answers && (rerr != nil || state.Kept(held)):
		return reply{a}.withhold(ctx, rec, held, resp)
	default:
		return Result{Response: resp}, nil
	}
}

// consult reads the record of an attempt that never claimed, before its unstored
// answer is returned: a finished operation has its own answer, and a different
// request must not pass as this request. consult takes over the committed work of
// an abandoned attempt, and the handler begins again with that record.
func (f *flow) consult(ctx context.Context, resp Response, err error) (Result, error) {
	a := f.a
	until := a.until(nil)
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	held, lerr := a.store.Load(ctx, a.pk)
	if lerr != nil {
		err = a.unavailable("look", errors.Join(lerr, err))
		a.tell(ctx, evFailed, nil, err)
		return Result{}, err
	}
	held, v, jerr := a.judgeOrTakeOver(ctx, held, until)
	switch {
	case jerr != nil:
		return Result{}, jerr
	case v == state.TakeOver:
		f.set(held)
		f.restarts()
		return Result{}, nil
	case v != state.Again:
		return reply{a}.answer(ctx, held, v)
	case err != nil:
		return Result{}, &handlerError{err}
	}
	return Result{Response: resp}, nil
}
