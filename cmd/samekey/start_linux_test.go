package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// A signal that comes before the stack is up, whatever it is doing then.
func TestNothingIsLeftOfAStart(t *testing.T) {
	dynamotest.Start(t) // or a skip that says why
	if err := os.WriteFile(filepath.Join(stackDir, "start.yaml"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	second := localtest.Stretch(time.Second)
	for name, after := range map[string]time.Duration{"at its begin": second / 10, "in the middle": second / 2, "at its end": second} {
		t.Run(name, func(t *testing.T) {
			mark := "SAMEKEY_TEST_START=" + t.Name()
			cmd := exec.Command(samekey, "local", "-template", "start.yaml")
			cmd.Dir = stackDir
			cmd.Env = append(clean(os.Environ()), "LOCAL_API_PORT=0", "LOCAL_CONTROL_PORT=0", mark)
			var logs bytes.Buffer
			cmd.Stderr = &logs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-time.After(after) // into the start, however far it is by then
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			deaf := status.Signaled() && status.Signal() == syscall.SIGTERM && logs.Len() == 0 // it didn't listen yet
			if err != nil && !deaf {
				t.Errorf("ended with %v: %s", err, logs.String())
			}
			if left := withVariable(t, mark); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
}

// withVariable returns the processes that have a variable in their environment.
func withVariable(t *testing.T, variable string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes at all: %v", err)
	}
	var found []string
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(variable+"\x00")) {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
