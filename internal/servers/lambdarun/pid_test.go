package lambdarun

import (
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

func TestPIDIsTheProcessUsedLast(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	if pid := f.PID(); pid != 0 {
		t.Errorf("before the first invocation: %d", pid)
	}
	idle := mustInvoke(t, f, testEvent{Op: "echo"}).PID
	if pid := f.PID(); pid != idle {
		t.Errorf("idle: %d, want %d", pid, idle)
	}

	// Two at work; the one that began last counts.
	g := localtest.NewGate(t)
	first := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived
	second := invokeInBackground(t.Context(), f, testEvent{Op: "echo", URL: g.URL})
	<-g.Arrived
	busy := f.PID()
	g.Open()
	<-first.done
	<-second.done
	if first.err != nil || second.err != nil {
		t.Fatal(first.err, second.err)
	}
	if busy != second.reply.PID {
		t.Errorf("busy: %d, want %d", busy, second.reply.PID)
	}

	for _, pid := range f.PIDs() {
		if err := f.Kill(pid); err != nil {
			t.Fatal(err)
		}
	}
	if pid := f.PID(); pid != 0 {
		t.Errorf("after the death of all: %d", pid)
	}
}
