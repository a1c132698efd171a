package lambda_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// TestStart runs this test binary as a function under a Lambda runtime API: one
// event, its retry, then one that panics: its client is answered, and then the
// process ends without asking for more work, which Lambda counts as an error.
func TestStart(t *testing.T) { //nolint:tparallel // as a function it never comes that far
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		startFunction()
	}
	t.Parallel()
	for _, function := range []string{"wrapped", "router", "webhook"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			started(t, function)
		})
	}
}

func started(t *testing.T, function string) {
	t.Helper()
	type report struct{ path, body string }
	reports := make(chan report, 8)
	bodies := []string{"one", "one", "panic"}
	n := 0
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if n == len(bodies) {
			cancel() // it goes on after its panic
			<-r.Context().Done()
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", strconv.Itoa(n))
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(ample).UnixMilli(), 10))
		c := newCall("k-" + bodies[n])
		c.body = []byte(bodies[n])
		_, _ = w.Write(httpAPI.payload(t, c))
		n++
	})
	answered := make(map[string]bool)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if answered[id] { // as Lambda does it
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answered[id] = true
		body, _ := io.ReadAll(r.Body)
		reports <- report{r.PathValue("id") + "/" + r.PathValue("kind"), string(body)}
		w.WriteHeader(http.StatusAccepted)
	})
	api := httptest.NewServer(mux)
	defer api.Close()

	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStart$")
	cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "START_TEST="+function)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("the process ended with %v, %v; want it to end after the panic, with an error", err, ctx.Err())
	}
	close(reports)
	if !strings.Contains(string(out), "panicked with a string") || !strings.Contains(string(out), "startFunction") {
		t.Errorf("the log doesn't say what panicked, and where:\n%s", out)
	}
	if strings.Contains(string(out), "secret") {
		t.Errorf("the log has the panic's value:\n%s", out)
	}
	want := []report{{"0/response", "made one"}, {"1/response", idem.ReplayedHeader}, {"2/response", "internal_error"}}
	if function == "webhook" {
		want[0].body = `"statusCode":200`
	}
	for _, w := range want {
		got, ok := <-reports
		if !ok || got.path != w.path || !strings.Contains(got.body, w.body) {
			t.Errorf("got %+v, want %s with %q\n%s", got, w.path, w.body, out)
		}
	}
}

func startFunction() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	e := anEngine()
	h := func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if ev.Body == "panic" {
			panic("boom: secret")
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "made " + ev.Body}, nil
	}
	if os.Getenv("START_TEST") == "wrapped" {
		lambda.Start(lambda.Wrap(e, lambda.HTTPAPI, h))
	}
	if os.Getenv("START_TEST") == "webhook" {
		hooks := webhook.New(&idem.MemoryStore{}, "any", trusting{}, func(ctx context.Context, ev webhook.Event) error {
			_, err := h(ctx, events.APIGatewayV2HTTPRequest{Body: ev.ID})
			return err
		})
		lambda.Start(lambda.Webhook(lambda.HTTPAPI, hooks))
	}
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /rides", e, h)
	lambda.Start(router)
}

// trusting is a verifier for events that are their own ids.
type trusting struct{}

func (trusting) Verify(_ http.Header, body []byte) (webhook.Event, error) {
	return webhook.Event{ID: string(body), Body: body}, nil
}

// Who calls Handle in a function of his own can't answer before the process ends.
func TestPanicOfHandleInAFunctionGoesOn(t *testing.T) {
	h := lambda.Wrap(anEngine(), lambda.HTTPAPI,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			panic("boom")
		})
	var ev events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(httpAPI.payload(t, newCall("k")), &ev); err != nil {
		t.Fatal(err)
	}
	if re, err := h.Handle(t.Context(), ev); re.StatusCode != 500 || err != nil {
		t.Errorf("outside of a function: %d, %v", re.StatusCode, err)
	}
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v", v)
		}
	}()
	_, _ = h.Handle(t.Context(), ev)
}

// overdueFunction is a function whose handler says by which start of the program it
// runs, and doesn't come back from some messages.
func overdueFunction() {
	start := rand.Text()
	b := lambda.SQS
	b.RecordTimeout = time.Second
	lambda.Start(lambda.WrapEach(anEngine(), b, func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("start", start, os.Getpid(), m.MessageId)
		if m.Body == "ignore" {
			<-make(chan struct{})
		}
		return nil
	}))
}

// An overdue handler is gone before the runtime asks for the next invocation, and
// the report has been taken by then: the program begins anew in the same process.
func TestProgramBeginsAnewWithoutAnOverdueHandler(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		perProcess int
		starts     []int // by which start of the program each invocation runs
	}{
		{"one invocation at a time", 1, []int{0, 0, 1, 2}},
		{"several, which are never frozen", 2, []int{0, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fn, logs := overdue(t, tc.perProcess)
			deliver := func(messages ...events.SQSMessage) (events.SQSEventResponse, error) {
				payload, err := json.Marshal(batch(messages...))
				if err != nil {
					t.Fatal(err)
				}
				out, err := fn.Invoke(t.Context(), payload)
				if err != nil {
					return events.SQSEventResponse{}, err
				}
				var re events.SQSEventResponse
				if err := json.Unmarshal(out, &re); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return re, nil
			}
			re, err := deliver(message("a", ""))
			reported(t, re, err)
			re, err = deliver(message("b", "ignore"), message("c", "")) // one start for both
			reported(t, re, err, "b")
			_, err = deliver(message("d", "ignore"))
			if fe, ok := errors.AsType[*lambdarun.FunctionError](err); !ok || fe.Message != lambda.ErrOverdue.Error() || fe.Type != "errorString" {
				t.Errorf("got %v, want the record's own failure", err)
			}
			re, err = deliver(message("e", ""))
			reported(t, re, err)

			if len(fn.PIDs()) != 1 {
				t.Errorf("processes %v, want one", fn.PIDs())
			}
			if err := fn.Close(); err != nil { // all of the log is there then
				t.Error(err)
			}
			began := make(map[string][2]string)
			for line := range strings.Lines(logs.String()) {
				if f := strings.Fields(line); len(f) == 4 && f[0] == "start" {
					began[f[3]] = [2]string{f[1], f[2]}
				}
			}
			known := make(map[string]int)
			var starts []int
			for _, id := range []string{"a", "b", "d", "e"} {
				by := began[id]
				if by[1] != began["a"][1] {
					t.Errorf("%s ran in process %s, a in %s", id, by[1], began["a"][1])
				}
				if _, ok := known[by[0]]; !ok {
					known[by[0]] = len(known)
				}
				starts = append(starts, known[by[0]])
			}
			if diff := cmp.Diff(tc.starts, starts); diff != "" || began["b"] != began["c"] {
				t.Errorf("starts (-want +got):\n%s%s", diff, logs)
			}
		})
	}
}

func overdue(t *testing.T, perProcess int) (*lambdarun.Function, *logBuffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := new(logBuffer)
	fn, err := lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "overdue", Binary: self, PerProcess: perProcess, MaxConcurrency: perProcess, Timeout: time.Minute,
		Stdout: logs, Stderr: logs, Env: []string{asFunction + "=overdue"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fn.Close(); err != nil {
			t.Error(err)
		}
	})
	return fn, logs
}

const (
	// asFunction makes of this test binary a function: what the tests race, the
	// race detector sees in it too.
	asFunction = "LAMBDA_TEST_FUNCTION"
	workers    = 8
)

// concurrentFunction is the function's main. Its store is in its memory, so there
// must be one process.
func concurrentFunction() {
	var mu sync.Mutex
	effects := make(map[string]int)
	met, all := 0, make(chan struct{})
	store := new(idem.MemoryStore)
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
	lambda.Start(lambda.Wrap(engine, lambda.HTTPAPI, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		none := events.APIGatewayV2HTTPResponse{}
		if ev.RawPath == "/meet" { // all workers are in their handlers at the same time
			mu.Lock()
			if met++; met == workers {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
			case <-ctx.Done():
				return none, ctx.Err()
			}
		}
		lc, _ := lambdacontext.FromContext(ctx)
		id, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("receipt", ev.Body))
			return lc.AwsRequestID, nil
		})
		if err != nil {
			return none, err
		}
		n, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			effects[ev.Body]++
			return effects[ev.Body], nil
		})
		if err != nil {
			return none, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: fmt.Sprintf("%s, process %d, effect %d, by %s", ev.Body, os.Getpid(), n, id)}, nil
		})
	}))
}

// The runtime's concurrent mode (Lambda Managed Instances): several invocations
// in one process, on one engine and one handler. Run with -race, the process has
// the race detector too, and ends at the first race it finds.
func TestInvocationsShareAProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := new(logBuffer)
	fn, err := lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "concurrent", Binary: self, PerProcess: workers, MaxConcurrency: workers, Timeout: time.Minute, Stdout: logs, Stderr: logs,
		Env: []string{asFunction + "=1", "GORACE=halt_on_error=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fn.Close(); err != nil {
			t.Error(err)
		}
		if s := logs.String(); strings.Contains(s, "DATA RACE") || strings.Contains(s, "panic") {
			t.Error(s)
		}
	}()
	call := func(path, key string) (re events.APIGatewayV2HTTPResponse, err error) {
		ev := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Body: "order " + key, Headers: map[string]string{"idempotency-key": key}}
		ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path, ev.RouteKey = "POST", path, "POST "+path
		payload, err := json.Marshal(ev)
		if err != nil {
			return re, err
		}
		out, err := fn.Invoke(t.Context(), payload)
		if err == nil {
			err = json.Unmarshal(out, &re)
		}
		return re, err
	}
	clients := func(requests int, path string, key func(client, request int) string) {
		var wg sync.WaitGroup
		answers := make(map[string]string)
		var mu sync.Mutex
		for c := range workers {
			wg.Go(func() {
				for r := range requests {
					k := key(c, r)
					re, err := call(path, k)
					if err != nil || re.StatusCode != 201 || !strings.Contains(re.Body, "order "+k+", ") || !strings.Contains(re.Body, "effect 1,") {
						t.Errorf("%s gets %+v, %v", k, re, err)
					}
					mu.Lock()
					if first, ok := answers[k]; ok && first != re.Body {
						t.Errorf("%s gets %q and %q", k, first, re.Body)
					}
					answers[k] = re.Body
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	clients(1, "/meet", func(c, _ int) string { return fmt.Sprint("m", c) })
	clients(40, "/orders", func(_, r int) string { return fmt.Sprint("k", r/2) }) // each key by all, and twice
	if pids := fn.PIDs(); len(pids) != 1 {
		t.Errorf("processes %v, want one", pids)
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Engines and records fail on purpose here.
func TestMain(m *testing.M) {
	switch os.Getenv(asFunction) {
	case "":
	case "overdue":
		overdueFunction()
	default:
		concurrentFunction()
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
