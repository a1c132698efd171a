package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineFailure tests handlers that fail.
func engineFailure(s suite) {
	s.run("a handler's error comes through as it is, and the key is free", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		cause := &fs.PathError{Op: "open", Path: "ride", Err: errors.New("gone")}
		e.costs(t, 2, func() {
			r := do(t, eng, order("k", "1"), a.fail(fmt.Errorf("handler: %w", cause))).refused(t, cause)
			if got, ok := errors.AsType[*fs.PathError](r.err); !ok || got != cause {
				t.Errorf("got %v, want the handler's error in it", r.err)
			}
			if _, ok := errors.AsType[*idem.Error](r.err); ok {
				t.Errorf("got %v, which says that the engine failed", r.err)
			}
		})
		first := do(t, eng, order("k", "2"), a.run).first(t)
		do(t, eng, order("k", "2"), a.run).replays(t, first)
		a.ran(t, 2)
	})

	s.run("over HTTP a handler's error is 500 with the advice to retry, and tells nothing", func(t *testing.T, e *env) {
		var a app
		secret := errors.New("password hunter2")
		eng := e.engine()
		r := serve(t, eng, keyed("k", "1"), a.fail(secret)).status(t, 500)
		if body := string(r.Body); strings.Contains(body, "hunter2") || !strings.Contains(body, "same key") {
			t.Errorf("body is %s", r.Body)
		}
		serve(t, eng, keyed("k", "1"), a.run).status(t, 201)
	})

	s.run("a panic frees the key and goes on to its owner", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		type boom struct{ n int }
		func() {
			defer func() {
				if got := recover(); got != (boom{7}) {
					t.Errorf("recovered %v, want the handler's own panic", got)
				}
			}()
			do(t, eng, order("k", "1"), func(context.Context) (idem.Response, error) {
				panic(boom{7}) //nolint:forbidigo // it is what is tested
			})
		}()
		do(t, eng, order("k", "2"), a.run).first(t)
		a.ran(t, 1)
	})

	s.run("runtime.Goexit in a handler frees the key too", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		ended, returned := make(chan struct{}), false
		ctx := storetest.Limited(t)
		go func() {
			defer close(ended)
			_, _ = eng.Do(ctx, order("k", "1"), func(context.Context) (idem.Response, error) {
				runtime.Goexit()
				return idem.Response{}, nil
			})
			returned = true
		}()
		<-ended
		if returned {
			t.Error("the goroutine went on after Goexit")
		}
		do(t, eng, order("k", "2"), a.run).first(t)
		a.ran(t, 1)
	})

	s.run("the record remembers why a key was released, for people", func(t *testing.T, e *env) {
		var a app
		do(t, e.engine(), order("k", "1"), a.fail(errors.New("bank is closed")))
		r := e.record(t, order("k", "1"))
		if r == nil || r.State != store.Open || !r.Lease.IsZero() || r.LastErr != "bank is closed" {
			t.Errorf("stored is %+v, want an open record without a lease that says why", r)
		}
	})

	s.run("a client that goes away does not keep the answer from being stored", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		ctx, cancel := context.WithCancel(storetest.Limited(t))
		res, err := eng.Do(ctx, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			cancel()
			return a.run(ctx)
		})
		first := result{res, err}.first(t)
		do(t, eng, order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("a client that goes away does not keep the key from being released", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		ctx, cancel := context.WithCancel(storetest.Limited(t))
		_, err := eng.Do(ctx, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			cancel()
			return idem.Response{}, ctx.Err()
		})
		result{err: err}.refused(t, context.Canceled)
		do(t, eng, order("k", "1"), a.run).first(t)
	})

	s.run("the handler's context ends before the lease, with time left to store the answer", func(t *testing.T, e *env) {
		ctx := storetest.Limited(t)
		want, _ := ctx.Deadline()
		_, err := e.engine().Do(ctx, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			if got, ok := ctx.Deadline(); !ok || !got.Equal(want.Add(-defaults.Reserve)) {
				t.Errorf("the handler's deadline is %v, want %v before %v", got, defaults.Reserve, want)
			}
			return idem.Response{}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
