package lambdarun

import (
	"errors"
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

// Ensure Restart is a crash to an invocation that a process has been given.
func TestRestartInTheMiddleOfAnInvocation(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	idle := mustInvoke(t, f, testEvent{Op: "echo"}).PID
	g := localtest.NewGate(t)
	call := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived
	if n := f.Restart(); n != 1 || alive(idle) {
		t.Errorf("%d processes ended, want 1", n)
	}
	<-call.done
	if fe, ok := errors.AsType[*FunctionError](call.err); !ok || fe.Type != TypeExited {
		t.Errorf("error is %v", call.err)
	}
	if got := mustInvoke(t, f, testEvent{Op: "echo"}); got.PID == idle {
		t.Errorf("process %d answers after its end", idle)
	}
	if n := f.Restart(); n != 1 || len(f.PIDs()) != 0 {
		t.Errorf("%d processes ended, want 1; %v are left", n, f.PIDs())
	}
	if n := f.Restart(); n != 0 {
		t.Errorf("%d processes ended, and there was none", n)
	}
}

// Ensure an invocation that waits for a process to start is not lost by Restart.
func TestRestartWhileProcessesStart(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	var calls []*background
	for range 20 {
		calls = append(calls, invokeInBackground(t.Context(), f, testEvent{Op: "echo"}))
		f.Restart()
	}
	for _, call := range calls {
		<-call.done
		// A process that had the invocation already has crashed in the middle of it.
		if fe, ok := errors.AsType[*FunctionError](call.err); call.err != nil && (!ok || fe.Type != TypeExited) && !errors.Is(call.err, ErrThrottled) {
			t.Errorf("error is %v", call.err)
		}
	}
	mustInvoke(t, f, testEvent{Op: "echo"})
}
