package idem

import (
	"fmt"
	"sync"
)

// gate lets the phases of a handler run one after the other. No phase runs after the
// attempt is over, the handler has returned, or a phase has failed.
//
// Code that holds a gate's lock may lock progress or calls. Code that holds a lock of
// progress or calls must not lock a gate.
type gate struct {
	pk string // of the record

	mu       sync.Mutex
	names    map[string]bool // names of all phases so far
	busy     bool            // a phase is running
	over     bool            // the handler has returned
	outlived bool            // the handler returned while a phase was running

	end *attemptOver // how a phase has ended the attempt; nil if none has
	err error        // error of the first failed phase
}

// attemptOver is the error of a phase that has ended the attempt: the answer is stored,
// the operation is stuck, or the attempt has lost or released the record. The handler
// can no longer change the answer. The phase returns toPhase to the handler, and
// [run.end] returns res or err.
type attemptOver struct {
	res     Result
	err     error // returned in place of res
	toPhase error // error that the phase returns; if it is nil, phaseRun.respond sets it to the error that carries the phase's answer
}

// Error implements error.
func (e *attemptOver) Error() string {
	if e.toPhase == nil {
		return ErrAnswered.Error()
	}
	return e.toPhase.Error()
}

// Unwrap returns the error that the phase returns.
func (e *attemptOver) Unwrap() error { return e.toPhase }

// gate.enter allows a phase to run. If recall finds a recorded result of the phase,
// enter returns that result, and the phase doesn't run.
func (g *gate) enter(s phaseSpec, recall func(phaseSpec) ([]byte, bool, error)) (raw []byte, recorded bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return nil, false, g.failLocked(fmt.Errorf("%w: %q begins after the handler has returned", ErrPhaseOrder, s.name))
	case g.busy:
		return nil, false, g.failLocked(fmt.Errorf("%w: %q begins while another phase runs", ErrPhaseOrder, s.name))
	case g.end != nil:
		return nil, false, ErrAnswered
	case g.err != nil:
		return nil, false, fmt.Errorf("%w: %w", ErrPhaseFailed, g.err)
	case g.names[s.name]:
		return nil, false, g.failLocked(fmt.Errorf("%w: a second phase named %q", ErrPhaseOrder, s.name))
	}
	if err := s.check(); err != nil {
		return nil, false, g.failLocked(err)
	}
	if g.names == nil {
		g.names = make(map[string]bool)
	}
	g.names[s.name] = true
	raw, recorded, err = recall(s)
	if err != nil {
		err = g.failLocked(err)
	}
	g.busy = !recorded && err == nil
	return raw, recorded, err
}

// gate.done records that the phase has ended. If err isn't nil, the phase has failed.
// If end isn't nil, the phase has also ended the attempt.
func (g *gate) done(end *attemptOver, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy, g.end = false, end
	if g.err == nil {
		g.err = err
	}
}

// gate.between runs the function do while no phase is running. If a phase is
// running, or if the handler or the attempt has ended, between returns an error and
// doesn't run do.
func (g *gate) between(do func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.end != nil:
		return ErrAnswered
	case g.over:
		return g.failLocked(fmt.Errorf("%w: jobs are staged after the handler has returned", ErrPhaseOrder))
	case g.busy:
		return g.failLocked(fmt.Errorf("%w: Stage while a phase runs: use its Tx", ErrPhaseOrder))
	}
	if err := do(); err != nil {
		return g.failLocked(err)
	}
	return nil
}

func (g *gate) fail(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failLocked(err)
}

// failLocked records that a phase has failed. Later phases then don't run, because the
// handler's work is incomplete. g must be locked.
func (g *gate) failLocked(err error) error {
	err = phaseError("phase", g.pk, err)
	if g.err == nil {
		g.err = err
	}
	return err
}

// gate.failure returns the error of the first failed phase, or nil.
func (g *gate) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// hasOutlived reports whether the handler returned while a phase was running.
func (g *gate) hasOutlived() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outlived
}

// mayCommit returns why the running phase must not commit; nil if it may. A phase must
// not commit if its function has begun another phase, or has staged a job without the
// phase's Tx. Otherwise a later attempt would use the recorded result, and skip that
// other phase or job.
func (g *gate) mayCommit() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outlived {
		return nil // run.write refuses the commit of a phase that outlives its handler
	}
	return g.err
}

// gate.close records that the handler has returned, and returns g.end, g.outlived and
// g.err. A phase that is still running counts as failed, since the handler didn't wait
// for its result.
func (g *gate) close() (end *attemptOver, outlived bool, first error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.busy {
		g.outlived = true
		_ = g.failLocked(fmt.Errorf("%w: the handler returned while a phase was running", ErrPhaseOrder))
	}
	return g.end, g.outlived, g.err
}
