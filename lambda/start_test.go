package lambda_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
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
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
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

// A panic of the handler is answered with 500 through every adapter, and the key is
// free, or kept with what was committed.
func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
		panicking := s.wrap(e, func(context.Context, []byte) (idem.Response, error) { panic("boom: secret") })
		a := s.send(t, panicking, newCall("k"))
		a.refused(t, 500, "internal_error")
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("the client is told: %s", a.body)
		}
		s.send(t, s.wrap(e, h), newCall("k")).accepted(t, 201, createdBody, false)
		ran(t, runs, 1)
	})
}

// Who calls Handle in a function of his own can't answer before the process ends.
//
//nolint:paralleltest // the environment is this process's
func TestPanicOfHandleInAFunctionGoesOn(t *testing.T) {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.HTTPAPI,
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
