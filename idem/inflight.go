package idem

import (
	"context"
	mathrand "math/rand/v2"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// InFlightMode says what a request gets whose key another attempt holds.
type InFlightMode int

const (
	// InFlightRefuse answers 409 at once, with Retry-After: what is left of the
	// lease, at most [Options.MaxRetryAfter].
	InFlightRefuse InFlightMode = iota
	// InFlightWait waits for the other attempt's answer and gives it as a replay;
	// if it takes too long ([Options.WaitMax], or the time of this request), 409.
	// If the other attempt fails, this one runs.
	InFlightWait
	// InFlightAccept answers 202 with the Location of a status resource
	// ([Options.StatusURL]), which ends in the answer.
	InFlightAccept
)

// firstLook is the longest wait before a first look at a record: it doubles with
// each look, up to a second, so that to wait for t costs about log2(t/firstLook)
// reads, and then one a second.
const firstLook = 100 * time.Millisecond

// DefaultWaitMax is for how long InFlightWait waits.
const DefaultWaitMax = 10 * time.Second

// wait looks at a record until its holder is done with it, or it is end. The
// verdict is inFlight in the latter case only.
func (a *attempt) wait(ctx context.Context, held *store.Record, end time.Time) (*store.Record, state.Verdict) {
	for pace := firstLook; ; pace = min(pace*2, time.Second) {
		// A quarter of it by chance, so that many that wait don't look all at once.
		next := pace*3/4 + time.Duration(mathrand.Int64N(int64(pace/4)))
		if time.Now().Add(next).After(end) || !sleep(ctx, next) {
			return held, state.InFlight
		}
		rec, err := a.reads(ctx, end)
		if err != nil {
			continue // the store may come back; the holder's work goes on
		}
		if v, err := a.judge(rec); err == nil && v != state.InFlight {
			return rec, v
		}
		held = rec
	}
}

// patiently waits for the holder of a claim that was refused, where that is
// asked for.
func (a *attempt) patiently(ctx context.Context, held *store.Record, v state.Verdict) (*store.Record, state.Verdict, error) {
	end := time.Now().Add(min(a.opt.WaitMax, time.Until(a.deadline)-a.opt.Reserve)) // however many hold it in turn
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
