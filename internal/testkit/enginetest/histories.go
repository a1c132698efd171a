package enginetest

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/prove"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// histories runs many clients on few keys, and checks what they were told
// against the model in model.go.
func histories(s suite) {
	s.run("concurrent clients are told one story", func(t *testing.T, e *env) {
		w := workload{clients: 16, requests: prove.Some(20, 60)}
		w.run(t, e, idem.ErrInFlight, idem.ErrMismatch)
	})

	s.run("concurrent clients are told one story though leases end while handlers run", func(t *testing.T, e *env) {
		w := workload{clients: 16, requests: prove.Some(20, 60), handlersFail: true, leasesEnd: true}
		w.run(t, e, idem.ErrInFlight, idem.ErrMismatch, idem.ErrLeaseLost, errHandler)
	})

	s.run("concurrent clients are told one story though the store fails too", func(t *testing.T, e *env) {
		e.store.Reset(trouble())
		// Fewer clients: each outcome that nobody knows doubles the orders to look at.
		w := workload{clients: 10, requests: prove.Some(30, 90), handlersFail: true, storeFails: true, leasesEnd: true}
		w.run(t, e, idem.ErrInFlight, idem.ErrMismatch, idem.ErrLeaseLost, errHandler, idem.ErrUnavailable, idem.ErrNotKept)
	})
}

// workload is what the clients of a history do.
type workload struct {
	clients, requests int

	handlersFail bool // some
	storeFails   bool // answers of the store are lost
	leasesEnd    bool // from time to time, and some handlers sleep through it
}

// run sends the workload's requests. Clients may be told the errors in fine.
func (w workload) run(t *testing.T, e *env, fine ...error) {
	t.Helper()
	var (
		history = Recorder{Lossy: w.storeFails}
		ends    = newLeaseEnds()
		runs    atomic.Int64
		asleep  = make(chan struct{}, w.clients/2) // the others go on
		engine  = e.engine()
		ctx     = storetest.Limited(t)
	)
	handle := func(fails, sleeps bool) handler {
		return func(context.Context) (idem.Response, error) {
			n := runs.Add(1)
			for range 50 { // let others meet it in flight
				runtime.Gosched()
			}
			if sleeps {
				select {
				case asleep <- struct{}{}:
					ends.wait(2) // long enough to be taken over
					<-asleep
				default:
				}
			}
			if fails {
				return idem.Response{}, errHandler
			}
			return idem.Response{Status: http.StatusCreated, Body: strconv.AppendInt(nil, n, 10)}, nil
		}
	}
	storetest.Together(w.clients, func(client int) {
		clock := client == 0
		rnd := mathrand.New(mathrand.NewPCG(uint64(client), 1))
		for i := range w.requests {
			if clock && w.leasesEnd && i%2 == 1 {
				history.EndLeases(func() { e.clock.Advance(storetest.LeaseOver) })
				ends.tell(false)
			}
			// On to new keys together: what matters happens before a key is finished.
			r := order("k"+strconv.Itoa(3*(i/5)+rnd.IntN(3)), "1")
			if rnd.IntN(8) == 0 {
				r.Body = []byte("2")
			}
			r.ReadFirst = rnd.IntN(3) == 0
			fn := handle(w.handlersFail && rnd.IntN(2) == 0, w.leasesEnd && !clock && rnd.IntN(2) == 0)
			_, err := history.Do(ctx, engine, r, fn)
			if err != nil && !matches(err, fine) {
				t.Errorf("client %d was told %v", client, err)
			}
		}
		if clock {
			ends.tell(true)
		}
	})
	history.Check(t)
}

func matches(err error, any []error) bool {
	for _, target := range any {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// leaseEnds counts how often the leases have ended.
type leaseEnds struct {
	sync.Cond
	n    int
	over bool // it won't happen any more
}

func newLeaseEnds() *leaseEnds { return &leaseEnds{Cond: sync.Cond{L: new(sync.Mutex)}} }

func (l *leaseEnds) tell(over bool) {
	l.L.Lock()
	defer l.L.Unlock()
	l.n++
	l.over = over
	l.Broadcast()
}

// wait returns when the leases have ended n times more.
func (l *leaseEnds) wait(n int) {
	l.L.Lock()
	defer l.L.Unlock()
	for n += l.n; l.n < n && !l.over; {
		l.Wait()
	}
}

// trouble returns a plan that strikes a third of the writes. The same write of
// an attempt is struck once only: five conflicts in a row are "in flight" to an
// engine, whatever the record says, and the model doesn't know that.
func trouble() idemtest.Plan {
	faults := []idemtest.Fault{
		{Err: store.ErrUnknown, Applied: true},
		{Err: store.ErrUnknown, Applied: true},
		{Err: store.ErrUnknown},
		{Err: idem.ErrConflict},
		{Err: errDown},
	}
	type write struct {
		owner string
		verb  idemtest.Verb
		ver   int64
	}
	var struck sync.Map
	return func(_ context.Context, c idemtest.Call) idemtest.Fault {
		var w write
		switch c.Verb { //nolint:exhaustive // a Take is played as a Load and a Commit
		case idemtest.Claim:
			w = write{c.Claim.Next.Owner, c.Verb, c.Claim.Next.Ver}
		case idemtest.Commit:
			w = write{c.Commit.Next.Owner, c.Verb, c.Commit.Next.Ver}
		case idemtest.Load, idemtest.LoadBody:
			if mathrand.IntN(10) == 0 {
				return idemtest.Fault{Err: errDown}
			}
			return idemtest.Fault{}
		}
		if _, again := struck.LoadOrStore(w, true); again {
			return idemtest.Fault{}
		}
		if i := mathrand.IntN(3 * len(faults)); i < len(faults) {
			return faults[i]
		}
		return idemtest.Fault{}
	}
}
