package idem

import (
	"cmp"
	"context"
	"errors"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// The end of a run without a stored answer.

// withholds ends an attempt whose answer, made by the handler or in a phase, must not end
// the operation: an earlier attempt may have made a call that this one has passed by.
func (f *flow) withholds(ctx context.Context, resp Response) {
	f.unkeep()
	f.stop(f.release(ctx, resp, nil, nil))
}

// release ends an attempt without a stored answer. Its outcome is resp or err.
func (f *flow) release(ctx context.Context, resp Response, err, failed error) (Result, error) {
	a := f.a
	rec := f.record()
	cause := err
	if cause == nil {
		cause = failed
	}
	b := f.releasing()
	b.Answers, b.Counted = err == nil && final(resp.Status), a.resumed
	switch {
	case err == nil && f.log.missed(rec.Doubts):
		b.Answers, b.Why = true, cmp.Or(b.Why, notCalled(resp.Status))
	case cause == nil:
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
		return reply{a}.withhold(ctx, rec, held, resp, cmp.Or(b.Why, notStored(resp.Status)))
	default:
		return Result{Response: resp}, nil
	}
}
