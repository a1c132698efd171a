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

func TestInvokeReturnsWhatTheFunctionReturns(t *testing.T) {
	t.Parallel()
	client, _ := serveInvoke(t, nil, startRole(t, "Flaky", "flaky", nil))
	for _, name := range []string{
		"Flaky", "stack-Flaky", "stack-Flaky:prod", "123456789012:function:stack-Flaky",
		"arn:aws:lambda:us-east-1:123456789012:function:stack-Flaky", "arn:aws:lambda:us-east-1:123456789012:function:stack-Flaky:$LATEST",
	} {
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if out.StatusCode != 200 || string(out.Payload) != `"hello"` || out.FunctionError != nil || aws.ToString(out.ExecutedVersion) != "$LATEST" {
			t.Errorf("%s: status %d, payload %s, error %v", name, out.StatusCode, out.Payload, out.FunctionError)
		}
	}
}

func TestInvokeTellsOfTheFunctionsError(t *testing.T) {
	t.Parallel()
	client, _ := serveInvoke(t, nil, startRole(t, "Flaky", "flaky", nil))
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), Payload: []byte(`{"fail":"no luck"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(out.FunctionError) != "Unhandled" || out.StatusCode != 200 {
		t.Errorf("status %d, function error %v", out.StatusCode, out.FunctionError)
	}
	var payload map[string]string
	if err := json.Unmarshal(out.Payload, &payload); err != nil || payload["errorMessage"] != "no luck" || payload["errorType"] != "errorString" {
		t.Errorf("payload is %s, %v", out.Payload, err)
	}
}

// As on Managed Instances: the second invocation joins the first in its process.
func TestInvocationsShareAProcess(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Shared", "api", func(def *sam.Function) { def.PerProcess = 2 })
	for n := range 2 {
		go f.Invoke(context.Background(), []byte(`{"routeKey":"GET /slow"}`)) //nolint:errcheck // ends with the function
		for len(f.lambda.Running()) <= n {
			select {
			case <-t.Context().Done():
				t.Fatal("it never began")
			case <-time.After(time.Millisecond):
			}
		}
	}
	if pids := f.lambda.PIDs(); len(pids) != 1 {
		t.Errorf("processes %v, want one", pids)
	}
}

func TestInvokeRefuses(t *testing.T) {
	t.Parallel()
	busy := startRole(t, "Busy", "api", func(def *sam.Function) { def.Concurrency = 1 })
	client, _ := serveInvoke(t, nil, startRole(t, "Flaky", "flaky", nil), busy)

	_, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("nobody")})
	none, ok := errors.AsType[*types.ResourceNotFoundException](err)
	if !ok || aws.ToString(none.Message) != "Function not found: arn:aws:lambda:us-east-1:123456789012:function:nobody" || aws.ToString(none.Type) != "User" {
		t.Errorf("unknown function: %v", err)
	}
	_, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), Payload: []byte(`{`)})
	if _, ok := errors.AsType[*types.InvalidRequestContentException](err); !ok {
		t.Errorf("no JSON: %v", err)
	}
	large := []byte(`"` + strings.Repeat("x", maxEventBytes) + `"`)
	_, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent, Payload: large})
	if _, ok := errors.AsType[*types.RequestTooLargeException](err); !ok {
		t.Errorf("a large event: %v", err)
	}

	go busy.Invoke(context.Background(), []byte(`{"routeKey":"GET /slow"}`)) //nolint:errcheck // ends with the function
	for len(busy.lambda.Running()) == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("it never began")
		case <-time.After(time.Millisecond):
		}
	}
	_, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Busy")})
	if _, ok := errors.AsType[*types.TooManyRequestsException](err); !ok {
		t.Errorf("throttled: %v", err)
	}
	if n := busy.invocations.Load(); n != 1 {
		t.Errorf("%d invocations are counted, of one that ran", n)
	}
}

func TestDryRunDoesNotRun(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Flaky", "flaky", nil)
	client, _ := serveInvoke(t, nil, f)
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeDryRun})
	if err != nil || out.StatusCode != 204 || f.invocations.Load() != 0 {
		t.Errorf("%v, %v, %d invocations", out, err, f.invocations.Load())
	}
}

func TestEventIsRetriedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload     string
		destination string
		wantRuns    int64
		wantRecords int
	}{
		"that succeeds":            {`{}`, "arn:aws:s3:::b", 1, 0},
		"that fails":               {`{"fail":"no luck"}`, "arn:aws:s3:::b", 3, 1},
		"that nobody wants to see": {`{"fail":"no luck"}`, "", 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startRole(t, "Flaky", "flaky", func(def *sam.Function) { def.Async.OnFailure = tt.destination })
			var records [][]byte
			client, async := serveInvoke(t, func(_ context.Context, _ *function, _ string, message, _ []byte) error {
				records = append(records, message)
				return nil
			}, f)
			out, err := client.Invoke(t.Context(), &lambda.InvokeInput{
				FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent, Payload: []byte(tt.payload),
			})
			if err != nil || out.StatusCode != 202 {
				t.Fatalf("%v, %v", out, err)
			}
			if err := async.close(); err != nil {
				t.Fatal(err)
			}
			if n := f.invocations.Load(); n != tt.wantRuns || len(records) != tt.wantRecords {
				t.Fatalf("%d invocations, %d records; want %d, %d", n, len(records), tt.wantRuns, tt.wantRecords)
			}
			if len(records) == 0 {
				return
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
				t.Errorf("record is %s", records[0])
			}
		})
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

func TestEventIsRefusedOnceTheStackEnds(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Flaky", "flaky", nil)
	client, async := serveInvoke(t, nil, f)
	if err := async.close(); err != nil {
		t.Fatal(err)
	}
	_, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Flaky"), InvocationType: types.InvocationTypeEvent})
	if _, ok := errors.AsType[*types.ServiceException](err); !ok || f.invocations.Load() != 0 {
		t.Errorf("%v, %d invocations", err, f.invocations.Load())
	}
}

// A page in a browser sends a POST of text/plain anywhere, without a preflight.
func TestForeignPagesRunNoFunction(t *testing.T) {
	t.Parallel()
	f := startRole(t, "Flaky", "flaky", nil)
	client, _ := serveInvoke(t, nil, f)
	for name, page := range map[string]http.Header{
		"another origin": {"Origin": {"https://evil.example"}, "Content-Type": {"text/plain"}},
		"another site":   {"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"text/plain"}},
		"a rebound name": {"Host": {"evil.example:3002"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, *client.Options().BaseEndpoint+"/2015-03-31/functions/Flaky/invocations",
			strings.NewReader(`{"requestContext":{"authorizer":{"principalId":"somebody"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header, req.Host = page, page.Get("Host")
		re, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = re.Body.Close()
		if re.Header.Get("X-Amzn-Errortype") != "AccessDeniedException" || f.invocations.Load() != 0 {
			t.Errorf("%s: status %d, %d invocations", name, re.StatusCode, f.invocations.Load())
		}
	}
}

func TestOtherServicesAreNotReachedByAccident(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer((&invokeAPI{}).handler())
	defer srv.Close()
	resp, err := http.Post(srv.URL, "application/x-www-form-urlencoded", strings.NewReader("Action=Publish"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotImplemented {
		t.Errorf("status %d", resp.StatusCode)
	}
}
