package linear

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/failtest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

const clients = 32

// The environment: how many keys each client uses.
const (
	envMemory = "LINEAR_KEYS"
	envDynamo = "LINEAR_DYNAMO_KEYS"
)

var (
	errHandler = errors.New("the handler fails")
	errDown    = errors.New("the store is down")
)

// TestLinearizable has 32 clients ask for the same keys, with faults: each key's
// history is one that single requests in some order could have. What is unknown to a
// client may take effect at any later time.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	load := workload{keys: setting(t, envMemory, 200), together: 8}
	load.play(t, new(idem.MemoryStore)).log(t, "linearizability, memory store")
}

// TestLinearizableOnDynamoDB is the same on DynamoDB Local, with fewer keys.
func TestLinearizableOnDynamoDB(t *testing.T) {
	t.Parallel()
	load := workload{keys: setting(t, envDynamo, 10), together: 4}
	load.play(t, onDynamoDB(t)).log(t, "linearizability, DynamoDB Local")
}

// TestBrokenStoresAreFound breaks one condition of a store: the histories tell.
func TestBrokenStoresAreFound(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]broken{
		"claims over live records":   {claims: true},
		"commits for any owner":      {commits: true},
		"takes what it has answered": {answers: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken.Store = new(idem.MemoryStore)
			found := failtest.Run(func(tb testing.TB) {
				tb.Helper()
				workload{keys: 100, together: 8}.play(tb, &broken)
			})
			if len(found) == 0 {
				t.Error("no history tells")
			}
		})
	}
}

// broken is a store without one of its conditions.
type broken struct {
	store.Store
	claims, commits, answers bool
}

func (b *broken) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	held, err := b.Store.Claim(ctx, c)
	if err != nil || held == nil || !b.claims && (!b.answers || held.State != store.Done) {
		return held, err
	}
	next := c.Next.Clone()
	next.Ver = held.Ver + 1
	return b.Store.Commit(ctx, store.Commit{Prev: held, Next: next})
}

func (b *broken) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	held, err := b.Store.Commit(ctx, c)
	if err != nil || held == nil || !b.commits {
		return held, err
	}
	next := c.Next.Clone()
	next.Ver = held.Ver + 1
	return b.Store.Commit(ctx, store.Commit{Prev: held, Next: next})
}

// workload is what the clients do: each uses each key. So many go from key to key
// together: the time to check a history doubles with each request that is under way
// while others are.
type workload struct{ keys, together int }

// played are the figures of a run.
type played struct {
	Name     string         `json:"name"`
	Clients  int            `json:"clients"`
	Keys     int            `json:"keys"`
	Requests int64          `json:"requests"`
	Runs     int64          `json:"handler_runs"`
	Faults   map[string]int `json:"by_fault"`
	Wall     string         `json:"wall_time"`
}

func (p *played) log(t *testing.T, name string) {
	t.Helper()
	p.Name = name
	for _, f := range []string{"answer lost", "request lost", "conflict", "down", "crash before", "crash after", "late copy", "leases end"} {
		if p.Faults[f] == 0 && p.Requests >= 10_000 {
			t.Errorf("fault %q never happened", f)
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("EVIDENCE %s", b)
}

// play runs the clients on s. Failures go to tb.
func (l workload) play(tb testing.TB, s store.Store) *played {
	tb.Helper()
	var (
		history  = Recorder{Lossy: true}
		clock    = idemtest.NewClock()
		faults   = &faulty{counts: make(map[string]int), store: s}
		requests atomic.Int64
		runs     atomic.Int64
		begun    = time.Now()
	)
	start := func() (*idemtest.FaultyStore, *idem.Engine) {
		process := idemtest.Faulty(s, faults.plan)
		return process, idem.New(process, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	}
	storetest.Together(clients, func(client int) {
		rnd := rand.New(rand.NewPCG(uint64(client), 7))
		process, engine := start()
		for i := range l.keys {
			key := (i + client/l.together*l.together*l.keys/clients) % l.keys
			if process.Crashed() {
				process, engine = start()
			}
			if client == 0 && i%10 == 9 {
				history.EndLeases(func() { clock.Advance(storetest.LeaseOver) })
				faults.count("leases end")
			}
			r := idem.Request{Key: "k" + strconv.Itoa(key), Method: http.MethodPost, Path: "/rides", Route: "/rides", Body: []byte("1")}
			if rnd.IntN(8) == 0 {
				r.Body = []byte("2")
			}
			fails := rnd.IntN(3) == 0
			r.ReadFirst = rnd.IntN(2) == 0 // true or not
			requests.Add(1)
			ctx, cancel := context.WithTimeout(context.Background(), storetest.Limit)
			_, _ = history.Do(ctx, engine, r, func(context.Context) (idem.Response, error) {
				n := runs.Add(1)
				for range rnd.IntN(50) { // let others meet it
					runtime.Gosched()
				}
				if fails {
					return idem.Response{}, errHandler
				}
				return idem.Response{Status: http.StatusCreated, Body: strconv.AppendInt(nil, n, 10)}, nil
			})
			cancel()
		}
	})
	history.Check(tb)
	return &played{
		Clients: clients, Keys: l.keys, Requests: requests.Load(), Runs: runs.Load(), Faults: faults.counts,
		Wall: time.Since(begun).Round(time.Millisecond).String(),
	}
}

// faulty is the faults of all processes.
type faulty struct {
	mu     sync.Mutex
	counts map[string]int
	struck map[write]bool
	store  store.Store
}

// write is a write of an attempt. It is struck once: after five conflicts in a row the
// record is in flight to an engine, which the model doesn't know.
type write struct {
	owner string
	verb  idemtest.Verb
	ver   int64
}

func (f *faulty) count(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[name]++
}

func (f *faulty) again(w write) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.struck == nil {
		f.struck = make(map[write]bool)
	}
	again := f.struck[w]
	f.struck[w] = true
	return again
}

func (f *faulty) plan(_ context.Context, c idemtest.Call) idemtest.Fault {
	strike := func(name string, fault idemtest.Fault) idemtest.Fault {
		f.count(name)
		return fault
	}
	var w write
	done := false
	switch c.Verb {
	case idemtest.Claim:
		w = write{c.Claim.Next.Owner, c.Verb, c.Claim.Next.Ver}
	case idemtest.Commit:
		w = write{c.Commit.Next.Owner, c.Verb, c.Commit.Next.Ver}
		done = c.Commit.Next.State == store.Done
	default:
		if rand.IntN(20) == 0 {
			return strike("down", idemtest.Fault{Err: errDown})
		}
		return idemtest.Fault{}
	}
	if f.again(w) {
		return idemtest.Fault{}
	}
	// A crash in a release would look to the recorder like a release.
	mayCrash := c.Verb == idemtest.Claim || done
	switch n := rand.IntN(40); {
	case n < 3:
		return strike("answer lost", idemtest.Fault{Err: store.ErrUnknown, Applied: true})
	case n < 5:
		return strike("request lost", idemtest.Fault{Err: store.ErrUnknown})
	case n < 7:
		return strike("conflict", idemtest.Fault{Err: store.ErrConflict})
	case n < 8:
		return strike("down", idemtest.Fault{Err: errDown})
	case n < 9 && mayCrash:
		return strike("crash before", idemtest.Fault{Crash: true})
	case n < 10 && mayCrash:
		return strike("crash after", idemtest.Fault{Crash: true, Applied: true})
	case n < 12 && c.Verb == idemtest.Commit:
		// A copy of it is applied before: it has overtaken the packet that is
		// answered.
		copied := store.Commit{Prev: c.Commit.Prev.Clone(), Next: c.Commit.Next.Clone(), Writes: c.Commit.Writes}
		_, _ = f.store.Commit(context.Background(), copied)
		return strike("late copy", idemtest.Fault{})
	}
	return idemtest.Fault{}
}
