package lambdarun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/internal/servers/ids"
)

// InProcessFunction runs a handler in this process. Make it with [InProcess].
type InProcessFunction struct {
	handler Invoker
	timeout time.Duration

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

var _ Invoker = (*InProcessFunction)(nil)

// InProcess returns an [Invoker] that calls h in this process. h can be the result of
// lambda.NewHandler of aws-lambda-go. A timeout of 0 is Lambda's default of 3 s.
//
// h gets a context with a deadline, a request id, an ARN and a trace header, as in
// Lambda. An error or a panic of h becomes a [*FunctionError] with the type and the
// message that aws-lambda-go would report. Concurrency has no limit. The answers of a
// handler that lambda.NewHandler made of a Go function share memory, so an invocation
// can overwrite an earlier answer. To prevent this, h can be an [InvokerFunc] that
// makes a handler for each call.
//
// At the deadline the invocation ends with [TypeTimedOut]. Code in this process cannot
// be killed: h continues until it returns, and should return when its context ends. A
// panic in a goroutine that h started, or os.Exit, ends this process.
//
// InProcess panics if h is nil or timeout is negative.
func InProcess(h Invoker, timeout time.Duration) *InProcessFunction {
	if h == nil {
		panic("lambdarun: InProcess: nil handler") //nolint:forbidigo // a mistake in the program
	}
	if timeout < 0 {
		panic("lambdarun: InProcess: negative timeout") //nolint:forbidigo // a mistake in the program
	}
	if timeout == 0 {
		timeout = defaultTimeout
	}
	return &InProcessFunction{handler: h, timeout: timeout}
}

// Invoke calls the handler; see [Invoker] and [InProcess].
func (f *InProcessFunction) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	wrap := func(err error) error {
		return fmt.Errorf("lambdarun: invoke in process: %w", err)
	}
	if ctx.Err() != nil {
		return nil, wrap(context.Cause(ctx))
	}
	if len(payload) > MaxRequestBytes {
		return nil, wrap(ErrRequestTooLarge)
	}
	trace, err := descend(ctx, defaultName)
	if err != nil {
		return nil, wrap(err)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, wrap(ErrClosed)
	}
	f.wg.Add(1)
	f.mu.Unlock()

	requestID := ids.UUID()
	hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
	hctx = lambdacontext.NewContext(hctx, &lambdacontext.LambdaContext{
		AwsRequestID:       requestID,
		InvokedFunctionArn: functionARN(ids.Region, defaultName),
		TenantID:           tenantOf(ctx),
	})
	hctx = context.WithValue(hctx, "x-amzn-trace-id", trace) //nolint:staticcheck // as aws-lambda-go does
	done := make(chan outcome, 1)
	go func() {
		defer f.wg.Done()
		defer cancel()
		// If the handler ends its goroutine by runtime.Goexit, out keeps this value.
		out := outcome{err: exitedError(requestID, "exit status 0")}
		defer func() { done <- out }()
		out = f.call(hctx, requestID, payload)
	}()

	select {
	case out := <-done:
		return out.payload, out.err
	case <-ctx.Done():
		return nil, wrap(context.Cause(ctx))
	case <-hctx.Done():
	}
	// hctx ends at the deadline, and also after the handler has returned. If the
	// handler has returned, done already holds its outcome.
	select {
	case out := <-done:
		return out.payload, out.err
	default:
		return nil, timedOutError(requestID, f.timeout)
	}
}

// Close refuses further invocations and waits until all handlers have returned. It does
// not end their contexts. It returns nil.
func (f *InProcessFunction) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wg.Wait()
	return nil
}

func (f *InProcessFunction) call(ctx context.Context, requestID string, payload []byte) (out outcome) {
	defer func() {
		if v := recover(); v != nil {
			out = outcome{err: panicError(requestID, v)}
		}
	}()
	response, err := f.handler.Invoke(ctx, payload)
	if err != nil {
		return outcome{err: handlerError(requestID, err)}
	}
	if len(response) > MaxResponseBytes {
		return outcome{err: responseTooLargeError(requestID)}
	}
	return outcome{payload: response}
}

// handlerError returns what aws-lambda-go would report for err.
func handlerError(requestID string, err error) *FunctionError {
	if fe, ok := errors.AsType[*FunctionError](err); ok {
		return fe
	}
	if report, ok := errors.AsType[messages.InvokeResponse_Error](err); ok {
		return messageError(requestID, report)
	}
	return newFunctionError(requestID, typeName(err), err.Error())
}

func panicError(requestID string, v any) *FunctionError {
	if report, ok := v.(messages.InvokeResponse_Error); ok {
		return messageError(requestID, report)
	}
	return newFunctionError(requestID, typeName(v), fmt.Sprint(v))
}

func messageError(requestID string, report messages.InvokeResponse_Error) *FunctionError {
	payload, _ := json.Marshal(report) // can't fail: only strings and numbers are encoded
	return &FunctionError{Type: report.Type, Message: report.Message, RequestID: requestID, Payload: payload}
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
