package serverstest

import (
	"context"
	"fmt"
	"runtime"
	"testing"
)

// TB is a test that records how it ends.
type TB struct {
	testing.TB
	SkippedWith, FailedWith string // what it said, if it did

	cleanups []func()
}

// RunTest calls f as a test, which Skip and Fatal may end, and then what it has
// registered by Cleanup.
func RunTest(f func(t *TB)) *TB {
	t := &TB{}
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

// The methods of a test that package testing would have.

func (t *TB) Helper()                  {}
func (t *TB) Context() context.Context { return context.Background() }
func (t *TB) Skip(args ...any)         { t.SkippedWith = fmt.Sprint(args...); runtime.Goexit() }
func (t *TB) Fatal(args ...any)        { t.FailedWith = fmt.Sprint(args...); runtime.Goexit() }
func (t *TB) Error(args ...any)        { t.FailedWith = fmt.Sprint(args...) }
func (t *TB) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
