package idem

import (
	"context"
	mathrand "math/rand/v2"
	"time"
)

// InFlightMode says what a request gets whose key another attempt holds.
type InFlightMode int

const (
	// InFlightRefuse answers 409 at once, with Retry-After: what is left of the lease.
	InFlightRefuse InFlightMode = iota
	// InFlightWait waits for the other attempt's answer and gives it as a replay;
	// if it takes too long ([Options.WaitMax], or the time of this request), 409.
	// If the other attempt fails, this one runs.
	InFlightWait
	// InFlightAccept answers 202 with the Location of a status resource
	// ([Options.StatusURL]), which ends in the answer.
	InFlightAccept
)

// DefaultWaitMax is for how long InFlightWait waits.
const DefaultWaitMax = 10 * time.Second

// wait looks at a record until its holder is done with it, or it is end. The
// verdict is inFlight in the latter case only.
func (a *attempt) wait(ctx context.Context, held *Record, end time.Time) (*Record, verdict) {
	for pace := 50 * time.Millisecond; ; pace = min(pace*3/2, time.Second) {
		// Half of it by chance, so that many that wait don't look all at once.
		next := pace/2 + time.Duration(mathrand.Int64N(int64(pace/2)))
		if time.Now().Add(next).After(end) || !sleep(ctx, next) {
			return held, inFlight
		}
		rec, err := a.reads(ctx, end)
		if err != nil {
			continue // the store may come back; the holder's work goes on
		}
		if v, err := a.judge(rec); err == nil && v != inFlight {
			return rec, v
		}
		held = rec
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// claimOrWait is claim, patient with another holder where that is asked for.
func (a *attempt) claimOrWait(ctx context.Context) (*Record, verdict, error) {
	held, v, err := a.claim(ctx, nil, nil, false)
	if err != nil {
		return nil, 0, err
	}
	return a.patiently(ctx, held, v)
}

// patiently waits for the holder of a claim that was refused, where that is
// asked for.
func (a *attempt) patiently(ctx context.Context, held *Record, v verdict) (*Record, verdict, error) {
	end := time.Now().Add(min(a.opt.WaitMax, time.Until(a.deadline)-a.opt.Reserve)) // however many hold it in turn
	var err error
	for err == nil && v == inFlight && held != nil && a.opt.InFlight == InFlightWait {
		if held, v = a.wait(ctx, held, end); v == inFlight {
			break
		}
		if v == again || v == takeOver { // the holder gave up, or died
			held, v, err = a.claim(ctx, nil, nil, false)
		}
	}
	return held, v, err
}
