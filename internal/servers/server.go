package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrPortTaken matches the error of [Server.Start] when other processes repeatedly
// took the port that had been free a moment before.
var ErrPortTaken = errors.New("another process took the port")

const (
	// portTries is how many ports Start tries.
	portTries = 5
	// readyTimeout limits the start, which takes one to two seconds on an idle
	// machine, and minutes on a machine that is busy with tests.
	readyTimeout = 5 * time.Minute
)

// Server is a program to start. All fields except AllInterfaces and AllInterfacesHint are
// required.
type Server struct {
	// Name is the server's name in errors.
	Name string
	// Dir is a folder for temporary folders.
	Dir string
	// Command returns the command that starts the server. It is called for each try, with
	// another port and another folder tmp for temporary files.
	Command func(tmp string, port int) *exec.Cmd
	// PortTaken holds texts. If the port isn't free, the server prints one of them.
	PortTaken []string
	// AllInterfaces allows the server to listen on interfaces other than loopback. If
	// AllInterfaces is false and the server listens on such an interface, Start fails
	// on Linux. On other systems Start can't see where the server listens.
	AllInterfaces bool
	// AllInterfacesHint is appended to errors about interfaces. It says how to allow all
	// interfaces.
	AllInterfacesHint string
}

// Running is a started [Server] that has answered. It is safe for concurrent use.
type Running struct {
	// Endpoint is the base URL, http://127.0.0.1:PORT.
	Endpoint string

	process *Process
	tmp     string
	once    sync.Once
	err     error
}

// Start starts the server on a free port of 127.0.0.1 and waits until it answers
// anything over HTTP. If Start fails, no process is left. The end of ctx interrupts the
// start, but does not stop a started server.
func (s Server) Start(ctx context.Context) (*Running, error) {
	var running *Running
	var err error
	for range portTries {
		if running, err = s.startOnFreePort(ctx); !errors.Is(err, ErrPortTaken) {
			break
		}
	}
	return running, err
}

func (s Server) startOnFreePort(ctx context.Context) (*Running, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	tmp, err := makeTmp(s.Dir)
	if err != nil {
		return nil, err
	}
	p, err := StartProcess(s.Command(tmp, port))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", s.Name, err), os.RemoveAll(tmp))
	}
	r := &Running{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), process: p, tmp: tmp}
	if err := s.waitReady(ctx, r); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	if err := s.checkListeners(p.PID(), port); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// waitReady waits until the server answers or ends.
func (s Server) waitReady(ctx context.Context, r *Running) error {
	err := WaitAnswer(ctx, s.Name, r.Endpoint, r.process.Done())
	if err == nil {
		return nil
	}
	out := r.process.Output()
	if errors.Is(err, errEnded) {
		if slices.ContainsFunc(s.PortTaken, func(sign string) bool { return strings.Contains(out, sign) }) {
			return ErrPortTaken
		}
		return fmt.Errorf("%w: %w: %s", err, r.process.Err(), out)
	}
	return fmt.Errorf("%w: %s", err, out)
}

// Output returns the server's output so far, without the middle if it is long.
func (r *Running) Output() string { return r.process.Output() }

// Stop ends the server and waits until it has ended. Later calls of Stop return the first
// call's result.
func (r *Running) Stop() error {
	r.once.Do(func() { r.err = errors.Join(r.process.Kill(), os.RemoveAll(r.tmp)) })
	return r.err
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
