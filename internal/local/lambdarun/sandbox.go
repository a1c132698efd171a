package lambdarun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/local/ids"
)

// sandbox is one process with its Runtime API. It runs one invocation at a
// time, or as many as its process has workers.
type sandbox struct {
	api *runtimeAPI
	// tenant is the one that the process works for; "" where there are none.
	tenant string
	// up is closed when the process asks for its first work, or has failed to.
	up chan struct{}
	// upErr is why it failed; read it after up is closed.
	upErr error
	// kill sends SIGKILL, to this very process and to no other that may have
	// got its number. Before the start it prevents the start.
	kill context.CancelFunc
	// gone is closed when the process has ended and been waited for.
	gone chan struct{}
	// exit is how the process ended; read it after gone is closed.
	exit string

	// Guarded by Function.mu:
	pid     int                      // 0 before the start
	load    int                      // workers that are taken
	runs    map[*invocation]struct{} // what they run
	retired bool                     // killed by Restart
}

// output gives a child process its standard output or error. All writers of a
// function share mu, as they may be one writer, and several processes write.
func output(w io.Writer, mu *sync.Mutex) io.Writer {
	switch w := w.(type) {
	case nil:
		return nil
	case *os.File:
		return w // inherited: no pipe to be broken
	default:
		return &lockedWriter{mu: mu, w: w}
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// apiServer serves a Runtime API on a port of its own.
type apiServer struct {
	addr   string
	server *http.Server
	served chan struct{}  // closed when Serve has returned
	conns  sync.WaitGroup // the goroutines of the connections
}

func serveRuntimeAPI(ctx context.Context, api *runtimeAPI) (*apiServer, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &apiServer{addr: ln.Addr().String(), served: make(chan struct{})}
	s.server = &http.Server{
		Handler:           api.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		// http.Server.Close does not wait for handlers; this does. StateNew is
		// reported by Serve itself, so no Add can follow its return.
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.conns.Done()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(ln) // ends by close only
	}()
	return s, nil
}

// close returns when no goroutine of the server is left.
func (s *apiServer) close() {
	_ = s.server.Close()
	<-s.served
	s.conns.Wait()
}

// run starts the process and stays until it has ended and everything of the
// sandbox is gone. started is called once, with the process's id or with the
// error that kept it from starting; ended is called before gone is closed.
// ctx is the one that kill cancels.
func (s *sandbox) run(ctx context.Context, cfg Config, outputMu *sync.Mutex, started func(pid int, err error), ended func()) {
	defer close(s.gone)
	defer ended()

	server, err := serveRuntimeAPI(ctx, s.api)
	if err != nil {
		started(0, err)
		return
	}
	defer server.close()

	// The thread must live as long as the process: see sandboxAttr.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, cfg.Binary)
	cmd.Dir = filepath.Dir(cfg.Binary)
	cmd.Env = cfg.environ(server.addr, ids.LogStream())
	cmd.Stdout = output(cfg.Stdout, outputMu)
	cmd.Stderr = output(cfg.Stderr, outputMu)
	cmd.SysProcAttr = sandboxAttr()
	// A grandchild may hold the pipes; don't wait for it.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		started(0, err)
		return
	}
	started(cmd.Process.Pid, nil)
	// The error repeats the state, or tells of the kill we asked for.
	_ = cmd.Wait()
	s.exit = cmd.ProcessState.String()
}

// ready waits for a started sandbox to ask for its first work.
func (s *sandbox) ready(requestID string) error {
	timer := time.NewTimer(initTimeout)
	defer timer.Stop()
	select {
	case <-s.api.polled:
		if s.shared() {
			s.api.polled <- struct{}{} // for who is handed an invocation first
		}
		return nil
	case <-s.gone:
	case <-timer.C:
		s.kill()
		<-s.gone
		return timedOutError(requestID, initTimeout)
	}
	// What the function said itself is worth more than how it died.
	select {
	case err := <-s.api.initFailed:
		err.RequestID = requestID
		return err
	default:
		return exitedError(requestID, s.exit)
	}
}

// shared reports whether the process runs several invocations at a time.
func (s *sandbox) shared() bool { return s.api.workers > 1 }

// finishShared waits for the end of the invocation that was handed over. At its
// deadline only that has failed: nobody ends the process. back is closed when
// the worker has come back from it, or its process is gone.
func (s *sandbox) finishShared(inv *invocation, cfg Config) (out outcome, back <-chan struct{}) {
	timer := time.NewTimer(time.Until(inv.deadline))
	defer timer.Stop()
	over := make(chan struct{})
	select {
	case out = <-inv.answer:
		close(over)
	case <-s.gone:
		close(over)
		select {
		case out = <-inv.answer:
		default:
			out = outcome{err: exitedError(inv.id, s.exit)}
		}
	case <-timer.C:
		out = outcome{err: timedOutError(inv.id, cfg.Timeout)}
		go func() {
			defer close(over)
			select {
			case <-inv.answer:
			case <-s.gone:
			}
		}()
	}
	return out, over
}

// finish waits for the end of the invocation that was handed over. It reports
// whether the sandbox can take another; if not, its process is gone.
func (s *sandbox) finish(inv *invocation, cfg Config) (out outcome, reusable bool) {
	timer := time.NewTimer(time.Until(inv.deadline.Add(cfg.Overtime)))
	defer timer.Stop()

	// An answer that is there counts, whatever else has come to pass.
	answered := func(otherwise error) outcome {
		select {
		case out := <-inv.answer:
			return out
		default:
			return outcome{err: otherwise}
		}
	}
	select {
	case out = <-inv.answer:
	case <-s.gone:
		return answered(exitedError(inv.id, s.exit)), false
	case <-timer.C:
		s.kill()
		<-s.gone
		return answered(timedOutError(inv.id, cfg.Timeout)), false
	}

	// The invocation ends when the runtime asks for the next: until then the
	// process may still be at work, or, after a panic, about to exit.
	select {
	case <-s.api.polled:
		return out, true
	case <-s.gone:
		return out, false
	case <-timer.C:
		s.kill()
		<-s.gone
		return out, false
	}
}

// startError tells why a process could not be started.
func startError(requestID string, err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return newFunctionError(requestID, TypeInvalidEntrypoint, fmt.Sprintf("RequestId: %s Error: %v", requestID, err))
}
