package lambdarun

import "context"

const (
	// MaxRequestBytes is the largest payload an invocation accepts.
	MaxRequestBytes = 6 << 20
	// MaxResponseBytes is the largest payload a function may return; Lambda
	// allows 100 bytes above 6 MiB.
	MaxResponseBytes = 6<<20 + 100
)

// Invoker runs one synchronous invocation: payload in, payload out. It is safe
// for concurrent use.
//
// ctx bounds how long the caller waits, not how long the function runs: when
// ctx ends, Invoke returns an error that wraps the context's, and an invocation
// that has begun goes on until it is done or reaches the function's own
// timeout, as in Lambda. The payload must not be changed until then.
//
// An error the function reported, or its death, is a [*FunctionError].
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// InvokerFunc is a function as an [Invoker].
type InvokerFunc func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke calls f.
func (f InvokerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}
