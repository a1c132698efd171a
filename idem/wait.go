package idem

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/state"
)

// firstLook is the longest wait before the first read of the record. The wait
// doubles with each read, up to a second: waiting for t costs about
// log2(t/firstLook) reads, and then one read a second.
const firstLook = 100 * time.Millisecond

// wait reads the record until its holder has finished or end has passed. The
// verdict is InFlight only after end.
func (a *attempt) wait(ctx context.Context, held *store.Record, end time.Time) (*store.Record, state.Verdict) {
	ctx, sp := a.step(ctx, trace.Wait, "")
	defer sp.done(nil)
	for pace := firstLook; ; pace = min(pace*2, time.Second) {
		// A quarter of the wait is random, so that many waiting attempts don't read all
		// at once.
		next := pace*3/4 + chance.N(ctx, pace/4)
		if time.Now().Add(next).After(end) || !sleep(ctx, next) {
			return held, state.InFlight
		}
		rec, err := a.reads(ctx, end)
		if err != nil {
			continue // the store may recover; the holder is still working
		}
		if v, err := a.judge(rec); err == nil && v != state.InFlight {
			return rec, v
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
		if held, v = a.wait(ctx, held, end); v == state.InFlight {
			break
		}
		if v == state.Again || v == state.TakeOver { // the holder gave up, or died
			held, v, err = a.claim(ctx, nil, nil, false)
		}
	}
	return held, v, err
}
