package stack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// stackTimeout is the timeout of all functions in TestStack: one of them has to
// reach it, before its API gives up after 30 s.
const stackTimeout = 10 * time.Second

// running is a stack under test.
type running struct {
	*Stack
	line map[string]any // the ready line
	logs *localtest.Buffer
	db   *dynamodb.Client
}

// One template with something of everything, run as its users would. The
// subtests follow one another on the same stack.
func TestStack(t *testing.T) {
	db := dynamotest.Start(t)
	t.Setenv(envDynamoDB, db.Endpoint)
	leaks := goleak.IgnoreCurrent()

	s := &running{logs: &localtest.Buffer{}, db: db.Client(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient })}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.logs)
		}
	})
	var err error
	s.Stack, err = Start(t.Context(), Options{
		Template: filepath.Join(stackDir, "template.yaml"), StackName: "e2e", Logs: s.logs,
		Processes:   []Process{{Name: "world", Command: []string{worldProgram}, URL: "http://127.0.0.1:0"}},
		Parameters:  map[string]string{"World": "{world}/v1"},
		Environment: map[string]string{"EXTRA": "{world}"},
		Overrides: Overrides{
			FunctionTimeout: new(stackTimeout), LeaseMargin: new(300 * time.Millisecond), Grace: new(time.Second), StreamWindow: new(time.Duration(0)),
		},
	})
	if errors.Is(err, elasticmq.ErrUnavailable) && !elasticmq.Required() {
		servers.Missed.Skip(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = s.Close()
		}
	}()
	if err := json.Unmarshal([]byte(s.Ready().String()), &s.line); err != nil {
		t.Fatal(err)
	}

	t.Run("the ready line tells where everything is", s.testReady)
	t.Run("functions find the stack in their environment", s.testEnvironment)
	t.Run("an authorizer stands before the HTTP API", s.testAuthorizer)
	t.Run("an item goes through the stream and the queue", s.testPipeline)
	t.Run("a record that fails goes to its destination and holds up nobody", s.testPoison)
	t.Run("a paused function's stream waits", s.testPause)
	t.Run("the REST API is under its stage", s.testREST)
	t.Run("a schedule runs when told to, and a function invokes another", s.testTick)
	t.Run("an event that fails is listed", s.testAsync)
	t.Run("a function that takes too long is killed and another process follows", s.testTimeout)
	t.Run("control refuses what it doesn't know", s.testControlErrors)
	t.Run("pages of other origins reach nothing", s.testForeignPages)

	closed = true
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range s.running() {
		if pids := f.lambda.PIDs(); len(pids) > 0 {
			t.Errorf("processes of %s are left: %v", f.def.ID, pids)
		}
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(s.line["world"].(string), "http://")); err == nil {
		_ = conn.Close()
		t.Error("the world is left")
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, leaks)
}

func (s *running) testReady(t *testing.T) {
	if s.line["ready"] != true || s.url("table") != "e2e-Table" || s.url("dynamodb") != os.Getenv(envDynamoDB) {
		t.Errorf("line is %v", s.line)
	}
	want := map[string]any{"ServerlessHttpApi": s.url("api"), "ServerlessRestApi": s.url("api") + "/Prod"}
	if diff := cmp.Diff(want, s.line["apis"]); diff != "" {
		t.Errorf("apis (-want +got):\n%s", diff)
	}
	if _, body := s.do(t, http.MethodGet, s.url("world"), ""); !strings.HasSuffix(body, " "+s.url("lambda")) {
		t.Errorf("the world says %q", body)
	}
	if !strings.Contains(s.logs.String(), "world | the world is there\n") {
		t.Error("the world's output is not in the logs")
	}
	for _, key := range []string{"api", "control", "lambda", "sqs", "dynamodb", "world"} {
		if !strings.HasPrefix(s.url(key), "http://127.0.0.1:") {
			t.Errorf("%s is %s", key, s.url(key))
		}
	}
}

func (s *running) testEnvironment(t *testing.T) {
	_, body := s.do(t, http.MethodGet, s.url("api")+"/env", "")
	var env map[string]string
	if err := json.Unmarshal([]byte(body), &env); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for name, want := range map[string]string{
		"TABLE": "e2e-Table", "WORLD": s.url("world") + "/v1", "EXTRA": s.url("world"),
		"SAMEKEY_LEASE_MARGIN": "300ms", "SAMEKEY_GRACE": "1s",
		"AWS_ENDPOINT_URL_DYNAMODB": s.url("dynamodb"), "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": s.url("dynamodb"),
		"AWS_ENDPOINT_URL_SQS": s.url("sqs"), "AWS_ENDPOINT_URL_LAMBDA": s.url("lambda"), "AWS_ENDPOINT_URL": s.url("lambda"),
		"HTTPS_PROXY": s.url("lambda"), "https_proxy": s.url("lambda"), "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1,localhost,::1",
		"AWS_LAMBDA_FUNCTION_NAME": "e2e-Api", "AWS_REGION": "us-east-1", "HOME": "",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	// What an SDK that is too old for AWS_ENDPOINT_URL does.
	if _, body := s.do(t, http.MethodGet, s.url("api")+"/aws", ""); !strings.Contains(body, "Not Implemented") {
		t.Errorf("AWS itself: %s", body)
	}
	for _, want := range []string{"LOCAL_GRACE has no effect", "LOCAL_LEASE_MARGIN has no effect", "host=sns.us-east-1.amazonaws.com", "no ReportBatchItemFailures: records that the function reports as failed count as done\" function=Worker event=Work"} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(s.logs.String(), "function=Stream event=Changes") {
		t.Error("the log warns of a mapping that has ReportBatchItemFailures")
	}
}

func (s *running) testAuthorizer(t *testing.T) {
	url := s.url("api") + "/items"
	for header, want := range map[string]int{"": 401, "Basic x": 401, "Bearer nobody": 403} {
		if status, body := s.do(t, http.MethodPost, url, "x", "Authorization", header); status != want {
			t.Errorf("%q: status %d: %s", header, status, body)
		}
	}
	if n := s.state(t, "Authorizer").Invocations; n != 2 {
		t.Errorf("the authorizer was asked %d times, want 2", n)
	}
	if status, body := s.do(t, http.MethodGet, s.url("api")+"/nowhere", ""); status != http.StatusNotFound || body != `{"message":"Not Found"}` {
		t.Errorf("no route: status %d: %s", status, body)
	}
}

func (s *running) testPipeline(t *testing.T) {
	s.create(t, "first")
	if got := s.item(t, "item#first"); got != "user-1" {
		t.Fatalf("item is %q", got)
	}
	localtest.Eventually(t, "the worker writes what the stream sent", func() bool { return s.item(t, "done#item#first") == "aws:sqs" })
	if state := s.state(t, "Worker"); state.PID == 0 || state.Invocations == 0 {
		t.Errorf("worker is %+v", state)
	}
}

func (s *running) testPoison(t *testing.T) {
	s.create(t, "poison")
	localtest.Eventually(t, "the record is given up", func() bool { return len(s.failures(t)) == 1 })
	failed := s.failures(t)[0]
	if failed.Function != "Stream" || failed.Destination != "arn:aws:s3:::e2e-failures" {
		t.Errorf("entry is %+v", failed)
	}
	var record struct {
		RequestContext struct {
			Condition string `json:"condition"`
		} `json:"requestContext"`
		Batch struct {
			BatchSize int `json:"batchSize"`
		} `json:"DDBStreamBatchInfo"`
		Payload string `json:"payload"`
	}
	if err := json.Unmarshal(failed.Record, &record); err != nil {
		t.Fatal(err)
	}
	if record.RequestContext.Condition != "RetryAttemptsExhausted" || record.Batch.BatchSize != 1 || !strings.Contains(record.Payload, "item#poison") {
		t.Errorf("record is %s", failed.Record)
	}
	s.create(t, "after")
	localtest.Eventually(t, "the next record goes through", func() bool { return s.item(t, "done#item#after") != "" })
}

func (s *running) testPause(t *testing.T) {
	control := s.url("control") + "/functions/Stream"
	if status, body := s.do(t, http.MethodPost, control+"/pause", ""); status != http.StatusOK || !strings.Contains(body, `"paused":true`) {
		t.Fatalf("status %d: %s", status, body)
	}
	before := s.state(t, "Stream").Invocations
	s.create(t, "paused")
	<-time.After(500 * time.Millisecond) // five polls: too short, the test sees less
	if n := s.state(t, "Stream").Invocations; n != before {
		t.Errorf("%d invocations while paused", n-before)
	}
	if status, body := s.do(t, http.MethodPost, control+"/resume", ""); status != http.StatusOK || !strings.Contains(body, `"paused":false`) {
		t.Fatalf("status %d: %s", status, body)
	}
	localtest.Eventually(t, "the stream goes on", func() bool { return s.item(t, "done#item#paused") != "" })
}

func (s *running) testREST(t *testing.T) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url("api"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /Prod/echo/a%2Fb HTTP/1.1\r\nHost: local\r\nx-TEST-one: 1\r\nX-Test-Two: 2\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"resource": "/echo/{x}", "path": "/echo/a%2Fb", "whole": "/Prod/echo/a%2Fb",
		"parameters": map[string]any{"x": "a/b"}, "headers": []any{"X-Test-Two", "x-TEST-one"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if status, body := s.do(t, http.MethodGet, s.url("api")+"/Prod/nowhere", ""); status != http.StatusForbidden {
		t.Errorf("no route: status %d: %s", status, body)
	}
}

func (s *running) testTick(t *testing.T) {
	if status, body := s.do(t, http.MethodPost, s.url("control")+"/tick/Timer", ""); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	if got := s.item(t, "mark#RequestResponse"); got != "flaky" {
		t.Errorf("the invoked function left %q", got)
	}
	localtest.Eventually(t, "the event is worked on", func() bool { return s.item(t, "mark#Event") == "flaky" })
}

func (s *running) testAsync(t *testing.T) {
	before := len(s.failures(t))
	runs := s.state(t, "Flaky").Invocations
	url := s.url("lambda") + "/2015-03-31/functions/Flaky/invocations"
	if status, body := s.do(t, http.MethodPost, url, `{"fail":"no luck"}`, "X-Amz-Invocation-Type", "Event"); status != http.StatusAccepted {
		t.Fatalf("status %d: %s", status, body)
	}
	localtest.Eventually(t, "it is given up", func() bool { return len(s.failures(t)) == before+1 })
	if failed := s.failures(t)[before]; failed.Function != "Flaky" || !strings.Contains(string(failed.Record), "RetriesExhausted") {
		t.Errorf("entry is %+v", failed)
	}
	if n := s.state(t, "Flaky").Invocations - runs; n != 2 {
		t.Errorf("%d invocations, want 2", n)
	}
}

func (s *running) testTimeout(t *testing.T) {
	before := s.state(t, "Api").PID
	if before == 0 {
		t.Fatal("no process")
	}
	status, body := s.do(t, http.MethodGet, s.url("api")+"/slow", "")
	if status != http.StatusInternalServerError || body != `{"message":"Internal Server Error"}` {
		t.Errorf("status %d: %s", status, body)
	}
	if got := s.state(t, "Api").PID; got != 0 {
		t.Errorf("process %d is alive after the timeout", got)
	}
	s.create(t, "afterwards")
	if after := s.state(t, "Api").PID; after == 0 || after == before {
		t.Errorf("process %d follows %d", after, before)
	}
	if !strings.Contains(s.logs.String(), "function=Api type=Sandbox.Timedout") {
		t.Error("the timeout is not in the logs")
	}
}

func (s *running) testControlErrors(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/functions/Nobody/pause", 404},
		{http.MethodPost, "/tick/Nobody", 404},
		{http.MethodPost, "/tick/Api", 404},
		{http.MethodGet, "/nowhere", 404},
	} {
		status, body := s.do(t, tt.method, s.url("control")+tt.path, "")
		var problem struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal([]byte(body), &problem); status != tt.want || err != nil || problem.Error == "" {
			t.Errorf("%s %s: status %d: %s", tt.method, tt.path, status, body)
		}
	}
}

// A page in a browser on this machine can send a POST anywhere, as text/plain without a
// preflight; a program sends neither Origin nor Sec-Fetch-Site.
func (s *running) testForeignPages(t *testing.T) {
	invoke := s.url("lambda") + "/2015-03-31/functions/Flaky/invocations"
	for _, url := range []string{
		invoke, s.url("control") + "/tick/Timer", s.url("control") + "/functions/Flaky/pause", s.url("control") + "/functions", s.url("control") + "/failed",
	} {
		before := s.state(t, "Flaky").Invocations
		for _, header := range [][2]string{
			{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Host", "evil.example:3002"},
		} {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"requestContext":{"authorizer":{"principalId":"somebody"}}}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "text/plain")
				req.Header.Set(header[0], header[1])
				if header[0] == "Host" {
					req.Host = header[1]
				}
				re, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = re.Body.Close()
				if re.StatusCode != http.StatusForbidden && re.StatusCode != http.StatusMisdirectedRequest {
					t.Errorf("%s %s with %v: got %d, want 403 or 421", method, url, header, re.StatusCode)
				}
			}
		}
		if f := s.state(t, "Flaky"); f.Invocations != before || f.Paused {
			t.Errorf("%s: a page had its way: %+v", url, f)
		}
	}
	// As curl sends it; SDKs and their proxy have tests of their own.
	byName := strings.Replace(invoke, "127.0.0.1", "localhost", 1)
	if status, body := s.do(t, http.MethodPost, byName, `{}`, "Content-Type", "application/x-www-form-urlencoded"); status != http.StatusOK {
		t.Errorf("by a program: got %d %s, want 200", status, body)
	}
}
