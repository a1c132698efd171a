package enginetest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineInFlight tests requests that come while another request with the same key is in flight.
func engineInFlight(s suite) {
	s.run("a request in flight refuses its like in one call, and its record stays as it is", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine()
		held := begin(t, eng, order("k", "1"), a.held(g))
		g.Reached(t)
		want := e.record(t, order("k", "1"))
		e.costs(t, 1, func() {
			r := do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrInFlight)
			ierr, ok := errors.AsType[*idem.Error](r.err)
			if !ok || ierr.RetryAfter <= 0 || ierr.RetryAfter > defaults.MaxRetryAfter {
				t.Errorf("%v says to retry after %v, want what is left of the lease, and no more than %v", r.err, ierr.RetryAfter, defaults.MaxRetryAfter)
			}
		})
		storetest.SameRecord(t, e.record(t, order("k", "1")), want)
		g.Open()
		first := (<-held).first(t)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("over HTTP that is 409 with Retry-After", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		held := begin(t, e.engine(), keyedDo("k", "1"), a.held(g))
		g.Reached(t)
		r := serve(t, e.engine(), keyed("k", "1"), a.run).status(t, http.StatusConflict)
		if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 {
			t.Errorf("Retry-After is %q, want seconds", r.Header.Get("Retry-After"))
		}
		g.Open()
		(<-held).first(t)
		a.ran(t, 1)
	})

	s.run("another payload in flight is a mismatch, not in flight", func(t *testing.T, e *env) {
		var a app
		g := storetest.NewGate()
		eng := e.engine()
		held := begin(t, eng, order("k", "1"), a.held(g))
		g.Reached(t)
		e.costs(t, 1, func() { do(t, eng, order("k", "2"), a.run).refused(t, idem.ErrMismatch) })
		g.Open()
		first := (<-held).first(t)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("another payload is a mismatch even when the lease is over, and takes nothing over", func(t *testing.T, e *env) {
		var a app
		e.abandon(t, order("k", "1"))
		e.clock.Advance(storetest.LeaseOver)
		do(t, e.engine(), order("k", "2"), a.run).refused(t, idem.ErrMismatch)
		a.ran(t, 0)
		do(t, e.engine(), order("k", "1"), a.run).first(t)
	})

	for _, n := range []int{50, 100} {
		id := map[int]string{50: "P6", 100: "A9"}[n]
		s.run(id+": "+strconv.Itoa(n)+" equal requests run once", func(t *testing.T, e *env) {
			var a app
			var created, refused, replayed atomic.Int64
			eng := e.engine()
			results := make([]result, n)
			ctx := storetest.Limited(t)
			storetest.Together(n, func(i int) {
				res, err := eng.Serve(ctx, keyed("k", "1"), a.run)
				results[i] = result{res, err}
			})
			a.ran(t, 1)
			final := serve(t, eng, keyed("k", "1"), a.run)
			for _, r := range results {
				switch {
				case r.err == nil && r.Status == http.StatusConflict && r.Header.Get("Retry-After") != "":
					refused.Add(1)
				case r.err == nil && r.Replayed:
					final.replays(t, r)
					replayed.Add(1)
				default:
					final.replays(t, r.status(t, 201))
					created.Add(1)
				}
			}
			if created.Load() != 1 {
				t.Errorf("%d ran, %d were refused, %d replayed; want one that ran", created.Load(), refused.Load(), replayed.Load())
			}
		})
	}

	s.run("many goroutines through two handlers of one engine get no wrong answer and leave nothing open", func(t *testing.T, e *env) {
		const keys, clients = 12, 6
		eng := e.engine()
		ctx := storetest.Limited(t)
		handlers := []string{"/rides", "/refunds"}
		request := func(i int) (idem.Request, string) {
			r := order("k"+strconv.Itoa(i/len(handlers)%keys), "1")
			r.Path = handlers[i%len(handlers)]
			r.Scope = r.Path
			return r, r.Path + " " + r.Key
		}
		var runs atomic.Int64
		handle := func(name string) handler {
			return func(context.Context) (idem.Response, error) {
				runs.Add(1)
				return idem.Response{Status: 201, Body: []byte(name)}, nil
			}
		}
		storetest.Together(keys*clients*len(handlers), func(i int) {
			r, name := request(i)
			res, err := eng.Do(ctx, r, handle(name))
			if err != nil && !errors.Is(err, idem.ErrInFlight) || err == nil && string(res.Body) != name {
				t.Errorf("%s: got %v", name, result{res, err})
			}
		})
		for i := range keys * len(handlers) {
			r, name := request(i)
			if got := do(t, eng, r, handle(name)); !got.Replayed || string(got.Body) != name {
				t.Errorf("%s: afterwards got %v, want its replay", name, got)
			}
		}
		if got := runs.Load(); got != int64(keys*len(handlers)) {
			t.Errorf("handlers ran %d times, want %d", got, keys*len(handlers))
		}
	})

	s.run("a request without enough time left is not begun", func(t *testing.T, e *env) {
		var a app
		for _, left := range []time.Duration{-time.Hour, 0, 200 * time.Millisecond, defaults.Reserve} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			refused := func() {
				_, err := e.engine().Do(ctx, order("k", "1"), a.run)
				result{err: err}.refused(t, idem.ErrNoTime)
				res, err := e.engine().Serve(ctx, keyed("k", "1"), a.run)
				result{res, err}.status(t, http.StatusServiceUnavailable)
				if res.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			}
			if left > 0 { // if time is left, the engine may read the record, which costs a call
				refused()
			} else {
				e.costs(t, 0, refused)
			}
			cancel()
		}
		a.ran(t, 0)
	})

	s.run("what is finished replays with too little time to begin", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", "1"), a.run).first(t)
		ctx, cancel := context.WithTimeout(t.Context(), defaults.Reserve)
		defer cancel()
		res, err := eng.Do(ctx, order("k", "1"), a.run)
		result{res, err}.replays(t, first)
	})

	s.run("without a deadline the default lease applies, and that is warned of once", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		for _, key := range []string{"k1", "k2"} {
			g := storetest.NewGate()
			done := make(chan result, 1)
			go func() {
				res, err := eng.Do(context.WithoutCancel(t.Context()), order(key, "1"), a.held(g))
				done <- result{res, err}
			}()
			g.Reached(t)
			do(t, eng, order(key, "1"), a.run).refused(t, idem.ErrInFlight)
			e.clock.Advance(defaults.Lease + defaults.LeaseMargin)
			second := do(t, eng, order(key, "1"), a.run).first(t)
			g.Open()
			(<-done).replays(t, second)
		}
		if n := e.log.count("no deadline"); n != 1 {
			t.Errorf("warned %d times, want once", n)
		}
	})
}
