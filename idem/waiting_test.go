package idem_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A thousand equal requests at once, in each mode.
func TestThousandDuplicatesInEachMode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		want map[int]bool // statuses of requests that did not run
	}{
		"refuse": {func(o *idem.Options) { o.InFlight = idem.InFlightRefuse }, map[int]bool{409: true, 201: true}},
		"wait":   {func(o *idem.Options) { o.InFlight = idem.InFlightWait }, map[int]bool{201: true}},
		"accept": {func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }, map[int]bool{202: true, 201: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(new(idem.MemoryStore), callertest.Anybody, tc.opt)
				var runs atomic.Int64
				var wg sync.WaitGroup
				for range 1000 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
						defer cancel()
						res, err := e.Serve(ctx, keyed("k"), slow(3*time.Second, &runs))
						if err != nil || !tc.want[res.Status] {
							t.Errorf("%+v, %v", res, err)
						}
						if res.Status == 201 && string(res.Body) != "made" {
							t.Errorf("another answer: %q", res.Body)
						}
					})
				}
				wg.Wait()
				if runs.Load() != 1 {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		})
	}
}

// Wait mode, and its limits.
func TestWaitForTheOtherAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first  func(*atomic.Int64) func(context.Context) (idem.Response, error)
		limit  time.Duration // time of the second request
		status int
		replay bool
		runs   int64
		took   time.Duration // upper limit
	}{
		"answered":        {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(3*time.Second, n) }, 20 * time.Second, 201, true, 1, 5 * time.Second},
		"takes too long":  {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(15*time.Second, n) }, 20 * time.Second, 409, false, 1, 10 * time.Second},
		"too little time": {func(n *atomic.Int64) func(context.Context) (idem.Response, error) { return slow(15*time.Second, n) }, 3 * time.Second, 409, false, 1, 3 * time.Second},
		"the first fails": {func(n *atomic.Int64) func(context.Context) (idem.Response, error) {
			return func(context.Context) (idem.Response, error) {
				<-time.After(2 * time.Second)
				if n.Add(1) == 1 {
					return idem.Response{}, errors.New("failed")
				}
				return idem.Response{Status: 201}, nil
			}
		}, 20 * time.Second, 201, false, 2, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
				var runs atomic.Int64
				fn := tc.first(&runs)
				var wg sync.WaitGroup
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
					defer cancel()
					_, _ = e.Serve(ctx, keyed("k"), fn)
				})
				<-time.After(time.Millisecond)
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
				defer cancel()
				res, err := e.Serve(ctx, keyed("k"), fn)
				if err != nil || res.Status != tc.status || res.Replayed != tc.replay {
					t.Errorf("%d, replayed %t, %v", res.Status, res.Replayed, err)
				}
				if res.Status == 409 && res.Header.Get("Retry-After") == "" {
					t.Error("409 without Retry-After")
				}
				if took := time.Since(begun); took > tc.took {
					t.Errorf("took %v", took)
				}
				wg.Wait()
				if runs.Load() != tc.runs {
					t.Errorf("ran %d times", runs.Load())
				}
			})
		})
	}
}

// countingLoads counts the reads of a store.
type countingLoads struct {
	idem.MemoryStore
	loads atomic.Int64
}

func (s *countingLoads) Load(ctx context.Context, pk string) (*store.Record, error) {
	s.loads.Add(1)
	return s.MemoryStore.Load(ctx, pk)
}

// waiting is a running request, for which other requests with its key wait.
type waiting struct {
	store  *countingLoads
	engine *idem.Engine
	runs   *atomic.Int64
	ctx    context.Context // 30 s
	first  *sync.WaitGroup
}

// waitFor begins a request whose handler runs for the given time, and ends the
// request with the test.
func waitFor(t *testing.T, handler time.Duration) waiting {
	t.Helper()
	s := waiting{store: &countingLoads{}, runs: new(atomic.Int64), first: new(sync.WaitGroup)}
	s.engine = idem.New(s.store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	s.ctx = ctx
	s.first.Go(func() { _, _ = s.engine.Serve(ctx, keyed("k"), slow(handler, s.runs)) })
	t.Cleanup(func() {
		s.first.Wait()
		cancel()
	})
	synctest.Wait()
	return s
}

// wait sends the same request.
func (s waiting) wait(ctx context.Context) (idem.Result, error) {
	return s.engine.Serve(ctx, keyed("k"), slow(0, s.runs))
}

// A waiting attempt reads the record less and less often.
func TestWaitingBacksOff(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		handler time.Duration
		reads   int64
	}{
		{50 * time.Millisecond, 1}, {1800 * time.Millisecond, 5}, {9 * time.Second, 16},
	} {
		t.Run(tc.handler.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := waitFor(t, tc.handler)
				begun := time.Now()
				res, err := s.wait(s.ctx)
				if err != nil || !res.Replayed || s.runs.Load() != 1 {
					t.Errorf("replayed %t, %v, %d runs", res.Replayed, err, s.runs.Load())
				}
				if n := s.store.loads.Load(); n > tc.reads {
					t.Errorf("waiting for %v took %d reads, want at most %d", tc.handler, n, tc.reads)
				}
				if late := time.Since(begun) - tc.handler; late > 800*time.Millisecond {
					t.Errorf("the answer came %v late", late)
				}
			})
		})
	}
}

// A wait ends when its client has gone.
func TestWaitingEndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := waitFor(t, 8*time.Second)
		begun := time.Now()
		ctx, gone := context.WithCancel(s.ctx)
		defer time.AfterFunc(time.Second, gone).Stop()
		res, err := s.wait(ctx)
		if waited := time.Since(begun); err != nil || res.Status != http.StatusConflict || waited != time.Second {
			t.Errorf("%d, %v after %v, want in flight as soon as the client is gone", res.Status, err, waited)
		}
		s.first.Wait()
		if n := s.runs.Load(); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// A record that a waiting request can't read or judge ends the wait: a retry would be told the same.
func TestWaitingEndsWithItsRecord(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"judge": nil, "read": store.ErrCorrupt} {
		synctest.Test(t, func(t *testing.T) {
			s := waitFor(t, 8*time.Second)
			damaged := &spoilt{Store: s.store, load: func(context.Context, string) (*store.Record, error) { return &store.Record{State: store.Done}, err }}
			e := idem.New(damaged, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
			begun := time.Now()
			res, err := e.Serve(s.ctx, keyed("k"), slow(0, s.runs))
			if waited := time.Since(begun); err != nil || res.Status != http.StatusInternalServerError || waited > time.Second {
				t.Errorf("%s: %d, %v after %v, want 500 at the first look", name, res.Status, err, waited)
			}
		})
	}
}

// A waiting request reports a damaged record also if too little time is left to begin.
func TestWaitingReportsDamageLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var st idem.MemoryStore
		held, _ := annsRecord(t)
		held.Lease = time.Now().Add(9200 * time.Millisecond)
		if _, err := st.Claim(ctx, store.Claim{Next: held, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
		late := held.Lease
		damaged := &spoilt{Store: &st, load: func(ctx context.Context, pk string) (*store.Record, error) {
			if time.Now().Before(late) {
				return st.Load(ctx, pk)
			}
			return nil, store.ErrCorrupt
		}}
		r := ann
		r.Asynchronous = true
		res, err := idem.New(damaged, callertest.Anybody).Serve(ctx, r, slow(0, new(atomic.Int64)))
		if err != nil || res.Status != http.StatusInternalServerError {
			t.Errorf("got %d, %v, want 500 for the damaged record", res.Status, err)
		}
	})
}

// Retry-After tells when a retry makes sense, not when the lease ends: most
// handlers take much less time.
func TestRetryAfterIsCapped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(*idem.Options)
		left time.Duration // rest of the lease, with its margin
		want string
	}{
		"default":      {func(*idem.Options) {}, time.Minute, "5"},
		"less is left": {func(*idem.Options) {}, 3500 * time.Millisecond, "4"},
		"almost none":  {func(*idem.Options) {}, 300 * time.Millisecond, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var st idem.MemoryStore
				held, _ := annsRecord(t)
				held.Lease = time.Now().Add(tc.left)
				if _, err := st.Claim(t.Context(), store.Claim{Next: held, Now: time.Now()}); err != nil {
					t.Fatal(err)
				}
				accept := func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }
				serve := func(status int, set ...func(*idem.Options)) {
					res, err := idem.New(&st, append([]func(*idem.Options){callertest.Anybody}, set...)...).Serve(t.Context(), ann, slow(0, new(atomic.Int64)))
					if got := res.Header.Get("Retry-After"); err != nil || res.Status != status || got != tc.want {
						t.Errorf("%d, Retry-After %q, %v; want %d, %q", res.Status, got, err, status, tc.want)
					}
				}
				serve(http.StatusConflict, tc.set)
				serve(http.StatusAccepted, tc.set, accept)
				r := ann
				r.Method = http.MethodGet
				if got := idem.New(&st, callertest.Anybody, tc.set, accept).ServeStatus(t.Context(), r).Header.Get("Retry-After"); got != tc.want {
					t.Errorf("status: Retry-After %q, want %q", got, tc.want)
				}
			})
		})
	}
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
			if at := time.Since(begun); c.Verb == "Load" && at > 500*time.Millisecond && at < 1500*time.Millisecond {
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
		took, reads := time.Since(begun), s.Calls("Load")
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
