package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

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

// runtimeAPI is where the Lambda runtime's API is, "" outside of Lambda.
func runtimeAPI() string { return os.Getenv("AWS_LAMBDA_RUNTIME_API") }

// runtimeClient never goes by a proxy, like the runtime's own.
var runtimeClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}

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
