package lambdarun

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/internal/servers/ids"
)

type declinedError struct{}

func (*declinedError) Error() string { return "declined" }

func TestInProcessRunsALambdaHandler(t *testing.T) {
	t.Parallel()
	type in struct{ Name string }
	f := InProcess(awslambda.NewHandler(func(ctx context.Context, ev in) (string, error) {
		lc, ok := lambdacontext.FromContext(ctx)
		deadline, hasDeadline := ctx.Deadline()
		if !ok || len(lc.AwsRequestID) != 36 || !hasDeadline || time.Until(deadline) > time.Minute {
			return "", errors.New("no Lambda context")
		}
		return "hello, " + ev.Name, nil
	}), time.Minute)
	out, err := f.Invoke(t.Context(), []byte(`{"Name":"ann"}`))
	if err != nil || string(out) != `"hello, ann"` {
		t.Errorf("got %s, %v", out, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Invoke(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, ErrClosed)
	}
}

func TestInProcessErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                  string
		handler               InvokerFunc
		wantType, wantMessage string
	}{
		{"pointer error", func(context.Context, []byte) ([]byte, error) { return nil, &declinedError{} }, "declinedError", "declined"},
		{"plain error", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no") }, "errorString", "no"},
		{"named by the handler", func(context.Context, []byte) ([]byte, error) {
			return nil, messages.InvokeResponse_Error{Type: "Declined", Message: "no"}
		}, "Declined", "no"},
		{"another function's error", func(context.Context, []byte) ([]byte, error) {
			return nil, newFunctionError(ids.UUID(), "Passed", "on")
		}, "Passed", "on"},
		{"panic with a text", func(context.Context, []byte) ([]byte, error) { panic("oh no") }, "string", "oh no"},
		{"panic with an error", func(context.Context, []byte) ([]byte, error) { panic(&declinedError{}) }, "declinedError", "declined"},
		{"panic named by the handler", func(context.Context, []byte) ([]byte, error) {
			panic(messages.InvokeResponse_Error{Type: "Declined", Message: "no"})
		}, "Declined", "no"},
		{"end of the goroutine", func(context.Context, []byte) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		}, TypeExited, "Runtime exited without providing a reason"},
		{"response too large", func(context.Context, []byte) ([]byte, error) {
			return make([]byte, MaxResponseBytes+1), nil
		}, TypeResponseTooLarge, "(6291556 bytes)."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := InProcess(tt.handler, time.Hour)
			_, err := f.Invoke(t.Context(), nil)
			fe, ok := errors.AsType[*FunctionError](err)
			if !ok || fe.Type != tt.wantType || !strings.HasSuffix(fe.Message, tt.wantMessage) || len(fe.RequestID) != 36 {
				t.Errorf("error is %+v, want %s, …%s", err, tt.wantType, tt.wantMessage)
			}
			_ = f.Close()
		})
	}
}

func TestInProcessTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	ended := make(chan error, 1)
	f := InProcess(InvokerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
		<-release // deaf
		ended <- ctx.Err()
		return nil, nil
	}), 10*time.Millisecond)
	_, err := f.Invoke(t.Context(), nil)
	fe, ok := errors.AsType[*FunctionError](err)
	if !ok || fe.Type != TypeTimedOut || !strings.HasSuffix(fe.Message, "Task timed out after 0.01 seconds") {
		t.Errorf("error is %v", err)
	}
	close(release)
	_ = f.Close()
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the handler's context: %v", err)
	}
}

func TestInProcessRunsOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	release := make(chan struct{})
	f := InProcess(InvokerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
		cancel()
		<-release
		ended <- ctx.Err()
		return nil, nil
	}), time.Hour)
	if _, err := f.Invoke(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("caller got %v", err)
	}
	if _, err := f.Invoke(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("second call got %v", err)
	}
	close(release)
	_ = f.Close()
	if err := <-ended; err != nil {
		t.Errorf("the handler's context ended: %v", err)
	}
	if _, err := f.Invoke(t.Context(), make([]byte, MaxRequestBytes+1)); !errors.Is(err, ErrRequestTooLarge) {
		t.Errorf("request too large: %v", err)
	}
}

func TestInProcessPanicsOnProgrammerErrors(t *testing.T) {
	t.Parallel()
	echo := InvokerFunc(func(_ context.Context, p []byte) ([]byte, error) { return p, nil })
	for name, fn := range map[string]func(){
		"nil handler":      func() { InProcess(nil, 0) },
		"negative timeout": func() { InProcess(echo, -1) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "lambdarun: InProcess: "+name) {
					t.Errorf("%s: panic is %q", name, got)
				}
			}()
			fn()
		}()
	}
}
