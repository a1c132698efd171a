package dynamotest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A process is a running command. Its end is always waited for.
type process struct {
	cmd    *exec.Cmd
	output *headTail
	done   chan struct{} // closed when the process has ended
	err    error         // how it ended; valid once done is closed
}

// startProcess starts cmd, collecting the beginning and the end of what it
// prints.
//
// On Linux the kernel is asked to kill the child with its parent, and "parent"
// means the OS thread that forked it, not the process. Threads of a Go program
// do end (with a goroutine that stays locked to its thread), so the child is
// forked from a thread that serves nothing else and lives as long as the child.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: &headTail{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
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

// kill ends the process, by its own id, and waits until it is gone. It is no
// error that it ended before.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// headTail keeps the first and the last bytes written to it: a Java exception
// tells most in its first line, other errors in the last.
type headTail struct {
	mu         sync.Mutex
	head, tail []byte
}

const headTailSize = 4 << 10

func (h *headTail) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(b)
	k := min(headTailSize-len(h.head), n)
	h.head = append(h.head, b[:k]...)
	h.tail = append(h.tail, b[k:]...)
	if extra := len(h.tail) - headTailSize; extra > 0 {
		h.tail = append(h.tail[:0], h.tail[extra:]...)
	}
	return n, nil
}

func (h *headTail) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.head) + string(h.tail)
}

// oneLine makes output of programs fit for a list of reasons: one line, no
// stack frames, no more than a reader takes in.
func oneLine(s string) string {
	var kept []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "... ") || strings.HasPrefix(line, "SLF4J:") {
			continue
		}
		kept = append(kept, line)
	}
	const limit = 800
	if s = strings.Join(kept, "; "); len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + " …"
	}
	return s
}
