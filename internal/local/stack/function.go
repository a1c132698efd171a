package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/gosource"
	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// defaultConcurrency is how many processes a function may have, unless the template
// reserves a number. AWS's default is 1000 for an account, too many for a laptop.
const defaultConcurrency = 50

// function is a running function of the template.
type function struct {
	def    sam.Function
	code   code
	env    []string // environment of the processes
	out    io.Writer
	lambda *lambdarun.Function
	log    *slog.Logger

	invocations atomic.Int64
	mappings    []*eventsource.Mapping
	timers      []*eventsource.Timer
}

var _ lambdarun.Invoker = (*function)(nil)

// code is what a function's processes run.
type code struct {
	inputs gosource.Inputs // zero if the stack doesn't build the function
	stamp  gosource.Stamp  // of the sources or the bootstrap, taken before the build so that a later change is seen
}

// Stack.running returns the functions in the template's order.
func (s *Stack) running() []*function {
	if all := s.functions.Load(); all != nil {
		return *all
	}
	return nil
}

func (s *Stack) closeFunctions() error {
	running := s.running()
	errs := make([]error, 0, len(running))
	for _, f := range running {
		errs = append(errs, f.lambda.Close())
	}
	return errors.Join(errs...)
}

// Stack.overridden returns def with Options.Overrides in place of the template's
// settings.
func (s *Stack) overridden(def sam.Function) sam.Function {
	def.Timeout = orOverride(s.opts.Overrides.FunctionTimeout, def.Timeout)
	if n := s.opts.Overrides.PerProcess; n != nil {
		def.PerProcess = *n
	}
	return def
}

// functionEnviron returns a function's variables. Options.Environment wins over
// Options.Overrides, Options.Overrides over the template, and the template over the
// stack.
func (s *Stack) functionEnviron(def sam.Function) []string {
	env := append(s.environ(s.servers.invoke.url), s.proxy.environ(s.servers.invoke.url)...)
	for _, name := range slices.Sorted(maps.Keys(def.Environment)) {
		env = append(env, name+"="+def.Environment[name])
	}
	o := s.opts.Overrides
	for _, v := range []struct {
		name string
		d    *time.Duration
	}{{envLeaseMargin, o.LeaseMargin}, {envGrace, o.Grace}} {
		if _, given := s.opts.Environment[v.name]; v.d != nil && !given {
			env = append(env, v.name+"="+v.d.String())
		}
	}
	return env
}

// startFunction makes a function ready for invocations. It starts no process: an
// invocation starts one.
func startFunction(ctx context.Context, def sam.Function, env []string, l *logs, log *slog.Logger) (*function, error) {
	concurrency := defaultConcurrency
	if def.Concurrency > 0 {
		concurrency = def.Concurrency
	}
	out := l.prefixed(def.ID)
	fn, err := lambdarun.Start(ctx, lambdarun.Config{
		Name: def.Name, Binary: def.Bootstrap, Dir: def.Root, Env: env,
		Timeout: def.Timeout, MaxConcurrency: concurrency, PerProcess: def.PerProcess, PerTenant: def.PerTenant, MemoryMB: def.MemoryMB,
		Stdout: out, Stderr: out,
	})
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", def.ID, err)
	}
	f := &function{def: def, env: env, out: out, lambda: fn, log: log.With("function", def.ID)}
	for _, note := range def.Notes {
		f.log.InfoContext(ctx, note)
	}
	return f, nil
}

// function.tell writes an error of several lines, such as a compiler's, to the logs.
func (f *function) tell(err error) { fmt.Fprintln(f.out, err) }

// Invoke counts the invocation. It logs the function's error, as Lambda does, because
// the function itself reports an error only in its answer.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.invocations.Add(1)
	out, err := f.lambda.Invoke(ctx, payload)
	switch fe, failed := errors.AsType[*lambdarun.FunctionError](err); {
	case failed:
		f.log.WarnContext(ctx, "the function failed", "type", fe.Type, "message", fe.Message, "request_id", fe.RequestID)
	case errors.Is(err, lambdarun.ErrTenant):
		f.log.WarnContext(ctx, "an invocation is refused", "error", err)
		f.invocations.Add(-1)
	case errors.Is(err, lambdarun.ErrRecursive), errors.Is(err, lambdarun.ErrThrottled), errors.Is(err, lambdarun.ErrRequestTooLarge), errors.Is(err, lambdarun.ErrClosed):
		f.invocations.Add(-1) // the function did not run
	}
	return out, err
}

// function.pause stops the function's event sources; resume starts them again.
func (f *function) pause() {
	for _, m := range f.sources() {
		m.Pause()
	}
}

func (f *function) resume() {
	for _, m := range f.sources() {
		m.Resume()
	}
}

func (f *function) sources() []*eventsource.Mapping {
	all := append([]*eventsource.Mapping{}, f.mappings...)
	for _, t := range f.timers {
		all = append(all, t.Mapping)
	}
	return all
}

// closeSources ends the function's event sources. It may be called more than once.
func (f *function) closeSources() error {
	sources := f.sources()
	errs := make([]error, 0, len(sources))
	for _, m := range sources {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// function.paused reports whether all sources are paused; false for a function without
// sources.
func (f *function) paused() bool {
	for _, m := range f.sources() {
		if !m.Paused() {
			return false
		}
	}
	return len(f.sources()) > 0
}

// function.tick runs all schedules of the function now.
func (f *function) tick(ctx context.Context) error {
	errs := make([]error, 0, len(f.timers))
	for _, t := range f.timers {
		errs = append(errs, t.Tick(ctx))
	}
	return errors.Join(errs...)
}
