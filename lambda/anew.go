package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"syscall"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

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
