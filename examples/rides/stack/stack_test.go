//go:build linux

package stack_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// ready is the line that make local prints, as far as it is promised.
type ready struct {
	Ready                                bool
	API, World, Control, DynamoDB, Table string
}

// stack is a make local that is up.
type stack struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	line   map[string]any
	at     ready
}

// start runs make local with more variables, and waits for its line. What is
// still there at the end of the test is ended. Where DynamoDB Local or the queue
// can't run, the test is skipped, or fails if REQUIRE_DYNAMODB is set.
func start(t *testing.T, env ...string) *stack {
	t.Helper()
	dynamotest.Start(t)
	cmd := exec.Command("make", "--no-print-directory", "local")
	cmd.Dir = "../../.."
	cmd.Env = append(clean(os.Environ()), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals go to make only, unlike a terminal's
	var logs bytes.Buffer
	cmd.Stderr = &logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a failed test left
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(logs.String())
		}
	})
	s := &stack{cmd: cmd, stdout: bufio.NewReader(out)}
	line, err := s.stdout.ReadBytes('\n')
	if err != nil {
		_ = cmd.Wait() // for the rest of its logs
		if !elasticmq.Required() && strings.Contains(logs.String(), elasticmq.ErrUnavailable.Error()) {
			servers.Missed.Skip(t, elasticmq.ErrUnavailable)
		}
		t.Fatalf("make local ends without a line: %v", err)
	}
	if err := errors.Join(json.Unmarshal(line, &s.line), json.Unmarshal(line, &s.at)); err != nil || !s.at.Ready {
		t.Fatalf("the line is %s: %v", line, err)
	}
	return s
}

// clean leaves out what would lead the stack elsewhere, and what a make that
// runs these tests tells the makes below it.
func clean(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "AWS_") || strings.HasPrefix(kv, "LOCAL") || servers.OfMake(kv)
	})
}

// freePorts returns ports that nobody listens on. The system gives them to nobody who asks
// for any port: make builds for a while before it takes them.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		ln, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		defer ln.Close()
		ports = append(ports, port)
	}
	return ports
}

// processes are make and all that descend from it, with their command lines.
func (s *stack) processes(t *testing.T) map[int]string {
	t.Helper()
	children := make(map[int][]int)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var pid, parent int
		var state string
		head, tail, _ := strings.Cut(string(stat), " (")
		tail = tail[strings.LastIndex(tail, ") ")+2:] // a name may hold anything
		if _, err := fmt.Sscan(head, &pid); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(tail, &state, &parent); err != nil {
			t.Fatal(err)
		}
		children[parent] = append(children[parent], pid)
	}
	all := make(map[int]string)
	var add func(pid int)
	add = func(pid int) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all[pid] = strings.ReplaceAll(string(command), "\x00", " ")
		for _, c := range children[pid] {
			add(c)
		}
	}
	add(s.cmd.Process.Pid)
	return all
}

// end sends make a signal, and checks that it was the last of everything.
func (s *stack) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	all := s.processes(t)
	count := make(map[string]int)
	for _, command := range all {
		program, _, _ := strings.Cut(command, " ")
		count[filepath.Base(program)]++
	}
	if count["make"] != 1 || count["samekey"] != 1 || count["java"] == 0 || count["bootstrap"] < 2 {
		t.Errorf("this isn't the whole stack: %v", all)
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(s.stdout); err != nil || len(rest) > 0 {
		t.Errorf("more than one line: %q, %v", rest, err)
	}
	_ = s.cmd.Wait()
	localtest.Eventually(t, "every process has ended", func() bool {
		maps.DeleteFunc(all, func(pid int, _ string) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		return len(all) == 0
	})
	for _, at := range []string{s.at.API, s.at.World, s.at.Control} {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://")); err == nil {
			_ = conn.Close()
			t.Errorf("%s still answers", at)
		}
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request; in is sent as JSON unless it is nil.
func call(t *testing.T, method, url string, in any, header ...string) answer {
	t.Helper()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			t.Fatal(err)
		}
	}
	a := localtest.Send(t, method, url, string(body), append([]string{"Content-Type", "application/json"}, header...)...)
	return answer{a.Status, a.Header, a.Body}
}

// get reads what an address has to say.
func get[T any](t *testing.T, url string) T {
	t.Helper()
	var out T
	a := call(t, http.MethodGet, url, nil)
	dec := json.NewDecoder(strings.NewReader(a.body))
	if err := dec.Decode(&out); err != nil || a.status != http.StatusOK {
		t.Fatalf("GET %s: %d %s: %v", url, a.status, a.body, err)
	}
	return out
}
