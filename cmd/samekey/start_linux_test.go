package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

// A signal during the start of a stack leaves nothing behind, whenever it comes.
func TestNothingIsLeftOfAStart(t *testing.T) {
	dynamotest.Start(t) // skips without DynamoDB Local
	if err := os.WriteFile(filepath.Join(stackDir, "start.yaml"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, after := range map[string]string{
		"at its begin": "reading", "in the middle": "starting a database", "at its end": "starting the functions",
	} {
		t.Run(name, func(t *testing.T) {
			mark := "SAMEKEY_TEST_START=" + t.Name()
			cmd := exec.Command(samekey, "local", "-template", "start.yaml")
			cmd.Dir = stackDir
			cmd.Env = append(clean(os.Environ()), "LOCAL_API_PORT=0", "LOCAL_CONTROL_PORT=0", mark)
			logs := &safeBuffer{}
			cmd.Stderr = logs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, after, func() bool { return strings.Contains(logs.String(), after) }, logs.String)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v: %s", err, logs.String())
			}
			if left := withVariable(t, mark); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
}

// withVariable returns the processes with this variable in their environment.
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
