package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/redact"
)

// EachHandler.read converts a record to a task. An unreadable record gets a key that the engine
// refuses.
func (h *EachHandler[Ev, Rec, Re]) read(ctx context.Context, rec Rec) (t *task) {
	t = &task{}
	defer func() {
		if v := recover(); v != nil {
			t.req.Key, t.err = unreadable, panicked(v) // for example, the Key function panicked
		}
	}()
	if h.batch.Group != nil {
		t.group = h.batch.Group(rec)
	}
	if t.req, t.err = h.batch.Request(ctx, rec); t.err != nil {
		t.req.Key = unreadable
		return t
	}
	t.req.Redelivered, t.req.Operation = true, h.batch.Name
	switch {
	case h.batch.Scope == "":
	case h.batch.shared:
		t.req.Source = consumerScope(ctx, h.batch.Scope)
	default:
		t.req.Source = h.batch.Scope
	}
	if t.req.Tenant == "" {
		t.req.Tenant = tenantOf(ctx)
	}
	t.req.Key, t.err = keyOf(h.batch.Key(rec))
	t.req.DeliveryKey = t.req.DeliveryKey && t.req.Key == h.batch.ID(rec) && !h.batch.CallsAgainAfterRedrive
	return t
}

// EachHandler.try handles one record, and returns why it failed.
func (h *EachHandler[Ev, Rec, Re]) try(ctx context.Context, rec Rec, t *task) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v) // the other records go on; the engine has freed the key
		}
	}()
	if t.req.Answer == nil {
		t.req.Answer = done
	}
	_, err = h.engine.Do(ctx, t.req, func(ctx context.Context) (idem.Response, error) {
		hctx, cancel, enters := t.enter(ctx)
		if !enters {
			return idem.Response{}, noTime(ctx) // the claim has used up the time
		}
		defer cancel()
		defer t.leave()
		if err := h.fn(hctx, rec); err != nil {
			return idem.Response{}, &ownError{err}
		}
		return idem.Response{}, nil
	})
	if own, ok := errors.AsType[*ownError](err); ok {
		return own.err
	}
	switch {
	case t.err != nil && !t.ran():
		return t.err
	case !t.ran() && errors.Is(err, idem.ErrNotKept):
		// An earlier attempt has handled rec. Its answer was not kept, but nobody needs
		// the answer. If the handler ran in this attempt, the error may come from a
		// phase, and must be reported.
		return nil
	case errors.Is(err, idem.ErrNoTime) && !t.ran() && !errors.Is(err, ErrNotRun):
		return &idem.Error{Op: "start", Err: fmt.Errorf("%w: %w", ErrNotRun, err)}
	}
	return engineError(err)
}

// done is the [idem.Request.Answer] of a record: whatever a phase answers, the record's answer is
// empty.
func done(any) (idem.Response, error) { return idem.Response{}, nil }

// EachHandler.tell passes a failure to a hook. If the hook panics, tell logs the panic,
// so that the report on the other records isn't lost.
func (h *EachHandler[Ev, Rec, Re]) tell(ctx context.Context, hook func(context.Context, Rec, error), name string, rec Rec, failure error) {
	defer func() {
		if v := recover(); v != nil {
			logFailure(ctx, h.batch.ID(rec), errors.Join(failure, fmt.Errorf("%s: %w", name, panicked(v))))
		}
	}()
	hook(ctx, rec, failure)
}

func logFailure(ctx context.Context, id string, err error) {
	args := []any{"record", id, "error", redact.Error(err)}
	if p, ok := errors.AsType[*PanicError](err); ok {
		args = append(args, "stack", string(p.Stack))
	}
	slog.ErrorContext(ctx, "record failed", args...)
}

type task struct {
	req   idem.Request
	group string
	err   error // why the record could not be read

	limit   time.Duration // the most time for the handler; 0: as long as the lane has time
	lane    time.Time     // end of the lane's time; zero: no end
	until   time.Time     // end of the handler's context, set when the handler begins; zero: the end of the engine's context
	begun   chan struct{} // closed when the field until is set
	done    chan struct{} // closed when all work for the task is finished; nil: not begun
	came    error         // the task's result, valid once done is closed
	handler atomic.Int32
}

// States of a task's handler.
const (
	notRun int32 = iota
	barred       // not run, and must not begin any more: the report is being made
	running
	returned
	overdue // still running when the report was made
)

// task.enter records that the handler begins, and returns a context that ends when the
// handler must return. enter returns false if the handler must not begin: its time is
// over, it has begun already, or the report on the event counts it as not run.
func (t *task) enter(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	if ctx.Err() != nil || passed(t.lane) || !t.handler.CompareAndSwap(notRun, running) {
		return nil, nil, false
	}
	t.until = t.lane
	if t.limit > 0 {
		t.until = earliest(t.lane, time.Now().Add(t.limit))
	}
	close(t.begun)
	if t.until.IsZero() {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, true
	}
	ctx, cancel := context.WithDeadline(ctx, t.until)
	return ctx, cancel, true
}

// passed reports whether the time t has come. The zero time never comes.
func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// earliest returns the earlier of the times a and b, or b if a is zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// task.await waits until the task is done, and reports whether it is done. await gives
// up when grace has passed since the end of the handler's context. If the handler has
// not begun, grace counts from the end of the lane's time.
func (t *task) await(grace time.Duration) (ended bool) {
	select {
	case <-t.done:
		return true
	case <-after(t.lane, grace):
		return false
	case <-t.begun:
	}
	select {
	case <-t.done:
		return true
	case <-after(t.until, grace):
		return false
	}
}

// after(t, d) returns a channel that delivers at the time t + d, or never if t is zero.
func after(t time.Time, d time.Duration) <-chan time.Time {
	if t.IsZero() {
		return nil
	}
	return time.After(time.Until(t) + d)
}

// task.leave records that the handler has returned.
func (t *task) leave() { t.handler.CompareAndSwap(running, returned) }

// giveUp marks a running handler as overdue, and reports whether the handler was running. After
// giveUp a handler that hasn't begun can't begin any more. A handler that has returned is not
// marked.
func (t *task) giveUp() bool {
	return !t.handler.CompareAndSwap(notRun, barred) && t.handler.CompareAndSwap(running, overdue)
}

func (t *task) givenUp() bool { return t.handler.Load() == overdue }

// task.ran reports whether the handler has begun.
func (t *task) ran() bool { return t.handler.Load() >= running }

// task.untried reports whether the task was not tried. err is the task's result.
func (t *task) untried(err error) bool { return !t.ran() && errors.Is(err, ErrNotRun) }
