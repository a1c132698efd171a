package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/state"
)

// look reads the record, and judges it or takes it over, as if it had just refused a claim:
// so the read is consistent. The verdict Again leaves all to the claim. So do a record that
// refuses no claim and a failed read, neither of which may change the claim's outcome, but
// that ModeOpen runs nothing after a record was seen.
func (a before) look(ctx context.Context) (held *store.Record, v state.Verdict, err error) {
	until := earlier(a.unbegun, time.Now().Add(maxClaim))
	ctx, cancel := a.within(ctx, until)
	defer cancel()
	ctx, sp := a.step(ctx, trace.Read, "")
	rec, err := a.glance(ctx, until)
	if rec == nil {
		a.looked = err == nil
		sp.done(err)
		return nil, state.Again, nil
	}
	defer func() { sp.done(err) }()
	if a.beside != nil && rec.PK == a.beside.pk {
		a.turn()
	}
	held, v, err = a.judgeOrTakeOver(ctx, rec, until)
	if v == state.Mismatch && !a.away {
		held, v, err = a.elsewhere(ctx, "claim", held, v, until)
	}
	if err != nil || v != state.Again {
		return held, v, err
	}
	if a.looked = a.away || a.beside == nil; a.away {
		a.turn()
	} else if held != nil && state.Freed(held) {
		a.freed = held
	}
	return nil, state.Again, nil
}

// glance reads the record, if it can be opened, and leaves time for the claim.
func (a before) glance(ctx context.Context, until time.Time) (*store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, half(until))
	defer cancel()
	rec, err := a.either(ctx)
	if err != nil {
		a.seen = a.seen || rec != nil || errors.Is(err, ErrCorrupt) // a record that can't be opened is there all the same
		return nil, err
	}
	return rec, nil
}
