package lambda_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// overdueFunction is a function whose handler says by which start of the program it
// runs, and doesn't come back from some messages.
func overdueFunction() {
	start := rand.Text()
	b := lambda.SQS
	b.RecordTimeout = time.Second
	lambda.Start(lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), b, func(_ context.Context, m events.SQSMessage) error {
		fmt.Println("start", start, os.Getpid(), m.MessageId)
		if m.Body == "ignore" {
			<-make(chan struct{})
		}
		return nil
	}))
}

// An overdue handler is gone before the runtime asks for the next invocation, and
// the report has been taken by then: the program begins anew in the same process.
func TestProgramBeginsAnewWithoutAnOverdueHandler(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		perProcess int
		starts     []int // by which start of the program each invocation runs
	}{
		{"one invocation at a time", 1, []int{0, 0, 1, 2}},
		{"several, which are never frozen", 2, []int{0, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fn, logs := overdue(t, tc.perProcess)
			deliver := func(messages ...events.SQSMessage) (events.SQSEventResponse, error) {
				payload, err := json.Marshal(batch(messages...))
				if err != nil {
					t.Fatal(err)
				}
				out, err := fn.Invoke(t.Context(), payload)
				if err != nil {
					return events.SQSEventResponse{}, err
				}
				var re events.SQSEventResponse
				if err := json.Unmarshal(out, &re); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return re, nil
			}
			re, err := deliver(message("a", ""))
			reported(t, re, err)
			re, err = deliver(message("b", "ignore"), message("c", "")) // one start for both
			reported(t, re, err, "b")
			_, err = deliver(message("d", "ignore"))
			if fe, ok := errors.AsType[*lambdarun.FunctionError](err); !ok || fe.Message != lambda.ErrOverdue.Error() || fe.Type != "errorString" {
				t.Errorf("got %v, want the record's own failure", err)
			}
			re, err = deliver(message("e", ""))
			reported(t, re, err)

			if len(fn.PIDs()) != 1 {
				t.Errorf("processes %v, want one", fn.PIDs())
			}
			if err := fn.Close(); err != nil { // all of the log is there then
				t.Error(err)
			}
			began := make(map[string][2]string)
			for line := range strings.Lines(logs.String()) {
				if f := strings.Fields(line); len(f) == 4 && f[0] == "start" {
					began[f[3]] = [2]string{f[1], f[2]}
				}
			}
			known := make(map[string]int)
			var starts []int
			for _, id := range []string{"a", "b", "d", "e"} {
				by := began[id]
				if by[1] != began["a"][1] {
					t.Errorf("%s ran in process %s, a in %s", id, by[1], began["a"][1])
				}
				if _, ok := known[by[0]]; !ok {
					known[by[0]] = len(known)
				}
				starts = append(starts, known[by[0]])
			}
			if diff := cmp.Diff(tc.starts, starts); diff != "" || began["b"] != began["c"] {
				t.Errorf("starts (-want +got):\n%s%s", diff, logs)
			}
		})
	}
}

func overdue(t *testing.T, perProcess int) (*lambdarun.Function, *logBuffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := new(logBuffer)
	fn, err := lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "overdue", Binary: self, PerProcess: perProcess, MaxConcurrency: perProcess, Timeout: time.Minute,
		Stdout: logs, Stderr: logs, Env: []string{asFunction + "=overdue"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fn.Close(); err != nil {
			t.Error(err)
		}
	})
	return fn, logs
}
