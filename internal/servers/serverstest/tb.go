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
	SkippedWith, FailedWith string // the last message of Skip, and the last of Fatal or Error; "" if there was none

	cleanups []func()
}

// RunTest runs f until f returns, or calls Skip or Fatal. Then RunTest calls the
// functions that Cleanup registered.
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

// Helper does nothing.
func (t *TB) Helper() {}

// Context never ends.
func (t *TB) Context() context.Context { return context.Background() }

// Skip records args and ends the test.
func (t *TB) Skip(args ...any) { t.SkippedWith = fmt.Sprint(args...); runtime.Goexit() }

// Fatal records args and ends the test.
func (t *TB) Fatal(args ...any) { t.FailedWith = fmt.Sprint(args...); runtime.Goexit() }

// Error records args.
func (t *TB) Error(args ...any) { t.FailedWith = fmt.Sprint(args...) }

// Cleanup keeps f for [RunTest].
func (t *TB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
