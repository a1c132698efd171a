package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A phase for which the handler didn't wait comes too late: its attempt has ended
// and was answered. It must not claim a key that no attempt holds.
func TestPhaseThatOutlivesItsHandlerWritesNothing(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	_, err := do(t, idem.New(&mem, anybody, merge), func(ctx context.Context) (idem.Response, error) {
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
		return idem.Response{}, errors.New("gave up waiting")
	})
	if err == nil {
		t.Error("no error")
	}
	close(wake)
	if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
		t.Errorf("the phase gets %v", err)
	}
	if len(mem.Writes()) != 0 || len(mem.Records()) != 0 {
		t.Errorf("wrote %v and %d records", written(&mem), len(mem.Records()))
	}
}

// No answer is given while a running call may contradict the answer.
func TestNoAnswerLeavesWhileACallIsUnderWay(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, wake, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	res, err := do(t, idem.New(&mem, anybody), func(ctx context.Context) (idem.Response, error) {
		go func() {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) {
				close(started)
				<-wake
				return 1, nil
			})
			over <- err
		}()
		<-started
		return idem.Response{}, idem.Respond(idem.Response{Status: 402})
	})
	close(wake)
	if err := <-over; !errors.Is(err, idem.ErrPhaseOrder) {
		t.Errorf("the call's phase gets %v", err)
	}
	if !errors.Is(err, idem.ErrPhaseOrder) {
		t.Errorf("the client gets %+v, %v", res, err)
	}
}
