package idem_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// paces are the delays of answers behind the end of a handler, and the reads of each waiter.
type paces struct {
	delays []time.Duration
	reads  []int
}

func (p *paces) add(delay time.Duration, reads int) {
	p.delays, p.reads = append(p.delays, delay), append(p.reads, reads)
}

func (p *paces) join(other *paces) {
	p.delays, p.reads = append(p.delays, other.delays...), append(p.reads, other.reads...)
}

func (p *paces) mean() (delay time.Duration, reads float64) {
	for i, d := range p.delays {
		delay += d
		reads += float64(p.reads[i])
	}
	n := len(p.delays)
	return delay / time.Duration(n), reads / float64(n)
}

func (p *paces) p99() time.Duration {
	slices.Sort(p.delays)
	return p.delays[len(p.delays)*99/100]
}

func (p *paces) String() string {
	delay, reads := p.mean()
	return fmt.Sprintf("%3d ms, %3d ms, %4.1f", delay.Milliseconds(), p.p99().Milliseconds(), reads)
}

// doubling is the pace that waiters had before nextLook: 100 ms, doubled up to a second, of
// which a quarter is random.
func doubling(left time.Duration, draw *rand.Rand) (delay time.Duration, reads int) {
	for pace := 100 * time.Millisecond; left > 0; pace = min(2*pace, time.Second) {
		left -= pace*3/4 + time.Duration(draw.Int64N(int64(pace/4)))
		reads++
	}
	return -left, reads
}

// An answer comes no later than by doubling waits, with fewer reads: mean and 99th
// percentile of the time from the end of the handler to the answer, over handlers of 50 ms
// to 30 s, whether waiters come as the handler begins or at any time. In no row the mean is
// more than 40 ms later. -v prints the table.
func TestWaitingIsNoLater(t *testing.T) {
	t.Parallel()
	const handlers, waiters = 100, 10 // of each row, and of each handler
	edges := []time.Duration{50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000}
	for name, late := range map[string]bool{"from the begin": false, "at any time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var former, now, formerTo2s, nowTo2s paces
			for i, from := range edges[:len(edges)-1] {
				from, to := from*time.Millisecond, edges[i+1]*time.Millisecond
				var was, is paces
				synctest.Test(t, func(t *testing.T) { was, is = waitInTurns(t, from, to, handlers, waiters, late) })
				t.Logf("%6v to %3v: doubling %s; now %s (mean, p99, reads)", from, to, &was, &is)
				wasMean, wasReads := was.mean()
				isMean, isReads := is.mean()
				if isMean > wasMean+40*time.Millisecond {
					t.Errorf("handlers of %v to %v: an answer comes %v late, %v by doubling", from, to, isMean, wasMean)
				}
				if to <= 2*time.Second {
					if late && isReads > 3 || isReads > wasReads+0.1 {
						t.Errorf("handlers of %v to %v: %.1f reads a waiter, %.1f by doubling", from, to, isReads, wasReads)
					}
					if most := slices.Max(is.reads); most > 5 {
						t.Errorf("handlers of %v to %v: a waiter reads %d times", from, to, most)
					}
					formerTo2s.join(&was)
					nowTo2s.join(&is)
				}
				former.join(&was)
				now.join(&is)
			}
			t.Logf("up to 2s: doubling %s; now %s", &formerTo2s, &nowTo2s)
			t.Logf("all:      doubling %s; now %s", &former, &now)
			was, wasReads := former.mean()
			is, isReads := now.mean()
			if is > was || now.p99() > former.p99() || late && isReads > wasReads {
				t.Errorf("mean, p99 and reads are %s, more than %s by doubling", &now, &former)
			}
		})
	}
}

// waitInTurns runs handlers that take from to to, on a logarithmic scale, and waiters of
// each, in virtual time.
func waitInTurns(t *testing.T, from, to time.Duration, handlers, waiters int, anyTime bool) (was, is paces) {
	t.Helper()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.InFlight, o.WaitMax = idem.InFlightWait, time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for h := range handlers {
		draw := rand.New(rand.NewPCG(uint64(h), uint64(to)))
		takes := time.Duration(float64(from) * math.Pow(float64(to)/float64(from), draw.Float64()))
		begun, key := time.Now(), fmt.Sprint("key-", h)
		wg.Go(func() { _, _ = e.Serve(ctx, keyed(key), slow(takes, new(atomic.Int64))) })
		synctest.Wait()
		for w := range waiters {
			own := rand.New(rand.NewPCG(uint64(h), uint64(w)))
			var comes time.Duration
			if anyTime {
				comes = time.Duration(own.Float64() * float64(takes))
			}
			wg.Go(func() {
				<-time.After(comes)
				reads := 0
				ctx := chance.With(ctx, func(n int64) int64 { reads++; return own.Int64N(n) })
				if res, err := e.Serve(ctx, keyed(key), nil); err != nil || !res.Replayed {
					t.Errorf("%+v, %v", res, err)
				}
				late := time.Since(begun) - takes
				mu.Lock()
				defer mu.Unlock()
				is.add(late, reads)
				was.add(doubling(takes-comes, own))
			})
		}
	}
	wg.Wait()
	return was, is
}

// 128 requests at once, whose handler takes 300 ms: each waiter reads twice, and hardly two
// at the same time.
func TestWaitersReadApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := make(map[time.Time]int)
		s := idemtest.Faulty(new(idem.MemoryStore), func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == idemtest.Load {
				mu.Lock()
				defer mu.Unlock()
				reads[time.Now()]++
			}
			return idemtest.Fault{}
		})
		e := waitsOn(s)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 128 {
			wg.Go(func() {
				if res, err := e.Serve(ctx, keyed("k"), slow(300*time.Millisecond, new(atomic.Int64))); err != nil || res.Status != 201 {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
		wg.Wait()
		if n := s.Calls(); n > 2+127+2*127 || len(reads) < 240 {
			t.Errorf("%d calls, reads at %d times, want at most 383 calls, and most of 254 reads at times of their own", n, len(reads))
		}
	})
}

// A waiter reads soon after the end of the lease of a holder that has died, and takes over.
func TestWaitingReadsAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{10 * time.Millisecond, 700 * time.Millisecond, 2500 * time.Millisecond, 3700 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, held := &countingLoads{}, heldRecord(t)
			held.Lease = time.Now().Add(lease)
			claimed(t, s, held)
			begun := time.Now()
			res, err := waitsOn(s).Serve(t.Context(), ann, slow(0, new(atomic.Int64)))
			if late := time.Since(begun) - lease; err != nil || res.Status != 201 || res.Replayed || late < 0 || late > 150*time.Millisecond {
				t.Errorf("lease of %v: %d, replayed %t, %v, %v after its end", lease, res.Status, res.Replayed, err, late)
			}
		})
	}
}

// A holder's clock may be wrong: the waiter neither reads all the time nor waits beyond
// its end.
func TestWaitingByAWrongClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a year ahead": 365 * 24 * time.Hour, "a second ahead": time.Second, "a second behind": -time.Second, "years behind": math.MinInt64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, held := &countingLoads{}, heldRecord(t)
				held.Run = time.Now().Add(ahead)
				held.Lease = time.Now().Add(time.Hour)
				claimed(t, s, held)
				begun := time.Now()
				res, err := waitsOn(s).Serve(t.Context(), ann, slow(0, new(atomic.Int64)))
				took, reads := time.Since(begun), s.loads.Load()
				if err != nil || res.Status != http.StatusConflict || took > 10*time.Second || took < 9*time.Second || reads < 10 || reads > 20 {
					t.Errorf("%d, %v after %v and %d reads, want 409 after 10 s and some 15 reads", res.Status, err, took, reads)
				}
			})
		})
	}
}

// A store whose reads fail for a second is read at the same pace, and the answer comes
// after it.
func TestWaitingOutAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := idemtest.Faulty(new(idem.MemoryStore), func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if at := time.Since(begun); c.Verb == idemtest.Load && at > 500*time.Millisecond && at < 1500*time.Millisecond {
				return idemtest.Fault{Err: errors.New("down")}
			}
			return idemtest.Fault{}
		})
		e := waitsOn(s)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = e.Serve(ctx, keyed("k"), slow(time.Second, new(atomic.Int64))) })
		synctest.Wait()
		res, err := e.Serve(ctx, keyed("k"), nil)
		took, reads := time.Since(begun), s.Calls(idemtest.Load)
		if err != nil || !res.Replayed || took > 2300*time.Millisecond || reads > 5 {
			t.Errorf("%+v, %v after %v and %d reads", res, err, took, reads)
		}
		wg.Wait()
	})
}

func waitsOn(s store.Store) *idem.Engine {
	return idem.New(s, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
}

// heldRecord returns ann's record while an attempt works.
func heldRecord(t *testing.T) *store.Record {
	t.Helper()
	held, _ := annsRecord(t)
	return held
}

func claimed(t *testing.T, s store.Store, held *store.Record) {
	t.Helper()
	if _, err := s.Claim(t.Context(), store.Claim{Next: held, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
}
