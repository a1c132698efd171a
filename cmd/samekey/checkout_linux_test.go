package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// The commands of docs/start/checkout.md, in an empty folder: a merchant is made, tested and
// run, and its examination finds nothing. The page's program is this checkout's.
func TestMerchantFromNothing(t *testing.T) {
	dynamotest.Start(t)
	if err := elasticmq.Start(t).Close(); err != nil { // the stack starts its own
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(localtest.Read(t, filepath.Join(root, "docs", "start", "checkout.md")), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "samekey")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/samekey/samekey/cmd/samekey").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "AWS_") || strings.HasPrefix(kv, "LOCAL") || servers.OfMake(kv)
	}), "SAMEKEY="+program, "SAMEKEY_INIT_REPLACE="+root, "LOCAL_API_PORT=0", "LOCAL_CONTROL_PORT=0")
	run := func(script string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", script, err, out)
		}
		return string(out)
	}
	const remote, local = "go run github.com/samekey/samekey/cmd/samekey@latest", "make local\n"
	first, runs := strings.CutSuffix(strings.Replace(blocks[0][1], remote, program, 1), local)
	if !runs || !strings.Contains(first, program) {
		t.Fatalf("the page begins with other commands:\n%s", blocks[0][1])
	}
	began := time.Now()
	out := run(first)
	t.Logf("made and tested in %v", time.Since(began).Round(time.Second))

	cmd := exec.Command("bash", "-c", "exec "+strings.TrimSpace(local))
	cmd.Dir, cmd.Env = filepath.Join(dir, "shop"), env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	logs := new(localtest.Buffer)
	cmd.Stderr = logs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if err := cmd.Wait(); t.Failed() {
			t.Logf("samekey local: %v\n%s", err, logs)
		}
	})
	var ready struct {
		Ready bool
		API   string
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &ready) != nil || !ready.Ready {
		t.Fatalf("%v: %s\n%s", err, line, logs)
	}
	const base = "http://localhost:3000"
	for what, commands := range map[string]string{"the page": blocks[1][1], "samekey init": out[strings.LastIndex(out, "Examine it: ")+len("Examine it: "):]} {
		commands, _, _ = strings.Cut(commands, "_sessions\n")
		if !strings.Contains(commands, base) {
			t.Fatalf("%s examines another place: %s", what, commands)
		}
		report := run("cd shop\n" + strings.NewReplacer(base, ready.API, remote, program).Replace(commands) + "_sessions")
		if !strings.Contains(report, "Rules broken: ACP 0\n") || strings.Contains(report, "?") && !strings.Contains(report, "[y/N]") {
			t.Errorf("%s:\n%s", what, report)
		}
	}
	t.Logf("examined after %v", time.Since(began).Round(time.Second))
}
