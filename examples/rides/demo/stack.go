package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/testkit/tap"
)

// The times of the stacks are short, so that leases end soon. A dead process's lease
// ends after timeout and margin; the completer waits for grace in addition.
const (
	timeout = 3 * time.Second
	margin  = time.Second
	grace   = time.Second
)

// stack is template.yaml, run as by make local.
type stack struct {
	name string
	cmd  *exec.Cmd
	at   struct{ API, World, Control, Table string }
	api  string // the API behind the tap

	mu        sync.Mutex
	processes map[string]map[int]bool // processes seen of each function
	watched   sync.WaitGroup
	stop      context.CancelFunc
	ended     bool
}

// up starts a stack with its own tables. flags are further flags of samekey local. The
// stack ends with the stage, or by down.
func (st *stage) up(ctx context.Context, name string, flags ...string) (*stack, error) {
	name += "-" + rand.Text()[:8] // an existing database may have tables of the last demo
	s := &stack{name: name, processes: make(map[string]map[int]bool)}
	s.cmd = exec.CommandContext(ctx, "make", "--no-print-directory", "local")
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 20 * time.Second
	s.cmd.Stderr = st.logs
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), servers.OfMake),
		"LOCAL_API_PORT=0", "LOCAL_WORLD_PORT=0", "LOCAL_CONTROL_PORT=0",
		"LOCAL_FUNCTION_TIMEOUT="+timeout.String(), "LOCAL_LEASE_MARGIN="+margin.String(), "LOCAL_GRACE="+grace.String(), "LOCAL_STREAM_WINDOW=0s",
		"AWS_ENDPOINT_URL_DYNAMODB="+st.tapURL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS="+st.db.Endpoint,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1",
		"LOCALFLAGS=-stack-name "+strings.Join(append([]string{name}, flags...), " "))
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	st.closers = append(st.closers, s.down)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		return nil, fmt.Errorf("make local has not come up; its log ends with\n%s", tail(st.logs.Name()))
	}
	if err := json.Unmarshal(lines.Bytes(), &s.at); err != nil {
		return nil, err
	}
	target, err := url.Parse(s.at.API)
	if err == nil {
		s.api, err = st.serve(ctx, st.front.Handler(target, tap.Path))
	}
	if err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.watched.Go(func() { s.watch(ctx) })
	return s, nil
}

// down ends the stack, as Ctrl-C does, and returns when it has ended.
func (s *stack) down() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.stop != nil {
		s.stop()
		s.watched.Wait()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // the process may have ended
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) { // make ends by the signal
		return err
	}
	return nil
}

func tail(file string) string {
	all, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-8):], "\n  ")
}

// function is the control server's report about a function.
type function struct {
	Name        string `json:"name"`
	PID         int    `json:"pid"`
	Invocations int    `json:"invocations"`
}

func (s *stack) functions(ctx context.Context) (all []function, err error) {
	return all, call(ctx, "GET", s.at.Control+"/functions", nil, &all)
}

// watch records the processes of the functions, until ctx ends.
func (s *stack) watch(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_, _ = s.look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *stack) look(ctx context.Context) ([]function, error) {
	all, err := s.functions(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range all {
		if s.processes[f.Name] == nil {
			s.processes[f.Name] = make(map[int]bool)
		}
		if f.PID != 0 {
			s.processes[f.Name][f.PID] = true
		}
	}
	return all, err
}

// kill sends SIGKILL to the function's process that got work last.
func (s *stack) kill(ctx context.Context, name string) error {
	all, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.Name == name && f.PID != 0 {
			fmt.Printf("  kill -9 %d (%s)\n", f.PID, name)
			p, err := os.FindProcess(f.PID)
			if err != nil {
				return err
			}
			return p.Kill()
		}
	}
	return fmt.Errorf("%s has no process", name)
}

// sources pauses the event sources of a function, or lets them go on.
func (s *stack) sources(ctx context.Context, name, what string) error {
	return call(ctx, "POST", s.at.Control+"/functions/"+name+"/"+what, nil, nil)
}
