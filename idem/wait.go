package idem

import (
	"context"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

const (
	firstRead   = 120 * time.Millisecond // the longest wait before the first read of the record
	longestRead = 800 * time.Millisecond // the longest wait between two reads, if a client waits for the answer
	seldomRead  = 10 * time.Second       // the longest wait between two reads, if nobody waits for the answer

	// After its wait, an asynchronous request begins its own work only if enough time
	// is left: a tenth of the time that it had before the wait, or mostEnough if that
	// is less. Otherwise the request leaves the work to the source's next retry.
	mostEnough = 30 * time.Second
)

// nextRead returns the least and the most time that an attempt pauses before it reads
// the record again. The parameter waited is the time since the attempt began to wait,
// age is the time since the holder began, lease is the rest of the holder's lease, and
// longest limits the pause.
//
// Each pause is about as long as all earlier pauses together, so k reads take about
// 2^k·firstRead. A pause is at least about a tenth of the holder's age, because an
// operation that has run for ten seconds seldom ends in the next 0.1 s. If the lease
// ends within the pause, the pause ends at most firstRead after the lease. The least
// and the most differ, so that many waiting attempts don't read at once.
//
// The clocks of the holder and of this process may differ, so age and lease may be
// wrong. A wrong age can't make a pause longer than longest. If lease is too short,
// only one read comes too early. At the next call lease is no longer positive, so
// nextRead ignores it.
func nextRead(waited, age, lease, longest time.Duration) (least, most time.Duration) {
	most = min(firstRead+max(waited, age/10), longest)
	if lease > 0 && lease < most {
		return lease, lease + firstRead
	}
	return most - most/8, most
}

// claiming.wait reads the record until its holder has finished or the holder's lease
// is over. The parameter longest limits the pauses between reads. The parameter end
// limits the whole wait: if the next read would come later, the verdict is InFlight. If
// the record is corrupt or can't be judged, wait returns the error at once.
func (c *claiming) wait(ctx context.Context, held *store.Record, end time.Time, longest time.Duration) (*store.Record, state.Verdict, error) {
	ctx, sp := c.watch.step(ctx, trace.Wait, "")
	defer sp.done(nil)
	for begun := time.Now(); ; {
		now := c.core.opt.Now()
		least, most := nextRead(time.Since(begun), now.Sub(held.Run), held.Lease.Sub(now), longest)
		next := least + chance.N(ctx, most-least)
		if time.Now().Add(next).After(end) || !sleep(ctx, next) {
			return held, state.InFlight, nil
		}
		rec, err := c.writer.read(ctx, held.PK, end)
		if errors.Is(err, ErrCorrupt) {
			return held, 0, recordError("wait", held.PK, err)
		}
		if err != nil {
			continue // read again: the store may recover while the holder works
		}
		if v, err := c.judge(rec); err != nil || v != state.InFlight {
			return rec, v, err
		}
		held = rec
	}
}

// claiming.patiently waits for the attempt that holds the key, if Options.InFlight is
// InFlightWait or the request is asynchronous. An asynchronous request waits as long as
// it can, even if too little time for its own work is left afterwards. The wait delays
// the source's next retry, and a retry before the end of the lease would be useless.
func (c *claiming) patiently(ctx context.Context, held *store.Record) (*store.Record, state.Verdict, error) {
	deadline, opt := c.times.deadline, &c.core.opt
	end, longest, enough := deadline.Add(-defaults.Reserve), seldomRead, min(mostEnough, time.Until(deadline)/10) // if the holder changes, end stays the same
	v := state.InFlight
	switch {
	case c.ask.req.Asynchronous:
	case opt.InFlight == InFlightWait:
		end, longest, enough = earlier(end, time.Now().Add(defaults.WaitMax)), longestRead, 0
	default:
		return held, v, nil
	}
	var err error
	for err == nil && v == state.InFlight && held != nil {
		held, v, err = c.wait(ctx, held, end, longest)
		if v == state.InFlight {
			break
		}
		if (v == state.TakeOver || v == state.Claimable) && time.Until(deadline) < enough {
			return held, state.InFlight, nil
		}
		if err == nil && v == state.TakeOver { // the holder died
			held, v, err = c.judgeOrTakeOver(ctx, held, c.claimDeadline())
		}
		if err == nil && v == state.Claimable { // the holder has freed the key: this is a new operation
			held, v, err = c.begin(ctx)
		}
	}
	c.watch.finds(held)
	return held, v, err
}
