package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/stack"
	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

func TestOptionsOfLocal(t *testing.T) {
	t.Parallel()
	defaults := stack.Options{Template: "template.yaml", StackName: "local", APIPort: 3000, ControlPort: 3002}
	with := func(change func(*stack.Options)) stack.Options {
		o := defaults
		change(&o)
		return o
	}
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want stack.Options
	}{
		"defaults": {want: defaults},
		"ports of the environment": {
			env:  map[string]string{"LOCAL_API_PORT": "4000", "LOCAL_CONTROL_PORT": "0"},
			want: with(func(o *stack.Options) { o.APIPort, o.ControlPort = 4000, 0 }),
		},
		"the last port": {env: map[string]string{"LOCAL_API_PORT": "65535"}, want: with(func(o *stack.Options) { o.APIPort = 65535 })},
		"flags win": {
			env:  map[string]string{"LOCAL_API_PORT": "4000", "LOCAL_GRACE": "2s"},
			args: []string{"--api-port", "0", "--control-port=5002", "--template", "t.yaml", "--stack-name", "s", "--ttl"},
			want: with(func(o *stack.Options) {
				o.APIPort, o.ControlPort, o.Template, o.StackName, o.TTL = 0, 5002, "t.yaml", "s", true
				o.Overrides.Grace = new(2 * time.Second)
			}),
		},
		"values": {
			args: []string{
				"--parameter", "A=1=2", "--parameter", "B=", "--env", "C=x y",
				"--process", "world=dist/world  -v", "--process-url", "world=http://127.0.0.1:3001", "--process", "other=sleep",
			},
			want: with(func(o *stack.Options) {
				o.Parameters = map[string]string{"A": "1=2", "B": ""}
				o.Environment = map[string]string{"C": "x y"}
				o.Processes = []stack.Process{
					{Name: "world", Command: []string{"dist/world", "-v"}, URL: "http://127.0.0.1:3001"},
					{Name: "other", Command: []string{"sleep"}},
				}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags, fs := newLocalFlags(environment{stderr: io.Discard, getenv: func(name string) string { return tt.env[name] }}), pflag.NewFlagSet("", pflag.ContinueOnError)
			flags.register(fs)
			if err := fs.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			got, err := flags.options()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(stack.Options{}, "Logs"), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(stack.Process{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBadOptionsOfLocal(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		env  map[string]string
		args []string
	}{
		`LOCAL_API_PORT is "http"`:                      {env: map[string]string{"LOCAL_API_PORT": "http"}},
		`LOCAL_CONTROL_PORT is "70000"`:                 {env: map[string]string{"LOCAL_CONTROL_PORT": "70000"}},
		`LOCAL_GRACE is "5"`:                            {env: map[string]string{"LOCAL_GRACE": "5"}},
		`LOCAL_API_PORT is "65536"`:                     {env: map[string]string{"LOCAL_API_PORT": "65536"}},
		`LOCAL_UI_PORT is "-1"`:                         {env: map[string]string{"LOCAL_UI_PORT": "-1"}},
		`"=x" for "--process" flag: must be NAME=VALUE`: {args: []string{"--process", "=x"}},
		"must be NAME=VALUE":                            {args: []string{"--env", "X"}},
		"no --process has this name":                    {args: []string{"--process-url", "world=http://127.0.0.1:1"}},
	} {
		code, _, stderr := call(t, tt.env, append([]string{"local"}, tt.args...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("code %d, %q; want %q", code, stderr, want)
		}
	}
}

const template = `
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
  Api:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties:
      CodeUri: dist
      Runtime: provided.al2023
      Timeout: 30
      Environment: {Variables: {ROLE: api, TABLE: !Ref Table}}
      Events:
        Env: {Type: HttpApi, Properties: {Path: /env, Method: GET}}
`

// The stack has a page if its table has records' key. The command fails
// if the page's port is taken or its address can't be printed.
func TestLocalServesAPage(t *testing.T) {
	db := dynamotest.Start(t)
	bareAWS(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", db.Endpoint)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	ended, end := context.WithCancel(t.Context())
	end()
	sorted := strings.NewReplacer("AttributeType: S}]", "AttributeType: S}, {AttributeName: n, AttributeType: S}]", "KeyType: HASH}]", "KeyType: HASH}, {AttributeName: n, KeyType: RANGE}]").Replace(template)
	for name, tt := range map[string]struct {
		ctx            context.Context
		template, port string
		out            io.Writer
		code           int
		says           string // "": the command gets ready, and ends when ctx does
		page           bool
	}{
		"records":            {nil, template, "0", nil, 0, "", true},
		"other keys":         {nil, sorted, "0", nil, 0, "", false},
		"no port":            {nil, template, port, nil, 1, "address already in use", false},
		"a full disk":        {nil, template, "0", full{}, 1, "no space left", false},
		"a broken file":      {nil, "Resources: [", "0", nil, 1, "template.yaml: ", false},
		"ended at its begin": {ended, template, "0", nil, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			localtest.Write(t, filepath.Join(dir, "template.yaml"), tt.template)
			if err := os.Symlink(filepath.Join(stackDir, "dist"), filepath.Join(dir, "dist")); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			stdout, stderr := &safeBuffer{}, &safeBuffer{}
			env := environment{stdout: stdout, stderr: stderr, getenv: func(name string) string {
				return map[string]string{"LOCAL_API_PORT": "0", "LOCAL_CONTROL_PORT": "0", "LOCAL_UI_PORT": tt.port}[name]
			}}
			if tt.out != nil {
				env.stdout = tt.out
			}
			if tt.ctx == nil {
				tt.ctx = t.Context()
			}
			ctx, cancel := context.WithCancel(tt.ctx)
			defer cancel()
			code := make(chan int, 1)
			go func() { code <- run(ctx, env, []string{"local", "--stack-name", "page-" + rand.Text()}) }()
			if tt.says == "" && ctx.Err() == nil {
				waitFor(t, "the line", func() bool { return strings.HasSuffix(stdout.String(), "\n") }, stderr.String)
				var line struct{ API, Control, Table, UI string }
				if err := json.Unmarshal([]byte(stdout.String()), &line); err != nil || (line.UI != "") != tt.page {
					t.Errorf("%v, %s", err, stdout)
				}
				if tt.page && localtest.Send(t, http.MethodGet, line.UI, "").Status != http.StatusOK {
					t.Error("there is no page")
				}
				tells := "ready at " + line.API + "; Ctrl-C stops samekey local. To use samekey list and other commands in another terminal, first run there:\n"
				if tt.page {
					tells += "  export IDEM_TABLE=" + line.Table + "\n"
				}
				if !strings.Contains(stderr.String(), tells) || strings.Contains(stderr.String(), " AWS_DEFAULT_REGION=") != tt.page {
					t.Errorf("it doesn't say %q: %s", tells, stderr)
				}
				if localtest.Send(t, http.MethodGet, line.Control+"/functions", "").Status != http.StatusOK {
					t.Error("it has ended")
				}
				cancel()
			}
			if got := <-code; got != tt.code || !strings.Contains(stderr.String(), tt.says) || strings.Contains(stderr.String(), "there is no template.yaml") {
				t.Errorf("code %d, %s%s", got, stdout, stderr)
			}
		})
	}
	if err := noStream(fmt.Errorf("local: %w", stack.ErrNoStream)); !errors.Is(err, ui.ErrNoStream) || errors.Is(noStream(io.EOF), ui.ErrNoStream) || !errors.Is(noStream(io.EOF), io.EOF) {
		t.Errorf("without a stream: %v", err)
	}
}

// The whole program, with a database of its own, leaves nothing behind after a signal or a kill.
func TestNothingIsLeftBehind(t *testing.T) {
	dynamotest.Start(t) // skips without DynamoDB Local
	if err := os.WriteFile(filepath.Join(stackDir, "template.yaml"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		signal syscall.Signal
		want   string // how the program ends
	}{
		{syscall.SIGTERM, "exit status 0"},
		{syscall.SIGINT, "exit status 0"},
		{syscall.SIGHUP, "exit status 0"}, // closing the terminal sends SIGHUP
		{syscall.SIGKILL, "signal: killed"},
	} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			if tt.signal == syscall.SIGKILL && runtime.GOOS != "linux" {
				t.Skip("only Linux ends the children of a process that is killed")
			}
			if signal.Ignored(tt.signal) {
				t.Skip("the test runs by nohup, and its processes take no SIGHUP")
			}
			endLocal(t, tt.signal, tt.want)
		})
	}
}

func endLocal(t *testing.T, signal syscall.Signal, want string) {
	t.Helper()
	cmd := exec.Command(samekey, "local",
		"-process", "world="+filepath.Join(stackDir, "world"), "-process-url", "world=http://127.0.0.1:0")
	cmd.Dir = stackDir
	cmd.Env = append(clean(os.Environ()), "LOCAL_API_PORT=0", "LOCAL_CONTROL_PORT=0")
	var logs strings.Builder
	cmd.Stderr = &logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Log(logs.String())
		}
	}()
	stdout := bufio.NewReader(out)
	first, err := stdout.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(first, &line); err != nil {
		t.Fatalf("%v in %s", err, first)
	}
	if line["ready"] != true || line["table"] != "local-Table" {
		t.Errorf("line is %s", first)
	}
	if body := localtest.Send(t, http.MethodGet, line["api"].(string)+"/env", "").Body; !strings.Contains(body, `"TABLE":"local-Table"`) {
		t.Errorf("the function says %s", body)
	}
	var functions []stack.FunctionState
	if err := json.Unmarshal([]byte(localtest.Send(t, http.MethodGet, line["control"].(string)+"/functions", "").Body), &functions); err != nil {
		t.Fatal(err)
	}
	if len(functions) != 1 || functions[0].PID == 0 || functions[0].Invocations != 1 {
		t.Fatalf("functions are %+v", functions)
	}

	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil || len(rest) > 0 {
		t.Errorf("more output: %q, %v", rest, err)
	}
	_ = cmd.Wait()
	ended = true
	if got := cmd.ProcessState.String(); got != want {
		t.Errorf("ended with %s, want %s", got, want)
	}
	if process, err := os.FindProcess(functions[0].PID); err == nil {
		localtest.Eventually(t, "the function is gone", func() bool { return process.Signal(syscall.Signal(0)) != nil })
	}
	for _, key := range []string{"api", "control", "world", "dynamodb", "lambda"} {
		addr := strings.TrimPrefix(line[key].(string), "http://")
		localtest.Eventually(t, key+" is gone", func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
	}
}

// clean leaves out variables about the caller's database, how tests
// share it, credentials, and a make around the tests.
func clean(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "AWS_") || strings.HasPrefix(kv, "LOCAL_") || strings.HasPrefix(kv, "DYNAMOTEST_SEPARATE=") || servers.OfMake(kv)
	})
}
