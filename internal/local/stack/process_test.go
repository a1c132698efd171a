package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

func startWorld(t *testing.T, args ...string) (*servers.Process, Process) {
	t.Helper()
	p := Process{Name: "world", Command: append([]string{worldProgram}, args...), URL: "http://127.0.0.1:0"}
	if err := p.choosePort(t.Context()); err != nil {
		t.Fatal(err)
	}
	run, err := startProcess(p, append(os.Environ(), p.portVariable()), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Kill() })
	return run, p
}

func TestProcessIsWaitedForAndEnded(t *testing.T) {
	t.Parallel()
	run, p := startWorld(t)
	if err := awaitProcess(t.Context(), p, run); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.HasPrefix(string(body), fmt.Sprint(run.PID())) {
		t.Errorf("%s, %v: not the process", body, err)
	}
	if err := run.End(processGrace); err != nil {
		t.Error(err)
	}
	if err := run.Err(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("ended by %v", err)
	}
}

func TestProcessThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	run, p := startWorld(t, "deaf")
	if err := awaitProcess(t.Context(), p, run); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := run.End(100 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if err := run.Err(); err == nil || err.Error() != "signal: killed" || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("ended by %v after %s", err, time.Since(begin))
	}
}

func TestProcessThatEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	run, err := startProcess(Process{Command: []string{"false"}}, os.Environ(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	err = awaitProcess(t.Context(), Process{URL: "http://127.0.0.1:1"}, run)
	if err == nil || !strings.Contains(err.Error(), "the process has ended: exit status 1") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run, _ = startWorld(t)
	if err := awaitProcess(ctx, Process{URL: "http://127.0.0.1:1"}, run); err == nil {
		t.Error("no error after the end of the context")
	}
}
