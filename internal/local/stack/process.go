package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// processGrace is how long a process may take to end after SIGTERM, before it is killed.
const processGrace = 3 * time.Second

// choosePort replaces port 0 in the URL by a free port. It fails if another program
// uses the URL's port, because awaitProcess would take that program for the process.
// The listener p.port keeps other programs from the port until the process starts.
func (p *Process) choosePort(ctx context.Context) error {
	if p.URL == "" {
		return nil
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return err
	}
	if u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" {
		return fmt.Errorf("%q is not a URL like http://127.0.0.1:3001", p.URL)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", u.Host)
	if errors.Is(err, syscall.EADDRINUSE) && u.Port() != "0" {
		return fmt.Errorf("%w (choose another by --process-url, or 0 for any free port)", err)
	}
	if err != nil {
		return err
	}
	if u.Port() == "0" {
		u.Host = ln.Addr().String()
		p.URL = u.String()
	}
	p.port = ln
	return nil
}

// portVariable returns the variable that tells the process its port, such as
// LOCAL_WORLD_PORT=3001. It returns "" if the process has no URL.
func (p *Process) portVariable() string {
	u, err := url.Parse(p.URL)
	if p.URL == "" || err != nil {
		return ""
	}
	return "LOCAL_" + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")) + "_PORT=" + u.Port()
}

func (s *Stack) startProcesses(ctx context.Context, base []string) error {
	for _, p := range s.opts.Processes {
		env := append(os.Environ(), base...)
		if v := p.portVariable(); v != "" {
			env = append(env, v)
		}
		run, err := startProcess(p, env, s.logs.prefixed(p.Name))
		if err != nil {
			return fmt.Errorf("process %s: %w", p.Name, err)
		}
		s.onClose(func() error { return run.End(processGrace) })
		if p.URL != "" {
			if err := awaitProcess(ctx, p, run); err != nil {
				return fmt.Errorf("process %s: %w", p.Name, err)
			}
		}
		go s.watch(ctx, p.Name, run)
	}
	return nil
}

// Stack.watch reports a process that ends before the stack does.
func (s *Stack) watch(ctx context.Context, name string, run *servers.Process) {
	select {
	case <-ctx.Done():
	case <-run.Done():
		if ctx.Err() == nil {
			s.log.ErrorContext(ctx, "a process has ended", "process", name, "error", orExit(run.Err()))
		}
	}
}

// startProcess starts p. On Linux the kernel kills the started process when the program
// that runs the stack ends, even if that program was killed.
func startProcess(p Process, env []string, output io.Writer) (*servers.Process, error) {
	cmd := exec.Command(p.Command[0], p.Command[1:]...) //nolint:noctx // it is asked to end before it is killed
	cmd.Env, cmd.Stdout, cmd.Stderr = env, output, output
	if p.port != nil {
		if err := p.port.Close(); err != nil {
			return nil, err
		}
	}
	return servers.StartProcess(cmd)
}

// awaitProcess waits until the process answers at its URL, even with a refusal.
func awaitProcess(ctx context.Context, p Process, run *servers.Process) error {
	err := servers.WaitAnswer(ctx, "it", p.URL, run.Done())
	select {
	case <-run.Done(): // checked even after an answer, because another program may have given the answer
		return fmt.Errorf("the process has ended: %w", orExit(run.Err()))
	default:
		return err
	}
}

func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
