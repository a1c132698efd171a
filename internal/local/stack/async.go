package stack

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// asyncInvoker runs asynchronous invocations like Lambda. It retries a failed
// invocation as often as the function's configuration says, and then sends the
// invocation to the OnFailure destination. It retries a throttled invocation until the
// invocation is too old. The pauses between tries are shorter than Lambda's by a factor
// of 300: 0.2 s and 0.4 s in place of one minute and two minutes. If the process has
// died, the pause is longer by the rest of the lease.
type asyncInvoker struct {
	ctx   context.Context //nolint:containedctx // the stack's: its end stops background work
	pause time.Duration
	fail  failFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// failFunc sends a function's failed event to its OnFailure destination.
type failFunc func(ctx context.Context, f *function, destination string, message, object []byte) error

// asyncInvoker.invoke starts an invocation in the background. Once the stack is being
// closed, invoke starts nothing and returns false.
func (a *asyncInvoker) invoke(f *function, tenant, trace string, payload []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.wg.Go(func() { _ = a.run(lambdarun.Traced(lambdarun.ForTenant(a.ctx, tenant), trace), f, payload) })
	}
	return !a.closed
}

// asyncFunction invokes a function with the retries of asyncInvoker, for a caller that
// waits for the last try.
type asyncFunction struct {
	async *asyncInvoker
	f     *function
}

var _ lambdarun.Invoker = asyncFunction{}

// Invoke returns the error of the last try, and no answer.
func (a asyncFunction) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return nil, a.async.run(ctx, a.f, payload)
}

// asyncInvoker.close waits until the background work has ended. Cancel a.ctx first, to
// stop the work.
func (a *asyncInvoker) close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.wg.Wait()
	return nil
}

func (a *asyncInvoker) run(ctx context.Context, f *function, payload []byte) error {
	begin := time.Now()
	failures, pause := 0, a.pause
	for {
		began := time.Now()
		_, err := f.Invoke(ctx, payload)
		if err == nil || ctx.Err() != nil || errors.Is(err, lambdarun.ErrClosed) {
			return err
		}
		fe, failed := errors.AsType[*lambdarun.FunctionError](err)
		condition := ""
		switch {
		case errors.Is(err, lambdarun.ErrRecursive), time.Since(begin) > f.def.Async.MaxAge:
			condition = "EventAgeExceeded"
		case failed && failures >= f.def.Async.Retries:
			condition = "RetriesExhausted"
		}
		if failed {
			failures++
		}
		if condition != "" {
			a.giveUp(f, payload, fe, condition, failures)
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause + leaseLeft(fe, f.def.Timeout, time.Since(began))):
		}
		if failed {
			pause *= 2
		}
	}
}

// leaseLeft returns how long the lease of a failed invocation still lasts. If the
// process has died, the lease ends a margin after the invocation's time limit. In every
// other case, no lease is left.
func leaseLeft(fe *lambdarun.FunctionError, limit, took time.Duration) time.Duration {
	if fe == nil || fe.Type != lambdarun.TypeExited && fe.Type != lambdarun.TypeTimedOut {
		return 0
	}
	return max(0, limit-took+defaults.LeaseMargin)
}

// giveUp sends the failed event to the OnFailure destination, if there is one, in the
// form of Lambda's invocation records.
func (a *asyncInvoker) giveUp(f *function, payload []byte, fe *lambdarun.FunctionError, condition string, failures int) {
	f.log.Warn("an asynchronous invocation is given up", "condition", condition, "invocations", failures)
	if f.def.Async.OnFailure == "" {
		return
	}
	type requestContext struct {
		RequestID   string `json:"requestId"`
		FunctionARN string `json:"functionArn"`
		Condition   string `json:"condition"`
		Count       int    `json:"approximateInvokeCount"`
	}
	type responseContext struct {
		StatusCode int    `json:"statusCode"`
		Version    string `json:"executedVersion"`
		Error      string `json:"functionError"`
	}
	record := struct {
		Version         string           `json:"version"`
		Timestamp       string           `json:"timestamp"`
		RequestContext  requestContext   `json:"requestContext"`
		RequestPayload  json.RawMessage  `json:"requestPayload"`
		ResponseContext *responseContext `json:"responseContext,omitempty"`
		ResponsePayload json.RawMessage  `json:"responsePayload,omitempty"`
	}{
		Version: "1.0", Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext: requestContext{FunctionARN: f.def.ARN + ":$LATEST", Condition: condition, Count: failures},
		RequestPayload: payload,
	}
	if fe != nil {
		record.RequestContext.RequestID = fe.RequestID
		record.ResponseContext = &responseContext{StatusCode: 200, Version: "$LATEST", Error: "Unhandled"}
		if json.Valid(fe.Payload) {
			record.ResponsePayload = fe.Payload
		}
	}
	message, err := json.Marshal(record)
	if err == nil {
		err = a.fail(a.ctx, f, f.def.Async.OnFailure, message, message)
	}
	if err != nil {
		f.log.Error("an invocation record is lost", "error", err)
	}
}
