package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

func TestDying(t *testing.T) {
	t.Parallel()
	// From /proc/PID/status of make 4.3.
	const before = "Name:\tmake\nSigQ:\t0/96365\nSigPnd:\t0000000000000000\nSigBlk:\t0000000000010000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000001814207\n"
	for name, tt := range map[string]struct {
		status string
		want   bool
	}{
		"waiting for a recipe": {before, false},
		"in its handler":       {strings.NewReplacer("SigBlk:\t0000000000010000", "SigBlk:\t0000000000010002", "0000000001814207", "0000000001814205").Replace(before), true},
		"blocking for a while": {strings.Replace(before, "SigBlk:\t0000000000010000", "SigBlk:\t0000000001814207", 1), false},
		"ignoring":             {strings.NewReplacer("SigBlk:\t0000000000010000", "SigBlk:\t0000000000000002", "SigIgn:\t0000000000000000", "SigIgn:\t0000000000000002", "0000000001814207", "0").Replace(before), false},
		"nothing":              {"", false},
	} {
		if got := dying([]byte(tt.status)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// make doesn't pass SIGINT on, and can't when it is killed.
func TestWithParentEndsWithMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make here")
	}
	const tableless = `
Resources:
  Api:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties: {CodeUri: dist, Runtime: provided.al2023, Environment: {Variables: {ROLE: api}}}
`
	template := filepath.Join(stackDir, "tableless.yaml")
	makefile := filepath.Join(t.TempDir(), "Makefile")
	recipe := "local:\n\t@exec " + samekey + " local -with-parent -template " + template + "\n"
	for path, text := range map[string]string{template: tableless, makefile: recipe} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("MAKELEVEL", "1") // as below `make test`
	t.Setenv("MAKEFLAGS", "w")
	// Under nohup all child processes would ignore SIGHUP, and in the background of
	// a script SIGINT. After exec, a caught signal has its default action again.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(ignored) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := exec.Command("make", "-f", makefile)
			cmd.Env = append(clean(os.Environ()), "LOCAL_API_PORT=0", "LOCAL_CONTROL_PORT=0")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // processes that a failed test left behind
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			})
			stdout := bufio.NewReader(out)
			if line, err := stdout.ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"ready":true`) {
				t.Fatalf("line %q, %v", line, err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = stdout.ReadByte() // samekey holds the pipe open
			}()
			localtest.Eventually(t, "samekey ends", func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
		})
	}
}
