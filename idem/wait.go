package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/state"
)

const (
	firstLook   = 120 * time.Millisecond // the longest wait before the first read of the record
	longestLook = 800 * time.Millisecond // the longest wait between two reads
)

// nextLook returns the bounds of an attempt's wait before it reads the record again.
// waited is since the attempt began to wait, age since the holder began, and lease is
// the rest of the holder's lease.
//
// The wait is as long as the attempt has waited, so k reads take about 2^k·firstLook. It
// is at least a tenth of the holder's age: an operation of ten seconds seldom ends in the
// next 0.1 s. A read is due once the lease has ended. The bounds are apart, so that many
// waiting attempts don't read at once.
//
// The holder's clock may differ from this one. A wrong age makes a wait longest at most;
// a wrong lease costs one read, since it has ended from then on.
func nextLook(waited, age, lease time.Duration) (least, most time.Duration) {
	most = min(firstLook+max(waited, age/10), longestLook)
	if lease > 0 && lease < most {
		return lease, lease + firstLook
	}
	return most - most/8, most
}

// wait reads the record until its holder has finished or end has passed. The
// verdict is InFlight only after end. A record that can't be read or judged ends the wait: it is
// answered as to a request that didn't wait.
func (a *attempt) wait(ctx context.Context, held *store.Record, end time.Time) (*store.Record, state.Verdict, error) {
	ctx, sp := a.step(ctx, trace.Wait, "")
	defer sp.done(nil)
	for begun := time.Now(); ; {
		now := a.opt.Now()
		least, most := nextLook(time.Since(begun), now.Sub(held.Run), held.Lease.Sub(now))
		next := least + chance.N(ctx, most-least)
		if time.Now().Add(next).After(end) || !sleep(ctx, next) {
			return held, state.InFlight, nil
		}
		rec, err := a.reads(ctx, end)
		if errors.Is(err, ErrCorrupt) {
			return held, 0, err
		}
		if err != nil {
			continue // the store may recover; the holder is still working
		}
		if v, err := a.judge(rec); err != nil || v != state.InFlight {
			return rec, v, err
		}
		held = rec
	}
}

// patiently waits for the holder of a refused claim if Options.InFlight is
// InFlightWait.
func (a *attempt) patiently(ctx context.Context, held *store.Record, v state.Verdict) (*store.Record, state.Verdict, error) {
	end := time.Now().Add(min(a.opt.WaitMax, time.Until(a.deadline)-a.opt.Reserve)) // one limit for all holders in turn
	var err error
	for err == nil && v == state.InFlight && held != nil && a.opt.InFlight == InFlightWait {
		held, v, err = a.wait(ctx, held, end)
		if v == state.InFlight {
			break
		}
		if err == nil && (v == state.Again || v == state.TakeOver) { // the holder gave up, or died
			held, v, err = a.claim(ctx)
		}
	}
	return held, v, err
}
