package lambdarun

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

func shared(n int) func(*Config) { return func(c *Config) { c.PerProcess = n } }

func TestConcurrentInvocationsShareAProcess(t *testing.T) {
	t.Parallel()
	const n = 3
	f := start(t, shared(n))
	g := localtest.NewGate(t)
	var calls []*background
	for range 2*n + 1 {
		calls = append(calls, invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL}))
	}
	for range calls {
		<-g.Arrived
	}
	if got := f.Running(); len(got) != len(calls) {
		t.Errorf("%d invocations are told to run, want %d", len(got), len(calls))
	}
	pids := f.PIDs()
	if len(pids) != 3 {
		t.Errorf("processes %v for %d invocations, %d each", pids, len(calls), n)
	}
	g.Open()
	perProcess := make(map[int]int)
	for _, c := range calls {
		<-c.done
		if c.err != nil {
			t.Error(c.err)
		}
		perProcess[c.reply.PID]++
	}
	for pid, got := range perProcess {
		if got > n || !slices.Contains(pids, pid) {
			t.Errorf("process %d of %v had %d invocations at a time", pid, pids, got)
		}
	}
	// Ensure workers come back.
	for range 3 * n {
		if pid := mustInvoke(t, f, testEvent{Op: "echo"}).PID; !slices.Contains(pids, pid) {
			t.Errorf("process %d is new", pid)
		}
	}
	if env := mustInvoke(t, f, testEvent{Op: "describe"}).Env; !slices.Contains(env, "AWS_LAMBDA_MAX_CONCURRENCY=3") ||
		!slices.Contains(env, "AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances") {
		t.Errorf("environment %v", env)
	}
}

// On Managed Instances nobody kills what has timed out: it works on, beside the
// others of its process, and its worker comes back when it is done.
func TestTimeoutLeavesASharedProcessAtWork(t *testing.T) {
	t.Parallel()
	over := make(chan time.Time, 1) // of the first invocation that takes it
	f := start(t, func(c *Config) { c.PerProcess, c.after = 2, func(time.Duration) <-chan time.Time { return over } })
	g, other := localtest.NewGate(t), localtest.NewGate(t)
	late := invokeInBackground(t.Context(), f, testEvent{Op: "outlive", Value: g.URL})
	<-g.Arrived
	over <- time.Now()
	<-late.done
	if fe, ok := errors.AsType[*FunctionError](late.err); !ok || fe.Type != TypeTimedOut {
		t.Fatalf("error is %v", late.err)
	}
	pid := mustInvoke(t, f, testEvent{Op: "echo"}).PID
	one := invokeInBackground(t.Context(), f, testEvent{Op: "outlive", Value: other.URL})
	<-other.Arrived
	if pids := f.PIDs(); len(pids) != 1 || pids[0] != pid || !alive(pid) {
		t.Errorf("processes %v, want the one with both, %d", pids, pid)
	}
	g.Open()
	other.Open()
	<-one.done
	for range 5 {
		if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID != pid {
			t.Errorf("process %d, want %d", got.PID, pid)
		}
	}
}

// A process that dies takes all its invocations along.
func TestSharedProcessThatDiesEndsAllItsInvocations(t *testing.T) {
	t.Parallel()
	f := start(t, shared(3))
	g := localtest.NewGate(t)
	calls := []*background{
		invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL}),
		invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL}),
	}
	<-g.Arrived
	<-g.Arrived
	pid := f.PID()
	if _, err := invoke(t.Context(), f, testEvent{Op: "exit", N: 3}); err == nil {
		t.Error("no error")
	}
	for _, c := range calls {
		<-c.done
		if fe, ok := errors.AsType[*FunctionError](c.err); !ok || fe.Type != TypeExited {
			t.Errorf("error is %v", c.err)
		}
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == pid {
		t.Errorf("process %d answers, which has died", pid)
	}
}

func TestSharedProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.PerProcess, c.Env = 3, []string{"TEST_INIT=exit"} })
	calls := make([]*background, 3)
	for i := range calls {
		calls[i] = invokeInBackground(t.Context(), f, testEvent{Op: "echo"})
	}
	for _, c := range calls {
		<-c.done
		if fe, ok := errors.AsType[*FunctionError](c.err); !ok || fe.Type != TypeExited {
			t.Errorf("error is %v", c.err)
		}
	}
}
