package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// A handler that has panicked may leave the process in any state: a locked mutex, a
// half-written map. So the process must end, and Lambda must see an error, as under the
// bare runtime. But first the client must get an answer, as under net/http.
//
// For each invocation, the process posts either a response or an error. The invocation
// ends later, when the runtime asks for the next invocation. If the process exits
// before it asks, Lambda counts the invocation as failed (Runtime.ExitError), although
// its response was posted.
//
// So crash.ends posts the answer as the response, and then panics. The runtime recovers
// the panic, but can't post an error after a response. Therefore it exits without
// asking for the next invocation. If the process has other invocations, the runtime
// waits for their end before it exits.

// crash holds a handler's panic until the client's answer is posted.
type crash struct{ value any }

type crashKey struct{}

// crash.ends posts the answer, and then panics with a [*PanicError].
func (c *crash) ends(ctx context.Context, out []byte, err error) {
	if err == nil {
		err = post(ctx, "response", out)
	}
	if err != nil { // then the client gets the gateway's own 5xx
		slog.ErrorContext(ctx, "a panic's answer was not posted", "error", err)
	}
	panic(panicked(c.value)) //nolint:forbidigo // the handler's panic, without its value: the runtime logs the panic
}

// crashed stores a panic for invoke, which posts the answer before the panic continues.
// If invoke isn't running, because the program has called Handle itself, nobody posts
// the answer. Then the panic continues at once in Lambda. Outside of Lambda, the panic
// ends here, and Handle returns the answer.
func crashed(ctx context.Context, value any) {
	c, ok := ctx.Value(crashKey{}).(*crash)
	switch {
	case ok:
		c.value = value
	case runtimeAPI() != "":
		panic(value) //nolint:forbidigo // the handler's own
	}
}

// Go can't stop a goroutine, so a handler that doesn't return can't be ended. When the
// runtime asks for the next invocation, Lambda freezes the process, and the handler
// with it. Minutes later the next invocation thaws the process. The handler would then
// continue, and charge a card that another process has charged meanwhile. So the
// handler must be gone before the runtime asks for the next invocation.
//
// If the process exited, the invocation would fail although its answer is posted (see
// crash). The report on failed records would be lost, and the source would deliver all
// records again. So the program restarts in the same process: execve ends all threads.
// When the new program's runtime asks for the next invocation, the current one ends.
// Lambda sees the same process, only a little slower.

// freezes reports whether Lambda freezes the process after an invocation's answer.
// Lambda doesn't freeze processes of Managed Instances, which run several invocations
// at a time. There the handler continues, and the engine renews the lease.
func freezes() bool { return runtimeAPI() != "" && lambdacontext.MaxConcurrency() <= 1 }

// startAnew posts an invocation's answer, or its failure, and restarts the program. startAnew
// doesn't return: if the restart fails, startAnew panics to end the process.
func startAnew(ctx context.Context, answer []byte, failure error) {
	kind := "response"
	if failure != nil {
		kind, answer = "error", errorAnswer(failure)
	}
	slog.WarnContext(ctx, "a handler has not returned: the program restarts without it", "failure", failure)
	err := post(ctx, kind, answer)
	if err == nil {
		err = execAgain()
	}
	slog.ErrorContext(ctx, "the program can't restart: the process ends", "error", err)
	panic(fmt.Errorf("%w: %w", ErrOverdue, err)) //nolint:forbidigo // frozen, it would be unsafe
}

// errorAnswer encodes a failure as the runtime reports it.
func errorAnswer(failure error) []byte {
	report, ok := failure.(messages.InvokeResponse_Error) //nolint:errorlint // what the runtime looks for
	if !ok {
		report = messages.InvokeResponse_Error{Message: failure.Error(), Type: typeName(failure)}
	}
	b, _ := json.Marshal(report) // can't fail: report has only strings
	return b
}

func typeName(err error) string {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

func execAgain() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ()) //nolint:gosec // this very program
}

// post posts an invocation's answer (kind "response") or failure (kind "error") to the
// runtime's API, in place of the runtime.
func post(ctx context.Context, kind string, answer []byte) error {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return errors.New("the context is not that of a Lambda invocation")
	}
	url := "http://" + runtimeAPI() + "/2018-06-01/runtime/invocation/" + lc.AwsRequestID + "/" + kind
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, url, bytes.NewReader(answer))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := runtimeClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the runtime's API says %d", resp.StatusCode)
	}
	return nil
}

// runtimeAPI returns the address of the Lambda runtime's API, "" outside of Lambda.
func runtimeAPI() string { return os.Getenv("AWS_LAMBDA_RUNTIME_API") }

// runtimeClient uses no proxy, like the runtime's own client.
var runtimeClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
