package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
)

// envRole makes this test binary the program itself, or a command for it to
// run. A foreign endpoint stands for the database where none is needed.
const (
	envRole = "DDBLOCAL_TEST_ROLE"
	foreign = "http://127.0.0.1:1"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "program":
		// What it runs is the command.
		os.Setenv(envRole, "command")
		main()
	case "command":
		os.Exit(command(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

func command(verb string, args []string) int {
	switch verb {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "env":
		for _, name := range args {
			fmt.Println(name + "=" + os.Getenv(name))
		}
		return 0
	case "table": // as a program of the library makes it, twice
		client, err := dynamo.NewClient(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient }) // without its limit of 2 s
		for range 2 {
			if err == nil {
				err = dynamo.CreateTable(context.Background(), client, "orders")
			}
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Print(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
		return 0
	case "wait": // for a signal, then exit with its number
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		fmt.Println("ready")
		return int((<-signals).(syscall.Signal))
	case "die":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	return 99
}

// program is the program as a process, with env instead of the AWS variables
// of the environment.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, envRole+"=program"), env...)
	return cmd
}

// result runs the program to its end.
func result(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return code, out.String(), errOut.String()
}

func TestProgramRunsTheCommandWithADatabase(t *testing.T) {
	t.Parallel()
	code, endpoint, errOut := result(t, program(t, nil, "--", os.Args[0], "table"))
	if code == exitUnavailable && os.Getenv("REQUIRE_DYNAMODB") == "" {
		t.Skip(errOut)
	}
	if code != 0 {
		t.Fatalf("got code %d, output %q, %q; want a table", code, endpoint, errOut)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(endpoint, "http://")); err == nil {
		_ = conn.Close()
		t.Errorf("the database at %s lives on", endpoint)
	}
}

func TestProgramExitsWithTheCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want int
	}{
		{"success", []string{"--", os.Args[0], "exit", "0"}, 0},
		{"failure", []string{"--", os.Args[0], "exit", "7"}, 7},
		{"without the dashes", []string{os.Args[0], "exit", "8"}, 8},
		{"a flag of the command's", []string{"--", os.Args[0], "exit", "9", "-x"}, 9},
		{"killed", []string{"--", os.Args[0], "die"}, exitSignal + 9},
		{"no such command", []string{"--", "./missing"}, exitNoCommand},
		{"no such flag", []string{"-x"}, exitUsage},
		{"help", []string{"-h"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errOut := result(t, program(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + foreign}, tt.args...))
			if code != tt.want {
				t.Errorf("got code %d, output %q, %q; want code %d", code, out, errOut, tt.want)
			}
		})
	}
}

func TestProgramSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	code, out, errOut := result(t, program(t, []string{"PATH=", "JAVA_HOME="}, "--", os.Args[0], "exit", "0"))
	if code != exitUnavailable || out != "" || !strings.Contains(errOut, "java isn't in PATH") {
		t.Errorf("got code %d, output %q, %q; want code %d and what is missing", code, out, errOut, exitUnavailable)
	}
	code, out, errOut = result(t, program(t, []string{"PATH=", "JAVA_HOME="}, "-optional", "--", os.Args[0], "env", "AWS_ENDPOINT_URL_DYNAMODB"))
	if code != 0 || out != "AWS_ENDPOINT_URL_DYNAMODB=\n" || !strings.Contains(errOut, "java isn't in PATH") {
		t.Errorf("optional: got code %d, output %q, %q; want the command's, and what is missing", code, out, errOut)
	}
	code, _, errOut = result(t, program(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=http://192.0.2.1:8000"}, "--", os.Args[0], "exit", "0"))
	if code != exitFailed || !strings.Contains(errOut, "192.0.2.1") {
		t.Errorf("a remote endpoint: got code %d, %q; want code %d", code, errOut, exitFailed)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	endpoints := []string{"AWS_ENDPOINT_URL_DYNAMODB=E", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=E", "DYNAMOTEST_SHARED=1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=false"}
	keys := []string{"AWS_ACCESS_KEY_ID=dynamotest", "AWS_SECRET_ACCESS_KEY=dynamotest"}
	join := func(parts ...[]string) (all []string) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, tt := range []struct {
		name      string
		env, want []string
	}{
		{"nothing set", []string{"HOME=/h"}, join([]string{"HOME=/h"}, endpoints, []string{"AWS_REGION=us-east-1"}, keys)},
		{
			"all set",
			[]string{"AWS_REGION=r", "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t"},
			join([]string{"AWS_REGION=r", "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t"}, endpoints),
		},
		{
			"half of the credentials",
			[]string{"AWS_REGION=r", "AWS_ACCESS_KEY_ID=k", "AWS_SESSION_TOKEN=t"},
			join([]string{"AWS_REGION=r", "AWS_ACCESS_KEY_ID=k"}, endpoints, keys),
		},
		{
			"an endpoint is there",
			[]string{"AWS_ENDPOINT_URL_DYNAMODB=E"},
			join([]string{"AWS_ENDPOINT_URL_DYNAMODB=E"}, slices.DeleteFunc(slices.Clone(endpoints), func(s string) bool { return s == "DYNAMOTEST_SHARED=1" }), []string{"AWS_REGION=us-east-1"}, keys),
		},
		{"the other region", []string{"AWS_DEFAULT_REGION=d"}, join([]string{"AWS_DEFAULT_REGION=d"}, endpoints, []string{"AWS_REGION=d"}, keys)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, environ(tt.env, "E")); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCommandSeesTheEnvironment(t *testing.T) {
	t.Parallel()
	cmd := program(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + foreign, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"},
		"--", os.Args[0], "env", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_REGION")
	code, out, errOut := result(t, cmd)
	want := "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + foreign + "\nAWS_IGNORE_CONFIGURED_ENDPOINT_URLS=false\nAWS_REGION=us-east-1\n"
	if code != 0 || out != want {
		t.Errorf("got code %d, %q, %q; want %q", code, out, errOut, want)
	}
}

func TestProgramForwardsSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sig  os.Signal
		want int
	}{{os.Interrupt, 2}, {syscall.SIGTERM, 15}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd := program(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + foreign}, "--", os.Args[0], "wait")
			newSession(cmd) // no terminal that could send interrupts
			if got := signalWhenReady(t, cmd, tt.sig); got != tt.want {
				t.Errorf("got code %d, want %d, the command's", got, tt.want)
			}
		})
	}
}

func TestProgramServesUntilASignal(t *testing.T) {
	t.Parallel()
	cmd := program(t, []string{"AWS_ENDPOINT_URL_DYNAMODB=" + foreign})
	if got := signalWhenReady(t, cmd, syscall.SIGTERM); got != 0 {
		t.Errorf("got code %d, want 0", got)
	}
}

// signalWhenReady starts the program, sends the signal after the first line it
// prints, and returns its exit code.
func signalWhenReady(t *testing.T, cmd *exec.Cmd, sig os.Signal) int {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Only an end to a test that fails.
	timer := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("no line before the signal: %q, %v", line, err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the exit code says it
	return cmd.ProcessState.ExitCode()
}
