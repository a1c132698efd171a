// Package failtest has a testing.TB that records failures, for tests and examples of
// test helpers.
package failtest

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Recorder is a testing.TB that records failures. It has only some methods of
// testing.TB. A call of any other method panics. A Recorder is safe for concurrent use.
type Recorder struct {
	testing.TB // nil

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// Run runs a test on a Recorder and returns the failures.
func Run(test func(testing.TB)) []string {
	r := new(Recorder)
	done := make(chan struct{})
	go func() { // a separate goroutine, because Fatal ends the goroutine that calls it
		defer close(done)
		test(r)
	}()
	<-done
	for _, fn := range r.cleanups {
		fn()
	}
	return r.failures
}

// Print runs a test on a Recorder and writes the failures to w. Go examples use it.
func Print(w io.Writer, test func(testing.TB)) {
	for _, f := range Run(test) {
		fmt.Fprintln(w, f)
	}
}

// Context implements testing.TB.
func (r *Recorder) Context() context.Context { return context.Background() }

// Helper implements testing.TB.
func (r *Recorder) Helper() {}

// Name implements testing.TB.
func (r *Recorder) Name() string { return "recorded" }

// Cleanup implements testing.TB.
func (r *Recorder) Cleanup(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, fn)
}

func (r *Recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, strings.TrimSuffix(text, "\n"))
}

// Logf implements testing.TB. It records nothing, since a log line is no failure.
func (r *Recorder) Logf(string, ...any) {}

// Failed implements testing.TB.
func (r *Recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// Error implements testing.TB.
func (r *Recorder) Error(args ...any) { r.fail(fmt.Sprintln(args...)) }

// Errorf implements testing.TB.
func (r *Recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

// Fatal implements testing.TB.
func (r *Recorder) Fatal(args ...any) {
	r.fail(fmt.Sprintln(args...))
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}
