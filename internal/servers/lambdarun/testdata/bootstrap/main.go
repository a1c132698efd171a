// Command bootstrap is the function that lambdarun's tests run. The event says what the
// function does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Op    string `json:"op"`
	Value string `json:"value"`
	URL   string `json:"url"` // called before Op; blocks while the test wants it to
	N     int    `json:"n"`

	// Behind an HTTP API the path is the operation.
	RawPath string            `json:"rawPath"`
	Query   map[string]string `json:"queryStringParameters"`
}

type reply struct {
	PID        int      `json:"pid"`
	Count      int      `json:"count"` // invocations of this process
	Value      string   `json:"value,omitempty"`
	Env        []string `json:"env,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	RequestID  string   `json:"requestId,omitempty"`
	ARN        string   `json:"arn,omitempty"`
	TraceID    string   `json:"traceId,omitempty"`
	DeadlineMS int64    `json:"deadlineMs,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
}

type declinedError struct{ reason string }

func (e *declinedError) Error() string { return "declined: " + e.reason }

var count atomic.Int64

func handle(ctx context.Context, ev event) (any, error) {
	n := int(count.Add(1))
	if ev.Op == "" {
		ev.Op, ev.URL = strings.TrimPrefix(ev.RawPath, "/"), ev.Query["url"]
	}
	if ev.URL != "" {
		if err := call(ctx, ev.URL); err != nil {
			return nil, err
		}
	}
	r := reply{PID: os.Getpid(), Count: n, Value: ev.Value}
	switch ev.Op {
	case "echo":
	case "describe":
		lc, ok := lambdacontext.FromContext(ctx)
		deadline, hasDeadline := ctx.Deadline()
		if !ok || !hasDeadline {
			return nil, errors.New("no Lambda context")
		}
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		r.Env, r.Dir = os.Environ(), dir
		r.RequestID, r.ARN, r.DeadlineMS, r.Tenant = lc.AwsRequestID, lc.InvokedFunctionArn, deadline.UnixMilli(), lc.TenantID
		r.TraceID, _ = ctx.Value("x-amzn-trace-id").(string)
	case "fail":
		return nil, &declinedError{ev.Value}
	case "panic":
		panic(ev.Value)
	case "exit":
		os.Exit(ev.N)
	case "outlive": // works past its deadline, until the test ends it
		if err := call(context.WithoutCancel(ctx), ev.Value); err != nil {
			return nil, err
		}
	case "hang":
		<-time.After(time.Hour)
	case "big":
		// A JSON string: two bytes more than its content.
		return strings.Repeat("x", ev.N-2), nil
	case "broken stream":
		return io.MultiReader(strings.NewReader("half of "), brokenReader{}), nil
	case "print":
		_, errOut := fmt.Fprintln(os.Stdout, "out:", ev.Value)
		_, errErr := fmt.Fprintln(os.Stderr, "err:", ev.Value)
		return r, errors.Join(errOut, errErr)
	default:
		return nil, fmt.Errorf("no such operation: %q", ev.Op)
	}
	return r, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, &declinedError{"midway"} }

func call(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func main() {
	switch os.Getenv("TEST_INIT") {
	case "exit":
		os.Exit(3)
	case "report":
		url := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/init/error"
		resp, err := http.Post(url, "application/json", strings.NewReader( //nolint:gosec,noctx // as a runtime does it
			`{"errorType":"Runtime.BadConfig","errorMessage":"no table"}`))
		if err != nil {
			os.Exit(4)
		}
		_ = resp.Body.Close()
		os.Exit(1)
	}
	lambda.Start(handle)
}
