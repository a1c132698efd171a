package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/prove"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// Many keys at once: 100 goroutines ask for the same keys in their own
// order. One execution for each key, and never a 500.
func TestOneExecutionPerKey(t *testing.T) {
	t.Parallel()
	const goroutines = 30
	keys := prove.Some(10, 40)
	tab := newLocal(t)
	engine := tab.Engine()
	prefix := tabletest.NewKey()

	runs := make([]atomic.Int32, keys)
	var outcomes [4]atomic.Int32 // executed, replayed, in flight, no answer of the table in time
	ask := func(engine *idem.Engine, k int) {
		want := fmt.Sprintf("answer %d", k)
		res, err := engine.Do(t.Context(), tabletest.Post(fmt.Sprint(prefix, k), want), func(ctx context.Context) (idem.Response, error) {
			runs[k].Add(1)
			return tabletest.Created(want)(ctx)
		})
		switch {
		case errors.Is(err, idem.ErrInFlight):
			outcomes[2].Add(1)
		case errors.Is(err, idem.ErrUnavailable): // a claim gets a minute, which may be too little on a slow machine
			outcomes[3].Add(1)
		case err != nil:
			t.Errorf("key %d: %v", k, err)
		case string(res.Body) != want:
			t.Errorf("key %d was answered %q", k, res.Body)
		case res.Replayed:
			outcomes[1].Add(1)
		default:
			outcomes[0].Add(1)
		}
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for _, k := range rand.Perm(keys) {
				ask(engine, k)
			}
		})
	}
	wg.Wait()
	later := tab.Engine(tabletest.Ahead(2 * tabletest.Lease))
	for k := range runs {
		if runs[k].Load() == 0 && outcomes[3].Load() > 0 { // claimed by who was not told
			ask(later, k)
		}
	}
	for k := range runs {
		if n := runs[k].Load(); n != 1 {
			t.Errorf("key %d ran %d times", k, n)
		}
	}
	t.Logf("%d executed, %d replayed, %d in flight, %d not answered in time", outcomes[0].Load(), outcomes[1].Load(), outcomes[2].Load(), outcomes[3].Load())
	if n := int(outcomes[0].Load()); n != keys {
		t.Errorf("%d answers were executions, want %d", n, keys)
	}
}

// A thousand equal requests at once. One execution, the others in
// flight or replayed, and no 500.
func TestThousandDuplicates(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine()
	req := tabletest.Post("", "{}")
	req.Header = http.Header{idem.KeyHeader: {tabletest.NewKey()}}
	var runs atomic.Int32
	var slow atomic.Bool
	var mu sync.Mutex
	statuses, bodies := map[int]int{}, map[string]bool{}
	ask := func(engine *idem.Engine) (idem.Result, error) {
		return engine.Serve(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
			return tabletest.Created(fmt.Sprint("run ", runs.Add(1)))(ctx)
		})
	}
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			res, err := ask(engine)
			for err == nil && res.Status == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "" {
				slow.Store(true) // a claim gets a minute, which may be too little on a slow machine
				res, err = ask(engine)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			statuses[res.Status]++
			if res.Status == http.StatusCreated {
				bodies[string(res.Body)] = true
			} else if res.Header.Get("Retry-After") == "" {
				t.Errorf("%d without Retry-After: %s", res.Status, res.Body)
			}
		})
	}
	wg.Wait()
	if runs.Load() == 0 && slow.Load() { // claimed by who was not told
		res, err := ask(tab.Engine(tabletest.Ahead(2 * tabletest.Lease)))
		if err != nil || res.Status != http.StatusCreated {
			t.Errorf("after the lease: %d, %v", res.Status, err)
		}
		bodies[string(res.Body)] = true
	}
	t.Logf("statuses %v", statuses)
	if runs.Load() != 1 || len(bodies) != 1 || statuses[http.StatusCreated]+statuses[http.StatusConflict] != 1000 {
		t.Errorf("%d runs, %d different answers, statuses %v", runs.Load(), len(bodies), statuses)
	}
}

// A host whose clock is an hour ahead takes leases over too early.
// The handler then runs twice, but the record takes one answer, which both give.
func TestClockAheadChangesNothingTwice(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	sound, ahead := tab.Engine(), tab.Engine(tabletest.Ahead(time.Hour))
	res, err := sound.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		early, err := ahead.Do(context.WithoutCancel(t.Context()), req, tabletest.Created("early"))
		if err != nil || early.Replayed {
			t.Errorf("the host ahead got %+v, %v", early, err)
		}
		return tabletest.Created("late")(ctx)
	})
	if err != nil || !res.Replayed || string(res.Body) != "early" {
		t.Errorf("the overtaken host answers %q, replayed=%t, %v; want the stored answer", res.Body, res.Replayed, err)
	}
	tabletest.Replays(t, sound, req, "early")
	tabletest.Replays(t, ahead, req, "early")
}

// Many claims over one lease that is over, with the holder waking up among
// them: one winner a key, and whoever lost writes nothing.
func TestOneTakeOver(t *testing.T) {
	t.Parallel()
	const rivals = 20
	keys := prove.Some(8, 25)
	tab := newLocal(t)
	for k := range keys {
		req := tabletest.Post(tabletest.NewKey(), "{}")
		var mu sync.Mutex
		var answers []string // given as executed
		runs := 0

		entered, wake := make(chan struct{}), make(chan struct{})
		var holder sync.WaitGroup
		holder.Go(func() { // claims, sleeps past its lease, wakes up among the rivals
			res, err := tab.Engine().Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				close(entered)
				<-wake
				return tabletest.Created("holder")(ctx)
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && !res.Replayed:
				answers = append(answers, string(res.Body))
			case err != nil && !errors.Is(err, idem.ErrInFlight) && !errors.Is(err, idem.ErrLeaseLost):
				t.Errorf("the holder got %v", err)
			}
		})
		<-entered
		close(wake)
		later := tab.Engine(tabletest.Ahead(2 * tabletest.Lease))
		var wg sync.WaitGroup
		for i := range rivals {
			wg.Go(func() {
				name := fmt.Sprint("rival ", i)
				res, err := later.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
					mu.Lock()
					runs++
					mu.Unlock()
					return tabletest.Created(name)(ctx)
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && !res.Replayed:
					answers = append(answers, string(res.Body))
				case err != nil && !errors.Is(err, idem.ErrInFlight):
					t.Errorf("%s got %v", name, err)
				}
			})
		}
		wg.Wait()
		holder.Wait()
		if runs > 1 {
			t.Errorf("key %d was taken over %d times", k, runs)
		}
		if len(answers) != 1 {
			t.Errorf("key %d: %q were all given as executed", k, answers)
			continue
		}
		tabletest.Replays(t, later, req, answers[0])
	}
}

// Each of two requests reads both items and writes one of them, as long as the
// other is untouched. Run one after the other, one of them finds it touched; so
// both must never commit.
func TestWriteSkewIsRefused(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	engine := tab.Engine()
	onCall := func(round, me int) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
				left := 0
				for doctor := range 2 {
					var c counter
					if _, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID(fmt.Sprint(round, "-", doctor)), &c); err != nil {
						return idem.Response{}, err
					}
					left += c.N
				}
				if left < 2 {
					return idem.Response{Status: 409}, nil
				}
				tx.Write(dynamo.Put(app, counter{ID: fmt.Sprint(round, "-", me), N: 0}))
				return idem.Response{Status: 200}, nil
			})
		}
	}
	for round := range prove.Some(10, 40) {
		for doctor := range 2 {
			putItem(t, tab, app, counter{ID: fmt.Sprint(round, "-", doctor), N: 1})
		}
		var wg sync.WaitGroup
		for me := range 2 {
			wg.Go(func() {
				if err := persist(t, engine, onCall(round, me)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		a, _ := tabletest.Read[counter](t, tab.Table, app, fmt.Sprint(round, "-0"))
		b, _ := tabletest.Read[counter](t, tab.Table, app, fmt.Sprint(round, "-1"))
		if a.N+b.N != 1 {
			t.Fatalf("round %d: %d and %d are left, want one", round, a.N, b.N)
		}
	}
}

// Read, add one, write: the check of what was read is folded into the write, as
// DynamoDB takes an item once.
func TestReadModifyWriteUnderContention(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	engine := tab.Engine()
	var wg sync.WaitGroup
	const n = 12
	for range n {
		wg.Go(func() {
			err := persist(t, engine, func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					c := counter{ID: "hits"}
					if _, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID("hits"), &c); err != nil {
						return idem.Response{}, err
					}
					c.N++
					tx.Write(dynamo.Put(app, c))
					return idem.Response{Status: 200}, nil
				})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c, _ := tabletest.Read[counter](t, tab.Table, app, "hits"); c.N != n {
		t.Errorf("the counter is %d after %d requests", c.N, n)
	}
}

// At any number of processes at once, a bucket gives what it holds and no more.
func TestSharedBucketAtOnce(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	now := time.Now()
	var got, refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			b := tab.Store.Buckets()
			var full time.Time
			for range 12 {
				l := lotOf("b", 3, now)
				l.Full = full
				leased, err := b.Lease(t.Context(), l)
				switch {
				case errors.Is(err, idem.ErrConflict):
				case err != nil:
					t.Error(err)
				case (leased.Tokens == 0) != (leased.Wait > 0):
					t.Errorf("leased %+v", leased)
				case leased.Tokens == 0:
					refused.Add(1)
				}
				got.Add(leased.Tokens)
				full = leased.Full
			}
		})
	}
	wg.Wait()
	if got.Load() != 100 || refused.Load() == 0 {
		t.Errorf("%d tokens were given and %d leases refused, want the bucket's 100, and some", got.Load(), refused.Load())
	}
}
