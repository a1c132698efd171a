package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineTakeOver tests records whose lease is over, while the holder may still be alive.
func engineTakeOver(s suite) {
	s.run("a holder that timed out is waited for until its lease is over, then taken over", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		old := e.record(t, order("k", "1"))
		eng := e.engine()

		r := do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		left := old.Lease.Sub(e.clock.Now())
		if ierr, ok := errors.AsType[*idem.Error](r.err); !ok || ierr.RetryAfter != min(left, defaults.MaxRetryAfter) {
			t.Errorf("%v does not say to retry after %v", r.err, min(left, defaults.MaxRetryAfter))
		}
		e.clock.Advance(left - 1e6)
		do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		a.ran(t, 0)

		e.clock.Advance(1e6)
		var first result
		e.costs(t, 3, func() { // the refused claim, the take-over, the finish
			first = do(t, eng, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
				if op, ok := idem.FromContext(ctx); !ok || !op.TakenOver() || op.ID() != old.ID {
					t.Errorf("the handler is told %+v, want operation %s resumed", op, old.ID)
				}
				return a.run(ctx)
			}).first(t)
		})
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	// The margin is needed because a function can outlive its deadline a little, and clocks differ.
	s.run("the lease outlasts the holder's deadline by the margin", func(t *testing.T, e *env) {
		var a app
		margin := func(o *idem.Options) { o.LeaseMargin = storetest.Limit }
		e.abandon(t, order("k", "1"), margin)
		e.clock.Advance(storetest.Limit) // the holder's deadline is over
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		e.clock.Advance(storetest.Limit)
		do(t, e.engine(), order("k", "1"), a.run).first(t)
		a.ran(t, 1)
	})

	s.run("a new operation is not resumed", func(t *testing.T, e *env) {
		do(t, e.engine(), order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			if op, ok := idem.FromContext(ctx); !ok || op.TakenOver() || op.ID() == "" {
				t.Errorf("the handler is told %+v, want a new operation with an id", op)
			}
			return idem.Response{}, nil
		}).first(t)
	})

	s.run("a late success after a take-over changes nothing and gets the key's answer", func(t *testing.T, e *env) {
		var late, a app
		var lost atomic.Int64
		eng := e.engine(func(o *idem.Options) { o.Hooks.LeaseLost = func(context.Context, idem.Event) { lost.Add(1) } })
		g := storetest.NewGate()
		held := begin(t, eng, order("k", "1"), late.held(g))
		g.Reached(t)
		e.clock.Advance(storetest.LeaseOver)
		first := do(t, eng, order("k", "1"), a.run).first(t)
		want := e.record(t, order("k", "1"))

		g.Open()
		(<-held).replays(t, first)
		storetest.SameRecord(t, e.record(t, order("k", "1")), want)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		late.ran(t, 1)
		a.ran(t, 1)
		if n := lost.Load(); n != 1 {
			t.Errorf("LeaseLost was called %d times, want once", n)
		}
	})

	s.run("a late success while its successor is at work is told so", func(t *testing.T, e *env) {
		var late, a app
		eng := e.engine()
		g, g2 := storetest.NewGate(), storetest.NewGate()
		held := begin(t, eng, order("k", "1"), late.held(g))
		g.Reached(t)
		e.clock.Advance(storetest.LeaseOver)
		successor := begin(t, eng, order("k", "1"), a.held(g2))
		g2.Reached(t)
		want := e.record(t, order("k", "1"))

		g.Open()
		(<-held).refused(t, idem.ErrLeaseLost, idem.ErrInFlight)
		storetest.SameRecord(t, e.record(t, order("k", "1")), want)
		g2.Open()
		first := (<-successor).first(t)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
	})

	s.run("a late success whose key has expired and was used anew leaves the new operation alone", func(t *testing.T, e *env) {
		var late, a app
		eng := e.engine()
		g := storetest.NewGate()
		held := begin(t, eng, order("k", "1"), late.held(g))
		g.Reached(t)
		e.clock.Advance(2 * defaults.Retention)
		first := do(t, eng, order("k", "2"), a.run).first(t)
		want := e.record(t, order("k", "2"))
		g.Open()
		(<-held).refused(t, idem.ErrLeaseLost)
		storetest.SameRecord(t, e.record(t, order("k", "2")), want)
		do(t, eng, order("k", "2"), a.run).replays(t, first)
	})

	s.run("a late failure after a take-over leaves the winner's record", func(t *testing.T, e *env) {
		for _, end := range []handler{
			func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("too late anyway") },
			func(context.Context) (idem.Response, error) { return idem.Response{Status: 500}, nil },
		} {
			var a app
			eng := e.engine(func(o *idem.Options) { o.Namespace += e.clock.Now().Format(".20060102150405") })
			g := storetest.NewGate()
			held := begin(t, eng, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
				g.Pass(ctx)
				return end(ctx)
			})
			g.Reached(t)
			e.clock.Advance(storetest.LeaseOver)
			first := do(t, eng, order("k", "1"), a.run).first(t)
			g.Open()
			(<-held).replays(t, first)
			do(t, eng, order("k", "1"), a.run).replays(t, first)
			a.ran(t, 1)
		}
	})

	s.run("a late panic after a take-over leaves the winner's record", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		g := storetest.NewGate()
		ctx, recovered := storetest.Limited(t), make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			_, _ = eng.Do(ctx, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
				g.Pass(ctx)
				panic("too late anyway") //nolint:forbidigo // it is what is tested
			})
		}()
		g.Reached(t)
		e.clock.Advance(storetest.LeaseOver)
		first := do(t, eng, order("k", "1"), a.run).first(t)
		g.Open()
		if got := <-recovered; got != "too late anyway" {
			t.Errorf("recovered %v, want the handler's own panic", got)
		}
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("of 20 callers that find a lease over one takes it", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		eng := e.engine()
		ctx := storetest.Limited(t)
		storetest.Together(20, func(int) {
			res, err := eng.Do(ctx, order("k", "1"), a.run)
			if err != nil && !errors.Is(err, idem.ErrInFlight) {
				t.Errorf("got %v", result{res, err})
			}
		})
		a.ran(t, 1)
		do(t, eng, order("k", "1"), a.run)
		a.ran(t, 1)
	})

	// In the next three scenarios, another attempt takes over between the refused claim and
	// the take-over of the attempt under test.
	s.run("who comes second to a take-over gets what the first has stored", func(t *testing.T, e *env) {
		var a, other app
		var theirs result
		others := e.beatenBy(t, func(others *idem.Engine) {
			theirs = do(t, others, order("k", "1"), other.run).first(t)
		})
		do(t, e.engine(), order("k", "1"), a.run).replays(t, theirs)
		do(t, others, order("k", "1"), a.run).replays(t, theirs)
		a.ran(t, 0)
	})

	s.run("who comes second to a take-over is told that the first is at work", func(t *testing.T, e *env) {
		var a, other app
		g := storetest.NewGate()
		var held <-chan result
		e.beatenBy(t, func(others *idem.Engine) {
			held = begin(t, others, order("k", "1"), other.held(g))
			g.Reached(t)
		})
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		g.Open()
		(<-held).first(t)
		a.ran(t, 0)
	})

	s.run("who comes second to a take-over that was given back takes over after it", func(t *testing.T, e *env) {
		var a, other app
		others := e.beatenBy(t, func(others *idem.Engine) {
			do(t, others, order("k", "1"), other.fail(errHandler)).refused(t, errHandler)
		})
		first := do(t, e.engine(), order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			res, err := others.Do(ctx, order("k", "1"), other.run)
			result{res, err}.refused(t, idem.ErrInFlight) // the outer attempt holds the lease
			return a.run(ctx)
		}).first(t)
		do(t, others, order("k", "1"), other.run).replays(t, first)
		a.ran(t, 1)
		other.ran(t, 1)
	})

	s.run("a failed attempt after a take-over frees the key", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		cause := errors.New("not yet")
		do(t, e.engine(), order("k", "1"), a.fail(cause)).refused(t, cause)
		do(t, e.engine(), order("k", "2"), a.run).first(t)
		a.ran(t, 2)
	})

	s.run("a failed attempt after one that may have made a call keeps the operation for the next", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		e.abandon(t, order("k", "1"), callsOut)
		id := e.record(t, order("k", "1")).ID
		e.clock.Advance(storetest.LeaseOver)
		cause := errors.New("not yet")
		do(t, eng, order("k", "1"), a.fail(cause)).refused(t, cause)
		do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch)
		do(t, eng, order("k", "1"), a.calls).first(t)
		if got := e.record(t, order("k", "1")).ID; got != id {
			t.Errorf("the operation's id became %s, was %s", got, id)
		}
		a.ran(t, 2)
	})

	s.run("a stuck record is neither taken over nor run", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		e.abandon(t, order("k", "1"))
		r := e.record(t, order("k", "1"))
		storetest.MustCommit(t, e.inner, r, storetest.Next(r, func(n *store.Record) { n.State = store.Stuck }))
		e.clock.Advance(storetest.LeaseOver)
		do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrStuck)
		serve(t, eng, keyed("k", "1"), a.run).status(t, 409).header(t, "Retry-After", "")
		a.ran(t, 0)
	})
}

// env.abandon sends r from another process, which dies in the handler and leaves an
// open record with a lease.
func (e *env) abandon(t testing.TB, r idem.Request, optFns ...func(*idem.Options)) {
	t.Helper()
	process := idemtest.Faulty(e.inner, nil)
	do(t, e.engineOn(process, optFns...), r, func(context.Context) (idem.Response, error) {
		process.Crash()
		return idem.Response{}, nil
	})
	if r := e.record(t, r, optFns...); r == nil || r.State != store.Open {
		t.Fatalf("abandoned record is %+v, want an open one", r)
	}
}

func callsOut(o *idem.Options) { o.CallsOut = true }

// beatenBy leaves an abandoned request whose lease is over, and returns the engine of
// another process. Just before the first commit to e.store, beatenBy's plan calls the
// function first with that engine.
func (e *env) beatenBy(t testing.TB, first func(others *idem.Engine)) (others *idem.Engine) {
	t.Helper()
	e.abandon(t, order("k", "1"))
	e.clock.Advance(storetest.LeaseOver)
	others = e.engineOn(idemtest.Faulty(e.inner, nil))
	e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == "Commit" && c.N == 1 {
			first(others)
		}
		return idemtest.Fault{}
	})
	return others
}
