package stack

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

const watchedTemplate = `
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
  Counters: {Type: "AWS::Serverless::SimpleTable"}
  Keyed:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true, GoPackage: ./keyed}
    Properties:
      CodeUri: dist/
      Runtime: provided.al2023
      Timeout: 900
      Environment: {Variables: {IDEM_TABLE: !Ref Table, COUNTERS: !Ref Counters}}
      Events:
        Count: {Type: HttpApi, Properties: {Path: /count, Method: POST}}
  Built:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties:
      CodeUri: fn/
      Runtime: provided.al2023
      Timeout: 900
      Environment: {Variables: {ROLE: api, SAYS: before}}
      Events:
        Env: {Type: HttpApi, Properties: {Path: /env, Method: GET}}
`

// watching is a stack under --watch whose files a test changes.
type watching struct {
	running
	dir  string
	gate *localtest.Gate
	keys int // that were used to see which program answers
}

// The subtests follow one another on the same stack.
func TestWatch(t *testing.T) {
	db := dynamotest.Start(t)
	t.Setenv(envDynamoDB, db.Endpoint)
	w := &watching{dir: localtest.Module(t, "../../..", "internal/local"), gate: localtest.NewGate(t)}
	w.logs, w.db = &localtest.Buffer{}, db.Client()
	w.copy(t, "testdata/keyed/main.go", "keyed/main.go", "", "")
	w.copyProgram(t)
	localtest.Write(t, filepath.Join(w.dir, "template.yaml"), watchedTemplate)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.logs)
		}
	})
	var err error
	w.Stack, err = Start(t.Context(), Options{
		Template: filepath.Join(w.dir, "template.yaml"), StackName: "watch", Logs: w.logs, Watch: true, Environment: map[string]string{"GATE": w.gate.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := json.Unmarshal([]byte(w.Ready().String()), &w.line); err != nil {
		t.Fatal(err)
	}
	t.Run("a keyed request survives the restart by its retry, once", w.testRetry)
	t.Run("a program that can't be built leaves the old one at work", w.testBroken)
	t.Run("a bootstrap that others build is restarted", w.testBootstrap)
	t.Run("a program and a template that change together are both put in place", w.testTogether)
	t.Run("a changed template replaces what it changes, and nothing else", w.testTemplate)
	t.Run("a template that is wrong leaves the old one at work", w.testWrongTemplate)
}

// copy writes a file of this package into the module, with one change.
func (w *watching) copy(t *testing.T, from, to, old, now string) {
	t.Helper()
	text := localtest.Read(t, from)
	if old != "" && !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", from, old)
	}
	localtest.Write(t, filepath.Join(w.dir, to), strings.ReplaceAll(text, old, now))
}

func (w *watching) count(t *testing.T, key string) (status int, body string) {
	t.Helper()
	return w.do(t, http.MethodPost, w.url("api")+"/count", key, "Idempotency-Key", key)
}

// effects says how often the first phase of a key's operation was committed.
func (w *watching) effects(t *testing.T, key string) string {
	t.Helper()
	out, err := w.db.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: new("watch-Counters"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := out.Item["effects"].(*types.AttributeValueMemberN)
	if n == nil {
		return "0"
	}
	return n.Value
}

// inBackground sends the request of a key and tells its status, 0 for none.
func (w *watching) inBackground(t *testing.T, key string) <-chan int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url("api")+"/count", strings.NewReader(key))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "text/plain")
	status := make(chan int, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	return status
}

func (w *watching) testRetry(t *testing.T) {
	first := w.inBackground(t, "k1")
	for arrived := false; !arrived; {
		select {
		case <-w.gate.Arrived: // its first phase is committed
			arrived = true
		case <-first: // it had too little time on this machine
			first = w.inBackground(t, "k1")
		}
	}
	w.copy(t, "testdata/keyed/main.go", "keyed/main.go", `version = "one"`, `version = "two"`)
	localtest.Eventually(t, "the new program runs", func() bool { return strings.Contains(w.logs.String(), "built and restarted") })
	// Killed, or given up by the gateway before: a build may take longer than its 30 s.
	if status := <-first; status != http.StatusInternalServerError && status != http.StatusServiceUnavailable {
		t.Errorf("the request in flight: status %d", status)
	}
	w.gate.Open()
	var body string
	localtest.Eventually(t, "the retry is answered", func() bool {
		var status int
		status, body = w.count(t, "k1")
		return status == http.StatusCreated
	})
	if want := "counted by one, answered by two"; body != want {
		t.Errorf("the retry: %q, want %q", body, want)
	}
	if _, again := w.count(t, "k1"); again != body {
		t.Errorf("the next retry: %q, want %q", again, body)
	}
	if n := w.effects(t, "k1"); n != "1" {
		t.Errorf("%s effects", n)
	}
}

func (w *watching) testBroken(t *testing.T) {
	w.copy(t, "testdata/keyed/main.go", "keyed/main.go", `version = "one"`, `version = 3`)
	localtest.Eventually(t, "the compiler's message is in the logs", func() bool {
		return strings.Contains(w.logs.String(), "Keyed | ") && strings.Contains(w.logs.String(), "main.go:")
	})
	w.answers(t, "two")
	if n := strings.Count(w.logs.String(), "built and restarted"); n != 1 {
		t.Errorf("%d restarts", n)
	}
	w.copy(t, "testdata/keyed/main.go", "keyed/main.go", `version = "one"`, `version = "three"`)
	w.answers(t, "three")
}

// answers waits until the function answers a new key, by that version of its program.
func (w *watching) answers(t *testing.T, version string) {
	t.Helper()
	localtest.Eventually(t, "the program "+version+" answers", func() bool {
		w.keys++
		_, body := w.count(t, "answers-"+strconv.Itoa(w.keys))
		return strings.HasSuffix(body, "answered by "+version)
	})
}

// copyProgram puts the program of the tests into its folder, as a build by others.
func (w *watching) copyProgram(t *testing.T) {
	t.Helper()
	program := localtest.Read(t, filepath.Join(stackDir, "dist", "bootstrap"))
	localtest.WriteProgram(t, filepath.Join(w.dir, "fn", "bootstrap"), program)
}

func (w *watching) says(t *testing.T) string {
	t.Helper()
	var env map[string]string
	localtest.Eventually(t, "the function answers", func() bool {
		status, body := w.do(t, http.MethodGet, w.url("api")+"/env", "")
		return status == http.StatusOK && json.Unmarshal([]byte(body), &env) == nil
	})
	return env["SAYS"]
}

func (w *watching) testBootstrap(t *testing.T) {
	if got := w.says(t); got != "before" {
		t.Fatalf("it says %q", got)
	}
	before := w.state(t, "Built").PID
	w.copyProgram(t)
	localtest.Eventually(t, "the process is ended", func() bool { return w.state(t, "Built").PID != before })
	if got := w.says(t); got != "before" {
		t.Errorf("it says %q", got)
	}
}

func (w *watching) function(id string) *function {
	for _, f := range w.Stack.running() {
		if f.def.ID == id {
			return f
		}
	}
	return nil
}

func (w *watching) testTemplate(t *testing.T) {
	keyed := w.function("Keyed")
	changed := strings.Replace(watchedTemplate, "SAYS: before", "SAYS: after", 1)
	changed = strings.Replace(changed, "Path: /count,", "Path: /tally,", 1)
	localtest.Write(t, filepath.Join(w.dir, "template.yaml"), changed+"  More: {Type: \"AWS::Serverless::SimpleTable\"}\n")
	localtest.Eventually(t, "the function has its new variable", func() bool { return w.says(t) == "after" })
	localtest.Eventually(t, "the new route answers", func() bool {
		status, _ := w.do(t, http.MethodPost, w.url("api")+"/tally", "k4", "Idempotency-Key", "k4")
		return status == http.StatusCreated
	})
	if _, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: new("watch-More")}); err != nil {
		t.Error(err)
	}
	if w.function("Keyed") == keyed {
		t.Error("the function whose events have changed goes on")
	}
}

// As after a switch to another branch. The template's changes aren't about the function
// Keyed.
func (w *watching) testTogether(t *testing.T) {
	change := func(template, version string) {
		localtest.Write(t, filepath.Join(w.dir, "template.yaml"), template)
		w.copy(t, "testdata/keyed/main.go", "keyed/main.go", `version = "one"`, `version = "`+version+`"`)
	}
	w.answers(t, "three")
	change(watchedTemplate+"  More: {Type: AWS::Serverless::Function, Metadata: {GoPackage: ./more}, Properties: {CodeUri: fn/, Runtime: provided.al2023}}\n", "four")
	localtest.Eventually(t, "the error is in the logs", func() bool { return strings.Contains(w.logs.String(), "function More: ") })
	w.answers(t, "four")
	change(strings.Replace(watchedTemplate, "SAYS: before", "SAYS: together", 1), "five")
	localtest.Eventually(t, "the function has its new variable", func() bool { return w.says(t) == "together" })
	w.answers(t, "five")
}

func (w *watching) testWrongTemplate(t *testing.T) {
	template := filepath.Join(w.dir, "template.yaml")
	localtest.Write(t, template, strings.Replace(watchedTemplate, "Timeout: 900", "Timeout: soon", 1))
	localtest.Eventually(t, "the error is in the logs", func() bool { return strings.Contains(w.logs.String(), `\"soon\" is not a whole number`) })
	if got := w.says(t); got != "after" {
		t.Errorf("it says %q", got)
	}
}

// If the fix of a failed build is saved during that build, the function is built again.
func TestFixSavedDuringFailedBuild(t *testing.T) {
	dir := t.TempDir()
	localtest.Write(t, filepath.Join(dir, "go.mod"), "module fn\n\ngo 1.26\n")
	source := filepath.Join(dir, "main.go")
	localtest.Write(t, source, "package main\n\nfunc main() { broken }\n")
	localtest.Write(t, filepath.Join(dir, "fixed"), "package main\n\nfunc main() {}\n")
	fixer := filepath.Join(dir, "fixer") // runs each tool of a build, and saves the fix after a tool has failed
	localtest.Write(t, fixer, "#!/bin/sh\n\"$@\" || { cp '"+filepath.Join(dir, "fixed")+"' '"+source+"'; exit 1; }\n")
	if err := os.Chmod(fixer, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-toolexec="+fixer)
	def := sam.Function{Bootstrap: filepath.Join(dir, "dist", "bootstrap"), Source: sam.Source{Dir: dir, Package: "."}}
	w := &watchedFunction{f: &function{def: def, log: slog.New(slog.DiscardHandler), out: io.Discard}}
	if w.renew(t.Context()); !w.failed {
		t.Fatal("the broken program was built")
	}
	stamp := w.stamp()
	if w.changed(stamp); !w.changed(stamp) {
		t.Error("the fix counts as seen, so the function isn't built again")
	}
}

// Files that change after the stack has read them, but before it is ready, are read
// again.
func TestChangeDuringStart(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	localtest.Write(t, in("go.mod"), "module fn\n\ngo 1.26\n")
	localtest.Write(t, in("main.go"), "package main\n\nfunc main() {}\n")
	localtest.Write(t, in("later"), "package main\n\nfunc main() { print(`later`) }\n")
	const template = "Resources:\n  Fn: {Type: AWS::Serverless::Function, Metadata: {GoPackage: ./}, Properties: {CodeUri: ., Runtime: provided.al2023}}\n"
	localtest.Write(t, in("template.yaml"), template)
	// Linker runs each tool of a build. Before it links, it changes the files that were compiled.
	localtest.Write(t, in("linker"), "#!/bin/sh\ncase \"$1 $2\" in */link\\ -o) cd '"+dir+"' && mv later main.go && echo '# later' >>template.yaml; cd - >/dev/null;; esac\n\"$@\"\n")
	if err := os.Chmod(in("linker"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-toolexec="+in("linker"))
	logs := &localtest.Buffer{}
	s, err := Start(t.Context(), Options{Template: in("template.yaml"), Logs: logs, Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := os.Stat(in("later")); err == nil {
		t.Fatal("the first build has changed no file")
	}
	for _, line := range []string{"the changed template runs", "built and restarted"} {
		localtest.Eventually(t, line, func() bool { return strings.Contains(logs.String(), line) })
	}
}
