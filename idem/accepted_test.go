package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// accepting returns an engine that stores requests with their claims.
func accepting(optFns ...func(*idem.Options)) *abandoned {
	a := &abandoned{clock: idemtest.NewClock()}
	a.engine = idem.New(&a.mem, append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", a.clock.Now, true }}, optFns...)...)
	return a
}

// stops are events that can stop an attempt before its first commit, and whether
// they free the key.
var stops = map[string]struct {
	fn    func(context.Context) (idem.Response, error)
	freed bool
}{
	"an error": {func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("bad deploy") }, false},
	"a panic":  {func(context.Context) (idem.Response, error) { panic("bad deploy") }, false},
	"a 503": {func(context.Context) (idem.Response, error) {
		return idem.Response{Status: http.StatusServiceUnavailable}, nil
	}, false},
	"a phase that fails": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("bad deploy") })
		return idem.Response{}, err
	}, false},
	"a 409 after a phase that failed": {func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("bad deploy") })
		return idem.Response{Status: http.StatusConflict}, nil
	}, false},
	"a refusal, 409": {func(context.Context) (idem.Response, error) { return idem.Response{Status: http.StatusConflict}, nil }, true},
	"a refusal, 429": {func(context.Context) (idem.Response, error) {
		return idem.Response{Status: http.StatusTooManyRequests}, nil
	}, true},
}

// survived calls fn and recovers a panic that fn passes on.
func survived(fn func()) {
	defer func() { _ = recover() }()
	fn()
}

// A resumable route completes every accepted request, whatever stopped the
// request and whether or not its client retries. Only a refusal frees the key.
func TestAcceptedIsCompletedWhateverStoppedIt(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			survived(func() { _, _ = do(t, a.engine, stop.fn) })
			r := a.record(t)
			if !r.Lease.IsZero() || r.State != store.Open {
				t.Fatalf("state %q, lease until %v; want it open and given back", r.State, r.Lease)
			}
			if free := state.Freed(r) && r.Input == nil; free != stop.freed {
				t.Fatalf("keep %q, expires %v, request %v; want the key free: %v", r.Keep, r.Expires, r.Input, stop.freed)
			}
			err := a.resume(t, a.engine, jobs.TicketFor(r), completes)
			if stop.freed {
				if !errors.Is(err, jobs.ErrMoved) {
					t.Errorf("a completer gets %v for a key that is free", err)
				}
				return
			}
			if r := a.record(t); err != nil || r.State != store.Done || r.Response.Status != 201 || len(a.mem.Writes()) != 1 {
				t.Errorf("completed: %v, state %q, writes %v", err, r.State, written(&a.mem))
			}
		})
	}
}

// The client's own retry need not wait for a completer, and voids the completer's
// ticket.
func TestClientsRetryGoesFirst(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			survived(func() { _, _ = do(t, a.engine, stop.fn) })
			ticket := jobs.TicketFor(a.record(t))
			a.clock.Advance(2 * time.Second) // the pause after an answer that was withheld
			res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) })
			if err != nil || res.Status != 201 || res.Replayed {
				t.Fatalf("the retry gets %+v, %v", res, err)
			}
			if err := a.resume(t, a.engine, ticket, completes); !errors.Is(err, jobs.ErrMoved) {
				t.Errorf("the ticket is still good: %v", err)
			}
			if n := len(a.mem.Writes()); n != 1 {
				t.Errorf("%d writes, want 1", n)
			}
		})
	}
}

// Without Resumable no completer finishes the operation: an error before the
// first commit frees the key.
func TestNotResumableGivesTheKeyBack(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable = false })
			survived(func() { _, _ = do(t, a.engine, stop.fn) })
			if r := a.record(t); !state.Freed(r) {
				t.Errorf("keep %q, expires %v", r.Keep, r.Expires)
			}
		})
	}
}

// A handler that never returns a storable answer is given up, with its last
// status as cause.
func TestUnstoredStatusIsTheCause(t *testing.T) {
	t.Parallel()
	const tries = 2
	a := accepting(func(o *idem.Options) { o.MaxTries = tries })
	busy := reserves(503)
	if res, err := do(t, a.engine, busy); err != nil || res.Status != 503 {
		t.Fatalf("%+v, %v", res, err)
	}
	const said = "the handler answered 503, which is not stored"
	if r := a.record(t); r.LastErr != said {
		t.Errorf("last error %q", r.LastErr)
	}
	var err error
	for range tries + 1 {
		err = a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return busy(ctx) })
	}
	if r := a.record(t); !errors.Is(err, idem.ErrStuck) || r.State != store.Stuck || r.LastErr != "not completed in 2 tries: "+said {
		t.Errorf("%v, state %q: %s", err, r.State, r.LastErr)
	}
}

// A request that was accepted, and under which nothing was ever done, is let go: one
// client could have any number of them wait for people (R154).
func TestNothingDoneIsLetGo(t *testing.T) {
	t.Parallel()
	const tries = 2
	a := accepting(func(o *idem.Options) { o.MaxTries = tries })
	down := func(context.Context, *idem.Request) (idem.Response, error) {
		return idem.Response{}, errors.New("bad deploy")
	}
	_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return down(ctx, nil) })
	var err error
	for range tries + 1 {
		err = a.resume(t, a.engine, jobs.TicketFor(a.record(t)), down)
	}
	r := a.record(t)
	if !errors.Is(err, jobs.ErrMoved) || r.State != store.Open || !state.Freed(r) || r.Input != nil {
		t.Errorf("%v: state %q, keep %q, expires %v", err, r.State, r.Keep, r.Expires)
	}
	if res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) }); err != nil || res.Status != 201 {
		t.Errorf("the key's next request: %+v, %v", res, err)
	}
}

// Nor does it wait for people: who asks for that hears that there is nothing to decide.
func TestNothingDoneIsNotMarkedStuck(t *testing.T) {
	t.Parallel()
	a := accepting()
	_, _ = do(t, a.engine, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("bad deploy") })
	err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "nobody came")
	if r := a.record(t); !errors.Is(err, jobs.ErrMoved) || !state.Freed(r) {
		t.Errorf("%v: state %q, keep %q", err, r.State, r.Keep)
	}
}

// A handler may run for any time. A release leaves the operation to its client
// for the whole grace after that, and a freed key differs from an abandoned key.
func TestGivingBackNotesItsTime(t *testing.T) {
	t.Parallel()
	for name, resumable := range map[string]bool{"kept": true, "freed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable = resumable })
			begun := a.clock.Now()
			_, err := do(t, a.engine, func(context.Context) (idem.Response, error) {
				a.clock.Advance(40 * time.Minute)
				return idem.Response{}, errors.New("down")
			})
			if r := a.record(t); err == nil || !r.Run.Equal(a.clock.Now()) || !r.Created.Equal(begun) {
				t.Errorf("%v: run at %v, created at %v; want the time it was given back, and %v", err, r.Run, r.Created, begun)
			}
		})
	}
}

// Jobs wait since the finish that staged them, however long the handler ran.
func TestFinishNotesItsTime(t *testing.T) {
	t.Parallel()
	a := accepting()
	if _, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		a.clock.Advance(40 * time.Minute)
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1))
	}); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.Keep != store.KeepJobs || !r.Run.Equal(a.clock.Now()) {
		t.Errorf("keep %q, run at %v, want the finish", r.Keep, r.Run)
	}
}
