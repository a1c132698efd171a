package lambdarun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

func TestInvocationsOneAfterTheOtherShareASandbox(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	if got := f.PIDs(); len(got) != 0 {
		t.Errorf("processes before the first invocation: %v", got)
	}
	first := mustInvoke(t, f, testEvent{Op: "echo", Value: "héllo\n"})
	if first.Value != "héllo\n" || first.Count != 1 {
		t.Errorf("first reply is %+v", first)
	}
	for i := 2; i <= 5; i++ {
		got := mustInvoke(t, f, testEvent{Op: "echo"})
		if got.PID != first.PID || got.Count != i {
			t.Errorf("invocation %d: process %d, its count %d; want process %d", i, got.PID, got.Count, first.PID)
		}
	}
	if diff := cmp.Diff([]int{first.PID}, f.PIDs()); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if got := f.Running(); len(got) != 0 {
		t.Errorf("running while idle: %v", got)
	}
}

func TestConcurrentInvocationsHaveSandboxesOfTheirOwn(t *testing.T) {
	t.Parallel()
	const n = 3
	f := start(t, func(c *Config) { c.MaxConcurrency = n })
	g := localtest.NewGate(t)
	calls := make([]*background, 0, n)
	for range n {
		calls = append(calls, invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL}))
	}
	for range n {
		<-g.Arrived
	}

	pids := f.PIDs()
	if len(pids) != n {
		t.Errorf("%d processes for %d invocations", len(pids), n)
	}
	running := f.Running()
	for i, s := range running {
		if !slices.Contains(pids, s.PID) || s.RequestID == "" || s.Since.IsZero() {
			t.Errorf("running: %+v", s)
		}
		if i > 0 && s.Since.Before(running[i-1].Since) {
			t.Error("Running is not in order")
		}
	}
	if len(running) != n {
		t.Errorf("Running lists %d, want %d", len(running), n)
	}

	// Ensure one more is refused, not queued.
	if _, err := invoke(t.Context(), f, testEvent{Op: "echo"}); !errors.Is(err, ErrThrottled) {
		t.Errorf("beyond the limit: %v, want %v", err, ErrThrottled)
	}

	g.Open()
	for _, c := range calls {
		<-c.done
		if c.err != nil {
			t.Error(c.err)
		}
	}
	// Ensure the sandboxes are used again.
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); !slices.Contains(pids, got.PID) || got.Count != 2 {
		t.Errorf("afterwards process %d answered, its count %d; had %v", got.PID, got.Count, pids)
	}
}

func TestProcessSeesLambdasEnvironment(t *testing.T) {
	t.Setenv("LAMBDALOCAL_SECRET", "of the parent")
	f := start(t, func(c *Config) {
		c.Name, c.MemoryMB, c.Timeout = "rides", 256, time.Hour/4
		c.Env = []string{"TABLE=rides", "AWS_REGION=eu-west-3", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "EMPTY="}
	})
	before := time.Now()
	got := mustInvoke(t, f, testEvent{Op: "describe"})
	after := time.Now()

	env := make(map[string]string)
	for _, v := range got.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	if env["AWS_LAMBDA_RUNTIME_API"] == "127.0.0.1:1" {
		t.Error("configuration overrides the Runtime API address")
	}
	if !strings.Contains(env["AWS_LAMBDA_LOG_STREAM_NAME"], "[$LATEST]") {
		t.Errorf("log stream is %q", env["AWS_LAMBDA_LOG_STREAM_NAME"])
	}
	if env["_X_AMZN_TRACE_ID"] != got.TraceID || !strings.HasPrefix(got.TraceID, "Root=1-") {
		t.Errorf("trace id is %q, in the environment %q", got.TraceID, env["_X_AMZN_TRACE_ID"])
	}
	for _, name := range []string{"AWS_LAMBDA_RUNTIME_API", "AWS_LAMBDA_LOG_STREAM_NAME", "_X_AMZN_TRACE_ID", "PWD"} {
		delete(env, name)
	}
	want := map[string]string{
		"AWS_DEFAULT_REGION":              "eu-west-3",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
		"AWS_LAMBDA_FUNCTION_NAME":        "rides",
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/rides",
		"AWS_REGION":                      "eu-west-3",
		"EMPTY":                           "",
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"LAMBDA_TASK_ROOT":                filepath.Dir(bootstrap),
		"LANG":                            "en_US.UTF-8",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"TABLE":                           "rides",
		"TZ":                              ":UTC",
		"_HANDLER":                        "bootstrap",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(bootstrap)); err != nil || got.Dir != dir {
		t.Errorf("working directory is %q, want %q (%v)", got.Dir, dir, err)
	}
	if want := "arn:aws:lambda:eu-west-3:123456789012:function:rides"; got.ARN != want {
		t.Errorf("ARN is %q, want %q", got.ARN, want)
	}
	if len(got.RequestID) != 36 {
		t.Errorf("request id is %q", got.RequestID)
	}
	deadline := time.UnixMilli(got.DeadlineMS)
	if min, max := before.Add(time.Hour/4-time.Millisecond), after.Add(time.Hour/4); deadline.Before(min) || deadline.After(max) {
		t.Errorf("deadline is %v, want one from %v to %v", deadline, min, max)
	}
}

func TestFunctionErrorKeepsTheSandbox(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	pid := mustInvoke(t, f, testEvent{Op: "echo"}).PID
	_, err := invoke(t.Context(), f, testEvent{Op: "fail", Value: "no funds"})
	fe, ok := errors.AsType[*FunctionError](err)
	if !ok {
		t.Fatalf("error is %v", err)
	}
	if fe.Type != "declinedError" || fe.Message != "declined: no funds" || len(fe.RequestID) != 36 {
		t.Errorf("error is %+v", fe)
	}
	if got, want := string(fe.Payload), `{"errorMessage":"declined: no funds","errorType":"declinedError"}`; got != want {
		t.Errorf("payload is %s, want %s", got, want)
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID != pid {
		t.Errorf("next process is %d, want %d", got.PID, pid)
	}
}

// Ensure every way to lose a process gives the right error, and a fresh process
// next time.
func TestLostSandboxIsReplaced(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		event       testEvent
		wantType    string
		wantMessage string // without the request id
	}{
		{"panic", testEvent{Op: "panic", Value: "oh no"}, "string", "oh no"},
		{"exit with a status", testEvent{Op: "exit", N: 7}, TypeExited, "Error: Runtime exited with error: exit status 7"},
		{"exit without one", testEvent{Op: "exit"}, TypeExited, "Error: Runtime exited without providing a reason"},
		{
			"response too large",
			testEvent{Op: "big", N: MaxResponseBytes + 1},
			TypeResponseTooLarge,
			"Response payload size exceeded maximum allowed payload size (6291556 bytes).",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, func(c *Config) { c.MaxConcurrency = 1 })
			pid := mustInvoke(t, f, testEvent{Op: "echo"}).PID
			_, err := invoke(t.Context(), f, tt.event)
			fe, ok := errors.AsType[*FunctionError](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			if got := strings.TrimPrefix(fe.Message, "RequestId: "+fe.RequestID+" "); fe.Type != tt.wantType || got != tt.wantMessage {
				t.Errorf("error is %s, %q, want %s, %q", fe.Type, got, tt.wantType, tt.wantMessage)
			}
			if !json.Valid(fe.Payload) {
				t.Errorf("payload is %q", fe.Payload)
			}
			if alive(pid) {
				t.Errorf("process %d lives", pid)
			}
			if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == pid || got.Count != 1 {
				t.Errorf("next process is %d, its count %d; the lost one was %d", got.PID, got.Count, pid)
			}
		})
	}
}

func TestLargestPayloadsPass(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	out, err := f.Invoke(t.Context(), fmt.Appendf(nil, `{"op":"big","n":%d}`, MaxResponseBytes))
	if err != nil || len(out) != MaxResponseBytes {
		t.Errorf("largest response: %d bytes, %v", len(out), err)
	}
	payload := []byte(`{"op":"echo"}`)
	payload = append(payload, strings.Repeat(" ", MaxRequestBytes-len(payload))...)
	if _, err := f.Invoke(t.Context(), payload); err != nil {
		t.Errorf("largest request: %v", err)
	}
	if _, err := f.Invoke(t.Context(), append(payload, ' ')); !errors.Is(err, ErrRequestTooLarge) {
		t.Errorf("one byte more: %v, want %v", err, ErrRequestTooLarge)
	}
}

func TestTimeoutKillsTheSandbox(t *testing.T) {
	t.Parallel()
	over := make(chan time.Time)
	f := start(t, func(c *Config) {
		c.MaxConcurrency, c.after = 1, func(time.Duration) <-chan time.Time { return over }
	})
	pid, g := mustInvoke(t, f, testEvent{Op: "echo"}).PID, localtest.NewGate(t)
	call := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived
	over <- time.Now()
	<-call.done
	fe, ok := errors.AsType[*FunctionError](call.err)
	if !ok || fe.Type != TypeTimedOut {
		t.Fatalf("error is %v", call.err)
	}
	if want := "RequestId: " + fe.RequestID + " Error: Task timed out after 300.00 seconds"; fe.Message != want {
		t.Errorf("message is %q, want %q", fe.Message, want)
	}
	if alive(pid) {
		t.Errorf("process %d lives", pid)
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == pid || got.Count != 1 {
		t.Errorf("next process is %d, its count %d", got.PID, got.Count)
	}
}

func TestOvertimeLetsAProcessGoOnBeyondItsDeadline(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.Timeout, c.Overtime = time.Second, 10*time.Minute })
	g := localtest.NewGate(t) // stays closed: the function gives up at the deadline it was told
	_, err := invoke(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	fe, ok := errors.AsType[*FunctionError](err)
	if !ok || fe.Type == TypeTimedOut || !strings.Contains(fe.Message, "context deadline exceeded") {
		t.Fatalf("error is %v, want the function's own", err)
	}
	if pids := f.PIDs(); len(pids) != 1 || !alive(pids[0]) {
		t.Errorf("processes %v, want the one that is late", pids)
	}
}

func TestKillInTheMiddleOfAnInvocation(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	g := localtest.NewGate(t)
	call := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived

	running := f.Running()
	if len(running) != 1 {
		t.Fatalf("running: %v", running)
	}
	if err := f.Kill(running[0].PID); err != nil {
		t.Fatal(err)
	}
	<-call.done
	fe, ok := errors.AsType[*FunctionError](call.err)
	if !ok || fe.Type != TypeExited || fe.RequestID != running[0].RequestID {
		t.Fatalf("error is %+v", call.err)
	}
	if want := "RequestId: " + fe.RequestID + " Error: Runtime exited with error: signal: killed"; fe.Message != want {
		t.Errorf("message is %q, want %q", fe.Message, want)
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == running[0].PID {
		t.Errorf("process %d answers after its death", got.PID)
	}
	if err := f.Kill(running[0].PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("second kill: %v, want %v", err, os.ErrProcessDone)
	}
}

func TestInitFailure(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		change      func(*Config)
		wantType    string
		wantMessage string
	}{
		{
			"exit", func(c *Config) { c.Env = []string{"TEST_INIT=exit"} },
			TypeExited, "Runtime exited with error: exit status 3",
		},
		{"reported", func(c *Config) { c.Env = []string{"TEST_INIT=report"} }, "Runtime.BadConfig", "no table"},
		{"not a program", func(c *Config) { c.Binary = text }, TypeInvalidEntrypoint, "permission denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, func(c *Config) { c.MaxConcurrency = 1; tt.change(c) })
			for range 2 { // the place is free again
				_, err := invoke(t.Context(), f, testEvent{Op: "echo"})
				fe, ok := errors.AsType[*FunctionError](err)
				if !ok || fe.Type != tt.wantType || !strings.HasSuffix(fe.Message, tt.wantMessage) || fe.RequestID == "" {
					t.Errorf("error is %+v, want %s, …%s", err, tt.wantType, tt.wantMessage)
				}
			}
			if got := f.PIDs(); len(got) != 0 {
				t.Errorf("processes: %v", got)
			}
		})
	}
}

func TestInvocationRunsOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.MaxConcurrency = 1 })
	g := localtest.NewGate(t)
	cause := errors.New("caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	call := invokeInBackground(ctx, f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived
	pid := f.Running()[0].PID
	cancel(cause)
	<-call.done
	if !errors.Is(call.err, cause) {
		t.Errorf("error is %v, want %v", call.err, cause)
	}
	// Ensure it still counts.
	if _, err := invoke(t.Context(), f, testEvent{Op: "echo"}); !errors.Is(err, ErrThrottled) {
		t.Errorf("meanwhile: %v, want %v", err, ErrThrottled)
	}
	g.Open()
	var got testReply
	var err error
	for err = ErrThrottled; errors.Is(err, ErrThrottled); {
		runtime.Gosched()
		got, err = invoke(t.Context(), f, testEvent{Op: "echo"})
	}
	if err != nil || got.PID != pid || got.Count != 2 {
		t.Errorf("afterwards process %d answered, its count %d, error %v; want process %d", got.PID, got.Count, err, pid)
	}

	if _, err := invoke(ctx, f, testEvent{Op: "echo"}); !errors.Is(err, cause) {
		t.Errorf("with a context that has ended: %v, want %v", err, cause)
	}
}

func TestOutputOfTheProcesses(t *testing.T) {
	t.Parallel()
	var out, errOut localtest.Buffer
	f := start(t, func(c *Config) { c.Stdout, c.Stderr = &out, &errOut })
	mustInvoke(t, f, testEvent{Op: "print", Value: "hello"})
	if err := f.Close(); err != nil { // all is copied then
		t.Fatal(err)
	}
	if got, want := out.String(), "out: hello\n"; got != want {
		t.Errorf("standard output is %q, want %q", got, want)
	}
	if got, want := errOut.String(), "err: hello\n"; got != want {
		t.Errorf("standard error is %q, want %q", got, want)
	}
}

// end is a way to end a function.
type end struct {
	name string
	do   func(f *Function, cancel context.CancelFunc)
}

func TestCloseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, e := range []end{
		{"by Close", func(f *Function, _ context.CancelFunc) { _ = f.Close() }},
		{"by the context", func(_ *Function, cancel context.CancelFunc) { cancel() }},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, err := Start(ctx, Config{Binary: bootstrap, Timeout: 5 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			g := localtest.NewGate(t)
			idle := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
			<-g.Arrived
			hung := localtest.NewGate(t)
			working := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: hung.URL})
			<-hung.Arrived
			g.Open()
			<-idle.done
			pids := f.PIDs()
			if len(pids) != 2 {
				t.Fatalf("processes: %v", pids)
			}

			e.do(f, cancel)
			<-working.done
			if !errors.Is(working.err, ErrClosed) {
				t.Errorf("invocation in flight: %v, want %v", working.err, ErrClosed)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(pids, alive) {
				t.Errorf("of %v some live", pids)
			}
			if got := f.PIDs(); len(got) != 0 {
				t.Errorf("processes: %v", got)
			}
			if _, err := invoke(t.Context(), f, testEvent{Op: "echo"}); !errors.Is(err, ErrClosed) {
				t.Errorf("invocation after it: %v, want %v", err, ErrClosed)
			}
		})
	}
}

// Ensure Close and invocations at once neither hang nor leak.
func TestCloseDuringInvocations(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.MaxConcurrency = 4 })
	calls := make([]*background, 0, 8)
	for range 8 {
		calls = append(calls, invokeInBackground(t.Context(), f, testEvent{Op: "echo"}))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		<-c.done
		if c.err != nil && !errors.Is(c.err, ErrClosed) && !errors.Is(c.err, ErrThrottled) {
			t.Errorf("error is %v", c.err)
		}
	}
	if got := f.PIDs(); len(got) != 0 {
		t.Errorf("processes: %v", got)
	}
}

// Ensure a sandbox in the middle of an invocation ends with its parent even if
// that is killed.
func TestParentDeath(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's parent death signal")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := localtest.NewGate(t)
	g.Open() // the process goes on to hang, where it would not notice anything
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "LAMBDARUN_TEST_PARENT="+bootstrap, "LAMBDARUN_TEST_GATE="+g.URL)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-g.Arrived
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The sandbox has inherited the pipe: its end is the end of both.
	out, err := io.ReadAll(stdout)
	if err != nil || string(out) != "out: ready\n" {
		t.Errorf("output is %q, %v", out, err)
	}
	_ = cmd.Wait() // says that it was killed
}

func TestStartChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"no binary", Config{}, "no binary"},
		{"missing binary", Config{Binary: filepath.Join(t.TempDir(), "none")}, "no such file"},
		{"directory", Config{Binary: "testdata"}, "is a directory"},
		{"negative timeout", Config{Binary: bootstrap, Timeout: -1}, "timeout"},
		{"timeout over Lambda's", Config{Binary: bootstrap, Timeout: time.Hour}, "timeout"},
		{"negative overtime", Config{Binary: bootstrap, Overtime: -1}, "overtime"},
		{"negative concurrency", Config{Binary: bootstrap, MaxConcurrency: -1}, "concurrency"},
		{"negative share", Config{Binary: bootstrap, PerProcess: -1}, "in a process"},
		{"share over Lambda's", Config{Binary: bootstrap, PerProcess: 1601}, "in a process"},
		{"negative memory", Config{Binary: bootstrap, MemoryMB: -1}, "memory"},
		{"bad variable", Config{Binary: bootstrap, Env: []string{"NAME"}}, "NAME=value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := Start(t.Context(), tt.cfg)
			if f != nil || err == nil || !strings.HasPrefix(err.Error(), "lambdarun: start: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error about %q", err, tt.want)
			}
		})
	}

	cfg, err := Config{Binary: bootstrap}.withDefaults()
	want := Config{Name: "function", Binary: bootstrap, Dir: filepath.Dir(bootstrap), Timeout: 3 * time.Second, MaxConcurrency: 10, PerProcess: 1, MemoryMB: 128}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreUnexported(Config{})); err != nil || diff != "" {
		t.Errorf("defaults: %v (-want +got):\n%s", err, diff)
	}
}

func TestBuildBootstrapTellsWhatTheCompilerSaid(t *testing.T) {
	t.Parallel()
	err := BuildBootstrap(t.Context(), "./testdata/none", filepath.Join(t.TempDir(), "bootstrap"))
	if err == nil || !strings.HasPrefix(err.Error(), "lambdarun: build ./testdata/none: ") || !strings.Contains(err.Error(), "directory not found") {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := BuildBootstrap(ctx, "./testdata/bootstrap", filepath.Join(t.TempDir(), "bootstrap")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestErrorBehindAResponseCounts(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	_, err := f.Invoke(t.Context(), []byte(`{"op":"broken stream"}`))
	fe, ok := errors.AsType[*FunctionError](err)
	if !ok || fe.Type != "declinedError" || fe.Message != "declined: midway" {
		t.Errorf("error is %v", err)
	}
}

func TestIdleSandboxThatDiedIsNotUsed(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	pid := mustInvoke(t, f, testEvent{Op: "echo"}).PID
	if err := f.Kill(pid); err != nil {
		t.Fatal(err)
	}
	if got := f.PIDs(); len(got) != 0 {
		t.Errorf("processes after the kill: %v", got)
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == pid {
		t.Errorf("process %d answers after its death", pid)
	}
}
