package servers

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a command that StartProcess has started. A goroutine waits for the command's
// end. A Process is safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	output *HeadTail
	done   chan struct{} // closed when the process has ended
	err    error         // how the process ended; valid once done is closed
}

// StartProcess starts cmd. It sets cmd's SysProcAttr and WaitDelay. If cmd.Stdout is nil, it
// also sets Stdout and Stderr, and keeps the beginning and the end of the output for the
// method Output.
//
// On Linux the kernel kills the child when its parent ends. To the kernel, the parent is the
// OS thread that forked. Threads of a Go program may end early, so the child is forked from a
// locked thread that lives as long as the child.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, output: &HeadTail{}, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = p.output, p.output
	}
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Kill kills the process and waits until it is gone. If the process had already ended, Kill
// returns no error.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// End sends SIGTERM and gives the process time to end, at most the duration grace. Then it
// does what Kill does.
func (p *Process) End(grace time.Duration) error {
	if p.cmd.Process.Signal(syscall.SIGTERM) == nil { // fails if the process has ended, and on a system without signals
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	return p.Kill()
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process and returns how it ended, as
// [exec.Cmd.Wait] does.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Output returns the process's output so far, without the middle if it is
// long.
func (p *Process) Output() string { return p.output.String() }
