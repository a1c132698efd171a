package enginetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

var errDown = errors.New("the store is down")

// engineStoreFailure tests stores that fail. lost.go tests lost answers.
func engineStoreFailure(s suite) {
	for name, err := range map[string]error{
		"down":                   errDown,
		"too slow":               context.DeadlineExceeded,
		"lost for good":          store.ErrUnknown,
		"corrupt is not run too": idem.ErrCorrupt,
	} {
		want, status := idem.ErrUnavailable, 503
		if errors.Is(err, idem.ErrCorrupt) {
			want, status = err, 500
		}
		s.run("a claim that is "+name+" runs nothing", func(t *testing.T, e *env) {
			var a app
			eng := e.engine()
			e.store.Reset(func(context.Context, idemtest.Call) idemtest.Fault { return idemtest.Fault{Err: err} })
			do(t, eng, order("k", "1"), a.run).refused(t, want, err)
			r := serve(t, eng, keyed("k", "1"), a.run).status(t, status)
			if after := r.Header.Get("Retry-After"); (after != "") != (status == 503) {
				t.Errorf("status %d with Retry-After %q", status, after)
			}
			a.ran(t, 0)

			e.store.Reset(nil)
			do(t, eng, order("k", "1"), a.run).first(t)
			a.ran(t, 1)
		})
	}

	s.run("a take-over that fails runs nothing", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		e.store.Reset(idemtest.At("Commit", 0, idemtest.Fault{Err: errDown}))
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrUnavailable, errDown)
		a.ran(t, 0)
		e.store.Reset(nil)
		do(t, e.engine(), order("k", "1"), a.run).first(t)
	})

	// A conflict with another write is no failure, because it is temporary.
	s.run("a claim and a take-over that conflict are tried again", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.N == 1 {
				return idemtest.Fault{Err: idem.ErrConflict}
			}
			return idemtest.Fault{}
		})
		first := do(t, e.engine(), order("k", "1"), a.run).first(t)
		do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("a claim that a sandbox slept through ends with a look at the record", func(t *testing.T, e *env) {
		var a app
		first := do(t, e.engine(), order("k", "1"), a.run).first(t)
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Claim" && c.N == 1 {
				e.clock.Advance(storetest.LeaseOver) // a claim never takes so long, unless the sandbox sleeps
				return idemtest.Fault{Err: idem.ErrConflict}
			}
			return idemtest.Fault{}
		})
		do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	for _, verb := range []string{"Claim", "Commit"} {
		s.run("a "+verb+" that goes on conflicting is in flight, not a failure", func(t *testing.T, e *env) {
			var a app
			e.abandon(t, order("k", "1"))
			e.clock.Advance(storetest.LeaseOver)
			e.store.Reset(idemtest.At(verb, 0, idemtest.Fault{Err: idem.ErrConflict}))
			serve(t, e.engine(), keyed("k", "1"), a.run).status(t, 409)
			a.ran(t, 0)
		})
	}

	s.run("fail-open runs the handler unprotected, and counts it", func(t *testing.T, e *env) {
		var a app
		var opened atomic.Int64
		eng := e.engine(func(o *idem.Options) {
			o.Mode = idem.ModeOpen
			o.Hooks.Unprotected = func(context.Context, idem.Event) { opened.Add(1) }
		})
		e.store.Reset(idemtest.At("Claim", 0, idemtest.Fault{Err: errDown}))
		for range 2 {
			if r := serve(t, eng, keyed("k", "1"), a.run).status(t, 201); r.Header.Get("Idempotency-Status") != "ignored" || r.Replayed {
				t.Errorf("got %v with header %v, want it passed, and marked", r, r.Header)
			}
		}
		a.ran(t, 2)
		if n := opened.Load(); n != 2 {
			t.Errorf("the hook was called %d times, want 2", n)
		}
		if r := e.record(t, order("k", "1")); r != nil {
			t.Errorf("stored is %+v, want nothing", r)
		}
	})

	s.run("fail-open does not open for what the store did answer", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.Mode = idem.ModeOpen })
		do(t, eng, order("k", "1"), a.run).first(t)
		do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch)
		e.store.Reset(idemtest.At("Claim", 0, idemtest.Fault{Err: idem.ErrCorrupt}))
		do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrCorrupt)
		a.ran(t, 1)
	})

	s.run("if the release fails too, both errors are seen", func(t *testing.T, e *env) {
		var a app
		cause := errors.New("handler failed")
		e.store.Reset(idemtest.At("Commit", 0, idemtest.Fault{Err: errDown}))
		r := do(t, e.engine(), order("k", "1"), a.fail(cause)).refused(t, cause, errDown)
		if ierr, ok := errors.AsType[*idem.Error](r.err); !ok || ierr.Op != "release" {
			t.Errorf("got %v, want it to say that the release failed", r.err)
		}
		e.store.Reset(nil)
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrInFlight)
		e.clock.Advance(storetest.LeaseOver)
		do(t, e.engine(), order("k", "1"), a.run).first(t)
	})

	s.run("a panic is not hidden by a release that fails", func(t *testing.T, e *env) {
		e.store.Reset(idemtest.At("Commit", 0, idemtest.Fault{Err: errDown}))
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want the handler's own panic", got)
			}
		}()
		do(t, e.engine(), order("k", "1"), func(context.Context) (idem.Response, error) {
			panic("boom") //nolint:forbidigo // it is what is tested
		})
	})

	for name, err := range map[string]error{"with an error": errDown, "with a conflict": idem.ErrConflict, "unknown": store.ErrUnknown} {
		s.run("a finish that fails once, "+name+", is sent again and the answer is kept", func(t *testing.T, e *env) {
			var a app
			e.store.Reset(idemtest.At("Commit", 1, idemtest.Fault{Err: err}))
			first := do(t, e.engine(), order("k", "1"), a.run).first(t)
			do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
			a.ran(t, 1)
		})

		s.run("if the finish fails for good, "+name+", the answer is given and nothing runs again at once", func(t *testing.T, _ *env) {
			synctest.Test(t, func(t *testing.T) { // virtual time, so the store must be in memory
				e := newEnv(t, &idem.MemoryStore{})
				var a app
				e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
					if c.Verb == "Commit" && c.Commit.Next.State == store.Done {
						// Only the finish fails. If the engine wrongly released the record,
						// the release would succeed, and the test would notice.
						return idemtest.Fault{Err: err}
					}
					return idemtest.Fault{}
				})
				// the engine repeats the finish until the deadline is near
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				res, err := e.engine().Do(ctx, order("k", "1"), a.run)
				if r := (result{res, err}).first(t); !r.Expires.IsZero() {
					t.Errorf("the answer claims to be stored until %v", r.Expires)
				}
				e.store.Reset(nil)
				do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrInFlight)
				a.ran(t, 1)

				e.clock.Advance(storetest.LeaseOver)
				second := do(t, e.engine(), order("k", "1"), a.run).first(t)
				do(t, e.engine(), order("k", "1"), a.run).replays(t, second)
				a.ran(t, 2)
			})
		})
	}

	s.run("an answer the store refuses for good leaves at least that it was given", func(t *testing.T, e *env) {
		var a app
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.Commit.Next.Response != nil && len(c.Commit.Next.Response.Body) > 0 {
				return idemtest.Fault{Err: errors.New("item too large")}
			}
			return idemtest.Fault{}
		})
		do(t, e.engine(), order("k", "1"), a.run).first(t)
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrNotKept)
		serve(t, e.engine(), keyed("k", "1"), a.run).status(t, 410)
		a.ran(t, 1)
	})

	s.run("a read that fails is the store's failure, not the client's", func(t *testing.T, e *env) {
		var a app
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			switch c.Verb {
			case "Claim":
				return idemtest.Fault{Err: store.ErrUnknown, Applied: true}
			case "Load":
				return idemtest.Fault{Err: errDown}
			default:
				return idemtest.Fault{}
			}
		})
		do(t, e.engine(), order("k", "1"), a.run).refused(t, idem.ErrUnavailable, store.ErrUnknown, errDown)
		a.ran(t, 0)
	})

	s.run("disabled, nothing is called and the store may be nil", func(t *testing.T, e *env) {
		var a app
		off := func(o *idem.Options) { o.Mode = idem.ModeOff }
		e.costs(t, 0, func() {
			for _, eng := range []*idem.Engine{idem.New(nil, off), e.engine(off)} {
				if r := do(t, eng, order("k", "1"), a.run); r.err != nil || !r.Passed || r.Replayed {
					t.Errorf("got %v, want it passed", r)
				}
				if r := serve(t, eng, keyed("", "1"), a.run).status(t, 201); r.Header.Get("Idempotency-Status") != "ignored" {
					t.Errorf("got %v with header %v, want it passed, and marked", r, r.Header)
				}
			}
		})
		a.ran(t, 4)
	})
}
