package lambdarun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Function runs a bootstrap binary as Lambda does. Make a Function with [Start]. It
// is safe for concurrent use.
type Function struct {
	cfg  Config
	stop func() bool // ends the effect of Start's context on the function
	// wg counts the goroutines of invocations and of processes.
	wg       sync.WaitGroup
	outputMu sync.Mutex

	mu       sync.Mutex
	closed   bool
	inFlight int
	all      map[*sandbox]struct{}
	idle     []*sandbox // sandboxes with a free worker; the most recently used is last
}

var _ Invoker = (*Function)(nil)

// Sandbox is an entry of [Function.Running]: a process and an invocation that it runs.
type Sandbox struct {
	PID       int
	RequestID string    // the invocation that the process runs
	Since     time.Time // when the process got the invocation
}

// Start checks the configuration and returns a function ready for invocations. Only
// [Function.Invoke] starts processes. So if the binary cannot run, Start succeeds and
// Invoke fails.
//
// When ctx ends, the function kills its processes and refuses invocations. Call
// [Function.Close] even then, because it waits until the processes are gone.
func Start(ctx context.Context, cfg Config) (*Function, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("lambdarun: start: %w", err)
	}
	f := &Function{cfg: cfg, all: make(map[*sandbox]struct{})}
	f.stop = context.AfterFunc(ctx, f.shutdown)
	return f, nil
}

// Invoke runs the function once. Unless ctx ends first, Invoke returns only when the
// process can take the next invocation or has ended. Consecutive invocations therefore
// share a process. If the function separates tenants, only invocations of the same
// tenant share one. If PerProcess is above 1, Invoke returns at the invocation's
// deadline, although the process may still run the invocation.
//
// The error is a [*FunctionError], wraps the cause of ctx's end ([context.Cause]), or
// matches [ErrThrottled], [ErrRequestTooLarge], [ErrTenant], [ErrRecursive] or
// [ErrClosed].
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	wrap := func(err error) error {
		return fmt.Errorf("lambdarun: invoke %s: %w", f.cfg.Name, err)
	}
	if ctx.Err() != nil {
		return nil, wrap(context.Cause(ctx))
	}
	if len(payload) > MaxRequestBytes {
		return nil, wrap(ErrRequestTooLarge)
	}
	if err := f.CheckTenant(ctx); err != nil {
		return nil, wrap(err)
	}
	trace, err := descend(ctx, f.cfg.Name)
	if err != nil {
		return nil, wrap(err)
	}
	start, s, err := f.acquire(context.WithoutCancel(ctx))
	if err != nil {
		return nil, wrap(err)
	}
	inv := newInvocation(payload)
	inv.traceID = trace
	inv.tenant = tenantOf(ctx)
	done := make(chan outcome, 1)
	go func() {
		defer f.wg.Done()
		done <- f.run(context.WithoutCancel(ctx), start, s, inv)
	}()
	select {
	case out := <-done:
		if out.err != nil {
			if fe, ok := errors.AsType[*FunctionError](out.err); ok {
				return nil, fe
			}
			return nil, wrap(out.err)
		}
		return out.payload, nil
	case <-ctx.Done():
		return nil, wrap(context.Cause(ctx))
	}
}

// Running returns an entry for each invocation that a process runs, the longest running
// first.
func (f *Function) Running() []Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	var running []Sandbox
	for s := range f.all {
		for inv := range s.runs {
			running = append(running, Sandbox{PID: s.pid, RequestID: inv.id, Since: inv.since})
		}
	}
	slices.SortFunc(running, func(a, b Sandbox) int { return a.Since.Compare(b.Since) })
	return running
}

// PIDs returns the ids of the function's processes (working, idle and starting) in
// ascending order.
func (f *Function) PIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pids []int
	for s := range f.all {
		if s.pid != 0 {
			pids = append(pids, s.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// PID looks for the running invocation that began last, and returns the id of its process.
// If no invocation runs, PID returns the id of the idle process that was used most
// recently, or 0 if there is no idle process.
func (f *Function) PID() int {
	if running := f.Running(); len(running) > 0 {
		return running[len(running)-1].PID
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		return f.idle[n-1].pid
	}
	return 0
}

// Kill sends SIGKILL to a process of the function and waits until the process is gone.
// Invocations that the process runs end with [TypeExited]. The error matches
// [os.ErrProcessDone] if no process of the function has the id pid.
func (f *Function) Kill(pid int) error {
	f.mu.Lock()
	var victim *sandbox
	for s := range f.all {
		if s.pid == pid && pid != 0 {
			victim = s
		}
	}
	f.mu.Unlock()
	if victim == nil {
		return fmt.Errorf("lambdarun: kill %d: %w", pid, os.ErrProcessDone)
	}
	victim.kill()
	<-victim.gone
	return nil
}

// Restart kills all processes of the function, for example after a change of the
// binary. It waits until the processes are gone, and returns their number. An
// invocation that a process has received, but not answered, ends with [TypeExited].
// Waiting and later invocations get a new process.
func (f *Function) Restart() int {
	f.mu.Lock()
	f.idle = nil
	old := slices.Collect(maps.Keys(f.all))
	for _, s := range old {
		s.retired = true
		s.kill()
	}
	f.mu.Unlock()
	for _, s := range old {
		<-s.gone
	}
	return len(old)
}

// Close kills all processes of the function and returns when the processes and all
// goroutines are gone. Invocations in flight end with [ErrClosed]. Close may be called more
// than once and returns nil.
func (f *Function) Close() error {
	f.stop()
	f.shutdown()
	f.wg.Wait()
	return nil
}

func (f *Function) shutdown() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.all {
		s.kill()
	}
}

// starter starts the process of a new sandbox. requestID is the id of the invocation that
// needs the process.
type starter func(requestID string)

// Function.acquire counts an invocation and takes a worker for it. The worker is in an
// idle sandbox or in a new sandbox. If the sandbox is new, the starter is not nil, and
// the caller must call the starter. When the invocation has ended, the caller must call
// wg.Done.
func (f *Function) acquire(ctx context.Context) (starter, *sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, ErrClosed
	}
	if f.inFlight >= f.cfg.MaxConcurrency {
		return nil, nil, ErrThrottled
	}
	f.inFlight++
	f.wg.Add(1)
	for _, s := range slices.Backward(f.idle) {
		if s.tenant == tenantOf(ctx) {
			f.enter(s)
			return nil, s, nil
		}
	}
	f.makeRoom()
	start, s := f.newSandbox(ctx)
	return start, s, nil
}

// If the number of processes is at its limit, makeRoom kills the process that has been
// idle for longest. That process belongs to another tenant, because acquire would have
// used an idle process of the same tenant. The caller holds mu.
func (f *Function) makeRoom() {
	if len(f.all) < f.cfg.MaxConcurrency {
		return
	}
	for i, s := range f.idle {
		if s.load == 0 {
			f.idle = slices.Delete(f.idle, i, i+1)
			s.kill()
			return
		}
	}
}

// Function.enter counts one more busy worker of s, and Function.leave counts one fewer.
// The caller holds mu.
func (f *Function) enter(s *sandbox) {
	if s.load++; s.load == f.cfg.PerProcess {
		f.idle = slices.DeleteFunc(f.idle, func(other *sandbox) bool { return other == s })
	}
}

func (f *Function) leave(s *sandbox) {
	s.load--
	if _, alive := f.all[s]; alive && !slices.Contains(f.idle, s) {
		f.idle = append(f.idle, s)
	}
}

// Function.run runs inv in s, or in a new sandbox if s is dead.
func (f *Function) run(ctx context.Context, start starter, s *sandbox, inv *invocation) (out outcome) {
	var back <-chan struct{} // closed when the worker is free; nil if the worker is gone
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		// Lower inFlight and free the worker under one lock, so that the next invocation
		// finds the worker.
		f.inFlight--
		delete(s.runs, inv)
		// The process was killed because the function was closed, so the error is ErrClosed.
		if fe, ok := errors.AsType[*FunctionError](out.err); ok && f.closed && fe.Type == TypeExited {
			out.err = ErrClosed
		}
		if back != nil {
			f.leaveAfter(back, s)
		}
	}()

	for {
		if start != nil {
			start(inv.id)
		}
		<-s.up
		if s.upErr == nil && f.hand(s, inv) {
			break
		}
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return outcome{err: ErrClosed}
		}
		// The sandbox has not seen inv. If inv started the sandbox, inv fails, unless
		// Restart killed the sandbox. In all other cases inv gets a new sandbox.
		if start != nil && !s.retired {
			f.mu.Unlock()
			if s.upErr != nil {
				return outcome{err: s.upErr}
			}
			return outcome{err: exitedError(inv.id, s.exit)}
		}
		start, s = f.newSandbox(ctx)
		f.mu.Unlock()
	}
	if s.shared() {
		out, back = s.finishShared(inv, f.cfg)
		return out
	}
	out, reusable := s.finish(inv, f.cfg)
	if reusable {
		over := make(chan struct{})
		close(over)
		back = over
	}
	return out
}

// leaveAfter frees a worker of s when the channel back is closed. A goroutine waits for
// the channel, because an invocation that timed out may go on for long. The caller
// holds mu.
func (f *Function) leaveAfter(back <-chan struct{}, s *sandbox) {
	select {
	case <-back:
		f.leave(s)
	default:
		// Go is allowed during wg.Wait: wg is not 0, because the invocation has not called
		// Done yet.
		f.wg.Go(func() {
			<-back
			f.mu.Lock()
			defer f.mu.Unlock()
			f.leave(s)
		})
	}
}

// Function.hand gives inv to a worker of s that asks for work, and sets the deadline of
// inv. It returns false if the process is gone.
func (f *Function) hand(s *sandbox, inv *invocation) bool {
	if s.shared() {
		<-s.up
		select {
		case <-s.api.polled:
		case <-s.gone:
			return false
		}
	}
	f.mu.Lock()
	inv.since = time.Now()
	inv.deadline = inv.since.Add(f.cfg.Timeout)
	s.runs[inv] = struct{}{}
	f.mu.Unlock()
	if !s.api.hand(inv, s.gone) {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(s.runs, inv)
		return false
	}
	return true
}

// newSandbox adds a new sandbox to f.all and takes one of its workers. It returns the
// sandbox and the function that starts the process. The caller holds mu.
func (f *Function) newSandbox(ctx context.Context) (starter, *sandbox) {
	ctx, kill := context.WithCancel(ctx)
	s := &sandbox{
		api:    newRuntimeAPI(functionARN(f.cfg.region(), f.cfg.Name), f.cfg.PerProcess),
		up:     make(chan struct{}),
		kill:   kill,
		gone:   make(chan struct{}),
		runs:   make(map[*invocation]struct{}),
		tenant: tenantOf(ctx),
	}
	f.all[s] = struct{}{}
	f.wg.Add(1)
	if s.shared() {
		f.idle = append(f.idle, s) // other invocations can now wait for the sandbox's start
	}
	f.enter(s)
	return func(requestID string) {
		defer close(s.up)
		s.upErr = f.startSandbox(ctx, s, requestID)
	}, s
}

// startSandbox starts the process. It returns when the process asks for work, or has
// failed.
func (f *Function) startSandbox(ctx context.Context, s *sandbox, requestID string) error {
	result := make(chan error, 1)
	started := func(pid int, err error) {
		f.mu.Lock()
		s.pid = pid
		f.mu.Unlock()
		result <- err
	}
	ended := func() {
		s.kill() // frees the context
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.all, s)
		f.idle = slices.DeleteFunc(f.idle, func(other *sandbox) bool { return other == s })
	}
	go func() {
		defer f.wg.Done()
		s.run(ctx, f.cfg, &f.outputMu, started, ended)
	}()
	if err := <-result; err != nil {
		return startError(requestID, err)
	}
	return s.ready(requestID)
}
