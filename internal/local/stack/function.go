package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/lambdarun"
	"github.com/samekey/samekey/internal/local/sam"
)

// defaultConcurrency is how many processes a function may have, unless the
// template reserves a number. An account has 1000, a laptop hasn't.
const defaultConcurrency = 50

// function is a function of the template at work.
type function struct {
	def    sam.Function
	lambda *lambdarun.Function
	log    *slog.Logger

	invocations atomic.Int64
	mappings    []*eventsource.Mapping
	timers      []*eventsource.Timer
}

var _ lambdarun.Invoker = (*function)(nil)

func (s *Stack) startFunctions(ctx context.Context, defs []sam.Function, base []string) (map[string]*function, error) {
	s.async = &asyncInvoker{ctx: ctx, pause: 200 * time.Millisecond, fail: s.fail}
	s.onClose(s.async.close)
	o := s.opts.Overrides
	var top []string
	for name, d := range map[string]*time.Duration{envLeaseMargin: o.LeaseMargin, envGrace: o.Grace} {
		if _, given := s.opts.Environment[name]; d != nil && !given {
			top = append(top, name+"="+d.String())
		}
	}
	byID := make(map[string]*function, len(defs))
	for _, def := range defs {
		def.Timeout = orOverride(o.FunctionTimeout, def.Timeout)
		if o.PerProcess != nil {
			def.PerProcess = *o.PerProcess
		}
		f, err := startFunction(ctx, def, base, top, s.logs, s.log)
		if err != nil {
			return nil, err
		}
		s.onClose(f.lambda.Close)
		s.functions = append(s.functions, f)
		byID[def.ID] = f
		for _, note := range def.Notes {
			f.log.InfoContext(ctx, note)
		}
	}
	return byID, nil
}

// startFunction makes a function ready for invocations; its processes are
// started by these. base are the variables of the stack, which the template's
// own win over, and top those that win over them.
func startFunction(ctx context.Context, def sam.Function, base, top []string, l *logs, log *slog.Logger) (*function, error) {
	env := append([]string{}, base...)
	for name, value := range def.Environment {
		env = append(env, name+"="+value)
	}
	env = append(env, top...)
	concurrency := defaultConcurrency
	if def.Concurrency > 0 {
		concurrency = def.Concurrency
	}
	out := l.prefixed(def.ID)
	fn, err := lambdarun.Start(ctx, lambdarun.Config{
		Name: def.Name, Binary: def.Bootstrap, Env: env,
		Timeout: def.Timeout, MaxConcurrency: concurrency, PerProcess: def.PerProcess, PerTenant: def.PerTenant, MemoryMB: def.MemoryMB,
		Stdout: out, Stderr: out,
	})
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", def.ID, err)
	}
	return &function{def: def, lambda: fn, log: log.With("function", def.ID)}, nil
}

// Invoke counts the invocation and logs what Lambda would: the function's own
// account of an error is in its answer only.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.invocations.Add(1)
	out, err := f.lambda.Invoke(ctx, payload)
	switch fe, failed := errors.AsType[*lambdarun.FunctionError](err); {
	case failed:
		f.log.WarnContext(ctx, "the function failed", "type", fe.Type, "message", fe.Message, "request_id", fe.RequestID)
	case errors.Is(err, lambdarun.ErrTenant):
		f.log.WarnContext(ctx, "an invocation is refused", "error", err)
		f.invocations.Add(-1)
	case errors.Is(err, lambdarun.ErrThrottled), errors.Is(err, lambdarun.ErrRequestTooLarge), errors.Is(err, lambdarun.ErrClosed):
		f.invocations.Add(-1) // it did not run
	}
	return out, err
}

// pause stops the function's event sources, resume lets them go on.
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

// paused reports whether all sources are paused; false if there are none.
func (f *function) paused() bool {
	for _, m := range f.sources() {
		if !m.Paused() {
			return false
		}
	}
	return len(f.sources()) > 0
}

// tick runs all schedules of the function now.
func (f *function) tick(ctx context.Context) error {
	errs := make([]error, 0, len(f.timers))
	for _, t := range f.timers {
		errs = append(errs, t.Tick(ctx))
	}
	return errors.Join(errs...)
}
