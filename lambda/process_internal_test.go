package lambda

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// An answer is posted to the runtime's API for its invocation; whatever the API says but that
// it has taken the answer is an error.
func TestPost(t *testing.T) {
	status, got := http.StatusAccepted, ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ", string(body))
		w.WriteHeader(status)
	}))
	t.Setenv("AWS_LAMBDA_RUNTIME_API", strings.TrimPrefix(api.URL, "http://"))
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
	const want = "POST /2018-06-01/runtime/invocation/r-1/response application/json {}"
	if err := post(ctx, "response", []byte("{}")); err != nil || got != want {
		t.Errorf("posted %q, %v, want %q", got, err, want)
	}
	if err := post(t.Context(), "response", nil); err == nil {
		t.Error("posted for no invocation")
	}
	status = http.StatusForbidden
	if err := post(ctx, "response", nil); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("refused: %v", err)
	}
	bad := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "\x7f"})
	if err := post(bad, "response", nil); err == nil {
		t.Error("posted for an invocation that can't be named")
	}
	api.Close()
	if err := post(ctx, "response", nil); err == nil {
		t.Error("posted to nobody")
	}
}

type valueError struct{}

func (valueError) Error() string { return "value" }

// A failure is told as the runtime tells it: under its own name, or that of its Go type.
func TestErrorAnswer(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`{"errorMessage":"m","errorType":"T"}`:                                      messages.InvokeResponse_Error{Message: "m", Type: "T"},
		`{"errorMessage":"plain","errorType":"errorString"}`:                        errors.New("plain"),
		`{"errorMessage":"value","errorType":"valueError"}`:                         valueError{},
		`{"errorMessage":"lambda: 0 of 2 records failed","errorType":"BatchError"}`: &BatchError{Total: 2},
	} {
		if got := string(errorAnswer(err)); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}
