package stack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// startRole starts a function of the tests' program.
func startRole(t *testing.T, id, role string, change func(*sam.Function)) *function {
	t.Helper()
	def := sam.Function{
		ID: id, Name: "stack-" + id, ARN: "arn:aws:lambda:us-east-1:123456789012:function:stack-" + id,
		Bootstrap: filepath.Join(stackDir, "dist", "bootstrap"), Environment: map[string]string{"ROLE": role},
		Timeout: time.Minute, Async: sam.Async{Retries: 2, MaxAge: time.Hour},
	}
	if change != nil {
		change(&def)
	}
	var env []string
	for name, value := range def.Environment {
		env = append(env, name+"="+value)
	}
	f, err := startFunction(t.Context(), def, env, &logs{w: io.Discard}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.lambda.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// serveInvoke serves the Invoke API for functions and returns a client of it.
func serveInvoke(t *testing.T, fail failFunc, functions ...*function) (*lambda.Client, *asyncInvoker) {
	t.Helper()
	async := &asyncInvoker{ctx: t.Context(), pause: time.Millisecond, fail: fail}
	api := &invokeAPI{region: "us-east-1", account: ids.AccountID, functions: make(map[string]*function), async: async}
	for _, f := range functions {
		api.functions[f.def.ID] = f
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Config.Handler = ownPrograms(srv.URL, api.handler())
	t.Cleanup(srv.Close)
	return lambda.New(lambda.Options{
		BaseEndpoint: &srv.URL, Region: "us-east-1", Credentials: identity{key: "k", secret: "s"}, Retryer: aws.NopRetryer{},
	}), async
}

// A function is invoked by each form of its name; what is refused doesn't run.
func TestInvoke(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Flaky", "flaky", nil)
	client, async := serveInvoke(t, nil, f)
	names := []string{
		"Flaky", "stack-Flaky", "stack-Flaky:prod", "123456789012:function:stack-Flaky",
		"arn:aws:lambda:us-east-1:123456789012:function:stack-Flaky", "arn:aws:lambda:us-east-1:123456789012:function:stack-Flaky:$LATEST",
	}
	for _, name := range names {
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name})
		if err != nil || string(out.Payload) != `"hello"` || out.FunctionError != nil || aws.ToString(out.ExecutedVersion) != "$LATEST" {
			t.Errorf("%s: got %+v, %v, want hello", name, out, err)
		}
	}
	failed, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), Payload: []byte(`{"fail":"no luck"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(failed.FunctionError) != "Unhandled" || !strings.Contains(string(failed.Payload), `"errorMessage":"no luck","errorType":"errorString"`) {
		t.Errorf("got %s (%v), want the function's error", failed.Payload, failed.FunctionError)
	}

	runs := f.invocations.Load()
	if out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeDryRun}); err != nil || out.StatusCode != 204 {
		t.Errorf("a dry run: got %+v, %v, want 204", out, err)
	}
	large := []byte(`"` + strings.Repeat("x", maxEventBytes) + `"`)
	for want, in := range map[string]*lambda.InvokeInput{
		"ResourceNotFoundException: Function not found: arn:aws:lambda:us-east-1:123456789012:function:nobody": {FunctionName: aws.String("nobody")},
		"InvalidRequestContentException": {FunctionName: aws.String("Flaky"), Payload: []byte(`{`)},
		"RequestTooLargeException":       {FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent, Payload: large},
	} {
		if _, err := client.Invoke(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := async.close(); err != nil { // the stack ends
		t.Fatal(err)
	}
	_, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent})
	if _, ok := errors.AsType[*types.ServiceException](err); !ok || f.invocations.Load() != runs {
		t.Errorf("an event at the end: got %v, %d ran, want a refusal", err, f.invocations.Load()-runs)
	}
}

// hold begins an invocation that lasts until its function ends.
func hold(t *testing.T, f *function) {
	t.Helper()
	before := len(f.lambda.Running())
	go f.Invoke(context.Background(), []byte(`{"routeKey":"GET /slow"}`)) //nolint:errcheck // ends with the function
	localtest.Eventually(t, "it has begun", func() bool { return len(f.lambda.Running()) > before })
}

// As on Managed Instances: the second invocation joins the first in its process.
func TestInvocationsShareAProcess(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Shared", "api", func(def *sam.Function) { def.PerProcess, def.Concurrency = 2, 2 })
	client, _ := serveInvoke(t, nil, f)
	hold(t, f)
	hold(t, f)
	if pids := f.lambda.PIDs(); len(pids) != 1 {
		t.Errorf("processes %v, want one", pids)
	}
	_, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Shared")})
	if _, ok := errors.AsType[*types.TooManyRequestsException](err); !ok || f.invocations.Load() != 2 {
		t.Errorf("got %v, %d invocations are counted, want a throttled one beside 2", err, f.invocations.Load())
	}
}

// An event whose destination nobody wants to see is given up as well; TestStack has one that is listed.
func TestEventIsRetriedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Flaky", "flaky", func(def *sam.Function) { def.Async.OnFailure = "arn:aws:s3:::b" })
	var records [][]byte
	client, async := serveInvoke(t, func(_ context.Context, _ *function, _ string, message, _ []byte) error {
		records = append(records, message)
		return nil
	}, f)
	for _, payload := range []string{`{}`, `{"fail":"no luck"}`} {
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{
			FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent, Payload: []byte(payload),
		})
		if err != nil || out.StatusCode != 202 {
			t.Fatalf("got %+v, %v, want 202", out, err)
		}
	}
	if err := async.close(); err != nil {
		t.Fatal(err)
	}
	if n := f.invocations.Load(); n != 4 || len(records) != 1 {
		t.Fatalf("%d invocations, %d records; want 4, of which 3 tries, and 1", n, len(records))
	}
	var record struct {
		RequestContext  map[string]any `json:"requestContext"`
		RequestPayload  map[string]any `json:"requestPayload"`
		ResponsePayload map[string]any `json:"responsePayload"`
	}
	if err := json.Unmarshal(records[0], &record); err != nil {
		t.Fatal(err)
	}
	delete(record.RequestContext, "requestId")
	want := map[string]any{"functionArn": f.def.ARN + ":$LATEST", "condition": "RetriesExhausted", "approximateInvokeCount": 3.0}
	if diff := cmp.Diff(want, record.RequestContext); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	if record.RequestPayload["fail"] != "no luck" || record.ResponsePayload["errorMessage"] != "no luck" {
		t.Errorf("got %s, want the event and its error", records[0])
	}
}

// The lease of an invocation whose process died is over before the event comes again.
func TestEventComesAgainAfterTheLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind       string
		took, want time.Duration
	}{
		"an error":            {"errorString", time.Second, 0},
		"an early death":      {lambdarun.TypeExited, time.Second, 31 * time.Second},
		"the end of its time": {lambdarun.TypeTimedOut, 30 * time.Second, 2 * time.Second},
		"killed late":         {lambdarun.TypeTimedOut, time.Minute, 0},
	} {
		if got := leaseLeft(&lambdarun.FunctionError{Type: tt.kind}, 30*time.Second, tt.took); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if got := leaseLeft(nil, time.Minute, 0); got != 0 {
		t.Errorf("throttled: %v, want none", got)
	}
}
