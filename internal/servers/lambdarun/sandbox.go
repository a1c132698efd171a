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
	"runtime"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
)

// sandbox is a process with its Runtime API. The process has one or more workers. Each
// worker runs one invocation at a time.
type sandbox struct {
	api *runtimeAPI
	// tenant is the process's tenant; "" without tenants.
	tenant string
	// up is closed when the process asks for its first work, or has failed to start.
	up chan struct{}
	// upErr is the error of the start; read it after up is closed.
	upErr error
	// kill sends SIGKILL to the sandbox's process, and never to a later process with the
	// same id. Before the start, kill prevents the start.
	kill context.CancelFunc
	// gone is closed when the process has ended and was waited for.
	gone chan struct{}
	// exit is the final state of the process; read it after gone is closed.
	exit string

	// Guarded by Function.mu:
	pid     int                      // 0 before the start
	load    int                      // workers in use
	runs    map[*invocation]struct{} // the workers' invocations
	retired bool                     // killed by Restart
}

// output returns the writer for the standard output or error of a sandbox's process.
// All writers of a function share the mutex mu, because several processes write to w,
// and because Config.Stdout and Config.Stderr can be the same writer.
func output(w io.Writer, mu *sync.Mutex) io.Writer {
	switch w := w.(type) {
	case nil:
		return nil
	case *os.File:
		return w // the process inherits the file, so there is no pipe that could break
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

// apiServer serves a Runtime API on its own port.
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
		// http.Server.Close does not wait for handlers, so the method close waits for
		// conns. Serve itself calls ConnState with StateNew. So once Serve has
		// returned, no conns.Add can disturb conns.Wait.
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
		_ = s.server.Serve(ln) // returns only after close
	}()
	return s, nil
}

// apiServer.close returns when all goroutines of the server have ended.
func (s *apiServer) close() {
	_ = s.server.Close()
	<-s.served
	s.conns.Wait()
}

// sandbox.run starts the process, and returns when the process has ended and all
// resources of the sandbox are released. It calls started() once, with the process's id
// or with the error of the start. It calls ended() before s.gone is closed. s.kill must
// cancel ctx.
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
	cmd.Dir = cfg.Dir
	cmd.Env = cfg.environ(server.addr, ids.LogStream())
	cmd.Stdout = output(cfg.Stdout, outputMu)
	cmd.Stderr = output(cfg.Stderr, outputMu)
	cmd.SysProcAttr = sandboxAttr()
	// A grandchild may keep the pipes open. Wait at most this long for it.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		started(0, err)
		return
	}
	started(cmd.Process.Pid, nil)
	// The error of Wait isn't needed: it repeats the state, or says that s.kill was called
	// or that WaitDelay is over.
	_ = cmd.Wait()
	s.exit = cmd.ProcessState.String()
}

// sandbox.ready waits for a started sandbox to ask for its first work.
func (s *sandbox) ready(requestID string) error {
	timer := time.NewTimer(initTimeout)
	defer timer.Stop()
	select {
	case <-s.api.polled:
		if s.shared() {
			s.api.polled <- struct{}{} // put the token back for the first invocation
		}
		return nil
	case <-s.gone:
	case <-timer.C:
		s.kill()
		<-s.gone
		return timedOutError(requestID, initTimeout)
	}
	// The error that the function reported says more than its exit status.
	select {
	case err := <-s.api.initFailed:
		err.RequestID = requestID
		return err
	default:
		return exitedError(requestID, s.exit)
	}
}

// sandbox.shared reports whether the process runs several invocations at a time.
func (s *sandbox) shared() bool { return s.api.workers > 1 }

// finishShared waits for the end of the invocation. At the invocation's deadline only
// the invocation fails, and the process continues. The channel back is closed when the
// worker is free again or the process is gone.
func (s *sandbox) finishShared(inv *invocation, cfg Config) (out outcome, back <-chan struct{}) {
	late, over := cfg.after(time.Until(inv.deadline)), make(chan struct{})
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
	case <-late:
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

// sandbox.finish waits for the end of the invocation. If reusable is true, the sandbox
// can take another invocation. If reusable is false, the process is gone.
func (s *sandbox) finish(inv *invocation, cfg Config) (out outcome, reusable bool) {
	late := cfg.after(time.Until(inv.deadline.Add(cfg.Overtime)))

	// A posted answer is the outcome, even if the process has died or the deadline has
	// passed.
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
	case <-late:
		s.kill()
		<-s.gone
		return answered(timedOutError(inv.id, cfg.Timeout)), false
	}

	// The invocation ends when the runtime asks for the next invocation. Until then the
	// process may still be at work. After a panic it may be about to exit.
	select {
	case <-s.api.polled:
		return out, true
	case <-s.gone:
		return out, false
	case <-late:
		s.kill()
		<-s.gone
		return out, false
	}
}

func startError(requestID string, err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return newFunctionError(requestID, TypeInvalidEntrypoint, fmt.Sprintf("RequestId: %s Error: %v", requestID, err))
}
