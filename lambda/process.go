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

// invoke runs an invocation whose event handle answers. An event of another kind is an
// error that says what came instead.
func invoke[Ev, Re any](ctx context.Context, payload []byte, handle func(context.Context, Ev) (Re, error)) ([]byte, error) {
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	return invoked(ctx, func(ctx context.Context) ([]byte, error) {
		re, err := handle(ctx, ev)
		switch {
		case errors.Is(err, ErrEvent):
			return nil, fmt.Errorf("%w; the payload is %s", err, kind(payload))
		case err != nil:
			return nil, err
		}
		return encode(re)
	})
}

// A handler that has panicked may leave anything behind in its process: a lock
// that is held, half a map. So its client is answered, as under net/http, and
// then the process must end, as it does under the bare runtime, and Lambda must
// see an error.
//
// A response and an error are two ends of an invocation, and it has one. But it
// isn't over before the runtime asks for the next: an invocation whose process
// ends before that has failed (Runtime.ExitError), whatever was answered. So the
// answer is posted here, and a panic goes on to the runtime, which finds that it
// can report no error any more, and exits without asking for more work. Other
// invocations of the process end first, where it has several.

// crash is where a handler's panic waits for its answer to be posted.
type crash struct{ value any }

type crashKey struct{}

// invoked runs an invocation for the runtime. What panics in it goes on once the
// answer is posted, as a [*PanicError].
func invoked(ctx context.Context, run func(context.Context) ([]byte, error)) ([]byte, error) {
	var c crash
	out, err := run(context.WithValue(ctx, crashKey{}, &c))
	if c.value == nil || runtimeAPI() == "" { // in a test, or in a server of one's own
		return out, err
	}
	if err == nil {
		err = post(ctx, "response", out)
	}
	if err != nil { // the client gets the gateway's own 5xx, as for any panic
		slog.ErrorContext(ctx, "a panic's answer was not posted", "error", err)
	}
	panic(panicked(c.value)) //nolint:forbidigo // the handler's own, without its value: the runtime writes it to the log
}

// crashed tells invoked of a panic whose answer is on its way. Where nobody is there
// to post that, but the process is the runtime's, it goes on at once.
func crashed(ctx context.Context, value any) {
	c, ok := ctx.Value(crashKey{}).(*crash)
	switch {
	case value == nil:
	case ok:
		c.value = value
	case runtimeAPI() != "":
		panic(value) //nolint:forbidigo // the handler's own
	}
}

// A handler that doesn't come back can't be ended: Go has no way to take a goroutine
// away. Lambda freezes the process as soon as its runtime asks for the next
// invocation, lease and all; thawed for that one, minutes later, the handler would go
// on where it was, and charge a card for which another process has charged meanwhile.
// So it must be gone before the runtime asks.
//
// If the process ended, the invocation would have failed, whatever was answered
// (see crash.go): the report would be lost, and all of its records would come again.
// So the program begins anew, in the same process: execve takes all threads away, and
// a new runtime asks for the next invocation, which ends this one. To Lambda, where a
// runtime is whoever asks, it is the same process that took a little longer.

// freezes says whether Lambda freezes the process after its answer. Managed
// Instances, whose processes have several invocations at a time, are not frozen:
// there a handler works on, and the engine renews its lease.
func freezes() bool { return runtimeAPI() != "" && lambdacontext.MaxConcurrency() <= 1 }

// startAnew posts an invocation's answer, or its failure, and has the program begin
// anew. It doesn't return: where it can't, the process must end.
func startAnew(ctx context.Context, answer []byte, failure error) {
	kind := "response"
	if failure != nil {
		kind, answer = "error", errorAnswer(failure)
	}
	slog.WarnContext(ctx, "a handler has not come back: the program begins anew, without it", "failure", failure)
	err := post(ctx, kind, answer)
	if err == nil {
		err = execAgain()
	}
	slog.ErrorContext(ctx, "the program can't begin anew: its process ends", "error", err)
	panic(fmt.Errorf("%w: %w", ErrOverdue, err)) //nolint:forbidigo // frozen, it would be unsafe
}

// errorAnswer is a failure as the runtime reports it.
func errorAnswer(failure error) []byte {
	report, ok := failure.(messages.InvokeResponse_Error) //nolint:errorlint // what the runtime looks for
	if !ok {
		report = messages.InvokeResponse_Error{Message: failure.Error(), Type: typeName(failure)}
	}
	b, _ := json.Marshal(report) // strings only
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

// post ends an invocation with its answer ("response") or its failure ("error"), which
// the runtime does else.
func post(ctx context.Context, kind string, answer []byte) error {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return errors.New("the context is no invocation's")
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

// runtimeAPI is where the Lambda runtime's API is, "" outside of Lambda.
func runtimeAPI() string { return os.Getenv("AWS_LAMBDA_RUNTIME_API") }

// runtimeClient never goes by a proxy, like the runtime's own.
var runtimeClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
