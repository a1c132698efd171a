package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A phase for which the handler didn't wait comes too late: its attempt has ended
// and was answered. It must not claim a key that no attempt holds.
func TestPhaseThatOutlivesItsHandlerWritesNothing(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	_, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		go func() {
			_, err := idem.Atomic(ctx, "late", func(_ context.Context, tx *idem.Tx) (int, error) {
				close(started)
				<-wake
				tx.Write(note("late"))
				return 1, nil
			})
			over <- err
		}()
		<-started
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) { //nolint:errorlint // the handler's own error, as it is
		t.Errorf("got %v", err)
	}
	close(wake)
	if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
		t.Errorf("the phase gets %v", err)
	}
	if r := one(&mem); len(mem.Writes()) != 0 || len(r.Phases) != 0 {
		t.Errorf("wrote %v, phases %v", written(&mem), r.Phases)
	}
}

// No answer is given while a running phase may contradict the answer.
func TestNoAnswerLeavesWhileAPhaseRuns(t *testing.T) {
	t.Parallel()
	call := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Foreign(ctx, "charge", run)
		return err
	}
	writes := func(ctx context.Context, run func(context.Context, *idem.Tx) (int, error)) error {
		_, err := idem.Atomic(ctx, "order", run)
		return err
	}
	for name, tt := range map[string]struct {
		phase  func(context.Context, func(context.Context, *idem.Tx) (int, error)) error
		answer idem.Response
		err    error
	}{
		"a kept refusal, and a call": {call, idem.Response{}, idem.Respond(idem.Response{Status: 402})},
		"a refusal, and a call":      {call, idem.Response{Status: 404}, nil},
		"a refusal, and writes":      {writes, idem.Response{Status: 404}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
				go func() {
					over <- tt.phase(ctx, func(context.Context, *idem.Tx) (int, error) {
						close(started)
						<-wake
						return 1, nil
					})
				}()
				<-started
				return tt.answer, tt.err
			})
			close(wake)
			if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
				t.Errorf("the phase gets %v", err)
			}
			if !errors.Is(err, idem.ErrPhaseOrder) {
				t.Errorf("the client gets %+v, %v", res, err)
			}
		})
	}
}
