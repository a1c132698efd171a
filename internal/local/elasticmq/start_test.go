package elasticmq

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// A tb records how a test ends.
type tb struct {
	testing.TB
	skipped, failed string
	cleanups        []func()
}

func (t *tb) Helper()                  {}
func (t *tb) Context() context.Context { return context.Background() }
func (t *tb) Skip(args ...any)         { t.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (t *tb) Fatal(args ...any)        { t.failed = fmt.Sprint(args...); runtime.Goexit() }
func (t *tb) Error(args ...any)        { t.failed = fmt.Sprint(args...) }
func (t *tb) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }

// runTest calls f as a test, which Skip and Fatal may end.
func runTest(f func(t *tb)) *tb {
	t := &tb{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(t)
	}()
	<-done
	for _, f := range t.cleanups {
		f()
	}
	return t
}

func TestStartSkipsOrFails(t *testing.T) {
	missing := fmt.Errorf("%w: java", ErrUnavailable)
	other := errors.New("elasticmq: a remote host")
	stuck := errors.New("it doesn't end")
	for _, tt := range []struct {
		name, require   string
		err, closing    error
		skipped, failed string
	}{
		{name: "nothing to be had", err: missing, skipped: missing.Error()},
		{name: "nothing to be had, and said not to matter", require: "0", err: missing, skipped: missing.Error()},
		{name: "nothing to be had, but required", require: "1", err: missing, failed: missing.Error()},
		{name: "another error", err: other, failed: other.Error()},
		{name: "no error", require: "1"},
		{name: "an error at the test's end", closing: stuck, failed: "elasticmq: ending ElasticMQ at http://127.0.0.1:1: " + stuck.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envRequire, tt.require)
			t.Setenv(envRequireAll, "")
			ended := 0
			got := runTest(func(t *tb) {
				start(t, func(context.Context) (*Server, error) {
					if tt.err != nil {
						return nil, tt.err
					}
					return &Server{Endpoint: "http://127.0.0.1:1", stop: func() error { ended++; return tt.closing }}, nil
				})
			})
			if got.skipped != tt.skipped || got.failed != tt.failed {
				t.Errorf("got skipped %q, failed %q; want skipped %q, failed %q", got.skipped, got.failed, tt.skipped, tt.failed)
			}
			if want := tt.err == nil; (ended == 1) != want {
				t.Errorf("ended %d servers", ended)
			}
		})
	}
}
