package idemtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

var errDown = errors.New("the store is down")

func TestFaultLosesAnswersAsPlanned(t *testing.T) {
	cause := errors.New("planned")
	for name, tt := range map[string]struct {
		fault   Fault
		want    error
		applied bool
	}{
		"none":               {Fault{}, nil, true},
		"fails":              {Fault{Err: cause}, cause, false},
		"applied, then lost": {Fault{Err: cause, Applied: true}, cause, true},
		"crash before":       {Fault{Crash: true}, ErrCrashed, false},
		"crash after":        {Fault{Crash: true, Applied: true}, ErrCrashed, true},
	} {
		t.Run(name, func(t *testing.T) {
			below := new(idem.MemoryStore)
			store := Faulty(below, At("Claim", 1, tt.fault))
			c := storetest.ClaimAt(NewClock().Now())
			if _, err := store.Claim(storetest.Limited(t), c); !errors.Is(err, tt.want) {
				t.Errorf("Claim returned %v, want %v", err, tt.want)
			}
			if r := storetest.Load(t, below, c.Next.PK); (r != nil) != tt.applied {
				t.Errorf("stored is %+v, want it applied: %t", r, tt.applied)
			}
		})
	}
}

func TestAtStrikesTheCallItNames(t *testing.T) {
	store := Faulty(new(idem.MemoryStore), At("Load", 2, Fault{Err: errDown}))
	for i, want := range []error{nil, errDown, nil} {
		if _, err := store.Load(storetest.Limited(t), "k"); !errors.Is(err, want) {
			t.Errorf("call %d returned %v, want %v", i+1, err, want)
		}
	}
	store.Reset(At("Load", 0, Fault{Err: errDown}))
	for i := range 3 {
		if _, err := store.Load(storetest.Limited(t), "k"); !errors.Is(err, errDown) {
			t.Errorf("call %d returned %v, want %v", i+1, err, errDown)
		}
	}
}

func TestFaultyStoreCountsByVerb(t *testing.T) {
	st := Faulty(new(idem.MemoryStore), nil)
	ctx := storetest.Limited(t)
	r := storetest.ClaimAt(NewClock().Now()).Next
	_, _ = st.Claim(ctx, store.Claim{Next: r, Now: r.Created})
	_, _ = st.Commit(ctx, store.Commit{Prev: r, Next: finishedNext(r, nil)})
	_, _ = st.Commit(ctx, store.Commit{Prev: r, Next: finishedNext(r, nil)})
	_, _ = st.Load(ctx, r.PK)
	_ = st.LoadBody(ctx, r)
	got := []int{
		st.Calls(), st.Calls("Claim"), st.Calls("Commit"), st.Calls("Load"), st.Calls("LoadBody"),
		st.Calls("Claim", "Commit"),
	}
	if want := []int{5, 1, 2, 1, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if st.Reset(nil); st.Calls() != 0 {
		t.Error("Reset did not forget the calls")
	}
}

func TestACrashedProcessDoesNothingMore(t *testing.T) {
	below := new(idem.MemoryStore)
	st := Faulty(below, CrashAt(2, false))
	ctx := storetest.Limited(t)
	r := storetest.ClaimAt(NewClock().Now()).Next
	if _, err := st.Claim(ctx, store.Claim{Next: r, Now: r.Created}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := st.Commit(ctx, store.Commit{Prev: r, Next: finishedNext(r, nil)}); !errors.Is(err, ErrCrashed) {
			t.Errorf("Commit returned %v, want ErrCrashed", err)
		}
		if _, err := st.Load(ctx, r.PK); !errors.Is(err, ErrCrashed) {
			t.Errorf("Load returned %v, want ErrCrashed", err)
		}
	}
	if got := storetest.Load(t, below, r.PK); got.Ver != 1 || !st.Crashed() || st.Calls() != 2 {
		t.Errorf("stored is %+v after %d calls, crashed is %t", got, st.Calls(), st.Crashed())
	}
	st.Reset(nil)
	if _, err := st.Load(ctx, r.PK); err != nil || st.Crashed() {
		t.Errorf("after the restart Load returned %v", err)
	}
}

// What is under way when the process goes down may reach the store, but its
// answer reaches nobody.
func TestACrashTakesCallsUnderWayWithIt(t *testing.T) {
	for name, stage := range map[string]func(gate *storetest.Gate) (Plan, store.Store){
		"before the store": func(g *storetest.Gate) (Plan, store.Store) {
			return func(ctx context.Context, _ Call) Fault { g.Pass(ctx); return Fault{} }, new(idem.MemoryStore)
		},
		"in the store": func(g *storetest.Gate) (Plan, store.Store) {
			return nil, Faulty(new(idem.MemoryStore), func(ctx context.Context, _ Call) Fault { g.Pass(ctx); return Fault{} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := storetest.NewGate()
			plan, below := stage(g)
			st := Faulty(below, plan)
			ctx, done := storetest.Limited(t), make(chan error)
			go func() {
				_, err := st.Load(ctx, "k")
				done <- err
			}()
			g.Reached(t)
			st.Crash()
			g.Open()
			if err := <-done; !errors.Is(err, ErrCrashed) {
				t.Errorf("Load returned %v, want ErrCrashed", err)
			}
		})
	}
}

// A plan that blocks delays its call, no longer than the caller waits, and no
// other call.
func TestAPlanCanDelayACall(t *testing.T) {
	g := storetest.NewGate()
	store := Faulty(new(idem.MemoryStore), func(ctx context.Context, c Call) Fault {
		if c.Verb == "Claim" {
			g.Pass(ctx)
		}
		return Fault{Err: ctx.Err()}
	})
	ctx, cancel := context.WithCancel(storetest.Limited(t))
	done := make(chan error)
	go func() {
		_, err := store.Claim(ctx, storetest.ClaimAt(NewClock().Now()))
		done <- err
	}()
	g.Reached(t)
	if _, err := store.Load(storetest.Limited(t), "k"); err != nil {
		t.Errorf("Load beside it: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Claim returned %v, want context.Canceled", err)
	}
}

// full is a store with the optional methods.
type full struct{ idem.MemoryStore }

func (*full) LoadBody(_ context.Context, r *store.Record) error {
	r.Response.Body = []byte("loaded")
	return nil
}

func TestFaultyStoreForwardsTheOptionalMethods(t *testing.T) {
	ctx := storetest.Limited(t)
	st := Faulty(new(full), nil)
	r := &store.Record{Response: new(idem.Response)}
	if err := st.LoadBody(ctx, r); err != nil || string(r.Response.Body) != "loaded" {
		t.Errorf("LoadBody returned %v and %+v", err, r.Response)
	}
	st.Reset(func(context.Context, Call) Fault { return Fault{Err: errDown} })
	if err := st.LoadBody(ctx, r); !errors.Is(err, errDown) {
		t.Errorf("LoadBody returned %v, want %v", err, errDown)
	}

	plain := Faulty(new(idem.MemoryStore), nil)
	if err := plain.LoadBody(ctx, r); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("LoadBody of a store without it returned %v, want idem.ErrNotKept", err)
	}
}

// A plan for a method that no store has would never strike, and its test would pass.
func TestAtRefusesAnUnknownVerb(t *testing.T) {
	defer func() {
		if got := recover(); got == nil {
			t.Error("At(\"claim\", …) returned, want a panic")
		}
	}()
	At("claim", 1, Fault{})
}
