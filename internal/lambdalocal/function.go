package lambdalocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Function runs a bootstrap binary as Lambda does. Make one with [Start]. It is
// safe for concurrent use.
type Function struct {
	cfg  Config
	stop func() bool // unties the function from Start's context
	// wg counts the invocations and the processes.
	wg       sync.WaitGroup
	outputMu sync.Mutex

	mu       sync.Mutex
	closed   bool
	inFlight int
	all      map[*sandbox]struct{}
	idle     []*sandbox // the last one is the one used last
}

var _ Invoker = (*Function)(nil)

// Sandbox is a process at work, as [Function.Running] lists it.
type Sandbox struct {
	PID       int
	RequestID string    // of the invocation it runs
	Since     time.Time // when it was given that
}

// Start checks the configuration and returns a function ready for invocations.
// Processes are started on demand, so a binary that cannot run shows only then.
//
// When ctx ends the function's processes are killed as by [Function.Close],
// which still has to be called.
func Start(ctx context.Context, cfg Config) (*Function, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("lambdalocal: start: %w", err)
	}
	f := &Function{cfg: cfg, all: make(map[*sandbox]struct{})}
	f.stop = context.AfterFunc(ctx, f.shutdown)
	return f, nil
}

// Invoke runs the function once. It returns when the sandbox is ready for the
// next invocation or gone, so that invocations one after the other share a
// process. Besides a [*FunctionError] and the context's error there are
// [ErrThrottled], [ErrRequestTooLarge] and [ErrClosed].
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	wrap := func(err error) error {
		return fmt.Errorf("lambdalocal: invoke %s: %w", f.cfg.Name, err)
	}
	if ctx.Err() != nil {
		return nil, wrap(context.Cause(ctx))
	}
	if len(payload) > MaxRequestBytes {
		return nil, wrap(ErrRequestTooLarge)
	}
	warm, err := f.acquire()
	if err != nil {
		return nil, wrap(err)
	}
	inv := newInvocation(payload)
	done := make(chan outcome, 1)
	go func() {
		defer f.wg.Done()
		done <- f.run(context.WithoutCancel(ctx), warm, inv)
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

// Running lists the processes that are running an invocation now, the longest
// running first.
func (f *Function) Running() []Sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	var running []Sandbox
	for s := range f.all {
		if s.pid != 0 && s.current != nil {
			running = append(running, Sandbox{PID: s.pid, RequestID: s.current.id, Since: s.current.since})
		}
	}
	slices.SortFunc(running, func(a, b Sandbox) int { return a.Since.Compare(b.Since) })
	return running
}

// PIDs lists all processes of the function in ascending order: working, idle
// and starting.
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

// PID returns the process that got work last: of those that run an invocation,
// else of the idle ones. It is 0 while there is neither, as before the first
// invocation and after the death of the last process.
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

// Kill sends SIGKILL to one of the function's own processes and waits until it
// is gone. Its invocation, if it has one, ends with [TypeExited]. The error is
// [os.ErrProcessDone] when no process of the function has that id.
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
		return fmt.Errorf("lambdalocal: kill %d: %w", pid, os.ErrProcessDone)
	}
	victim.kill()
	<-victim.gone
	return nil
}

// Close kills all processes of the function and returns when they and all
// goroutines are gone. Invocations in flight end with [ErrClosed]. It may be
// called more than once and returns nil.
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

// acquire claims a place for one invocation. It returns an idle sandbox, or nil
// where one has to be started. The caller owes a wg.Done.
func (f *Function) acquire() (*sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if f.inFlight >= f.cfg.MaxConcurrency {
		return nil, ErrThrottled
	}
	f.inFlight++
	f.wg.Add(1)
	n := len(f.idle)
	if n == 0 {
		return nil, nil
	}
	s := f.idle[n-1]
	f.idle = f.idle[:n-1]
	return s, nil
}

// run takes inv through a sandbox: warm if there is one, or a new one.
func (f *Function) run(ctx context.Context, warm *sandbox, inv *invocation) (out outcome) {
	var ran *sandbox
	reusable := false
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inFlight--
		if ran != nil {
			ran.current = nil
			if _, alive := f.all[ran]; alive && reusable {
				f.idle = append(f.idle, ran)
			}
		}
		// The kill was ours, whatever it looked like to the invocation.
		if fe, ok := errors.AsType[*FunctionError](out.err); ok && f.closed && fe.Type == TypeExited {
			out.err = ErrClosed
		}
	}()

	// A sandbox that died idle has seen nothing of the invocation.
	if warm != nil && f.hand(warm, inv) {
		ran = warm
	} else {
		fresh, err := f.startSandbox(ctx, inv.id)
		if err != nil {
			return outcome{err: err}
		}
		if !f.hand(fresh, inv) {
			return outcome{err: exitedError(inv.id, fresh.exit)}
		}
		ran = fresh
	}
	out, reusable = ran.finish(inv, f.cfg)
	return out
}

// hand gives inv to a sandbox that waits for work; the clock starts here. It
// reports false if the process is gone.
func (f *Function) hand(s *sandbox, inv *invocation) bool {
	f.mu.Lock()
	inv.since = time.Now()
	inv.deadline = inv.since.Add(f.cfg.Timeout)
	s.current = inv
	f.mu.Unlock()
	return s.api.hand(inv, s.gone)
}

// startSandbox starts a process and returns when it asks for work.
func (f *Function) startSandbox(ctx context.Context, requestID string) (*sandbox, error) {
	ctx, kill := context.WithCancel(ctx)
	s := &sandbox{
		api:  newRuntimeAPI(functionARN(f.cfg.region(), f.cfg.Name)),
		kill: kill,
		gone: make(chan struct{}),
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		kill()
		return nil, ErrClosed
	}
	// From here on shutdown knows of it.
	f.all[s] = struct{}{}
	f.wg.Add(1)
	f.mu.Unlock()

	result := make(chan error, 1)
	started := func(pid int, err error) {
		f.mu.Lock()
		s.pid = pid
		f.mu.Unlock()
		result <- err
	}
	ended := func() {
		kill() // frees the context
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
		return nil, startError(requestID, err)
	}
	if err := s.ready(requestID); err != nil {
		return nil, err
	}
	return s, nil
}
