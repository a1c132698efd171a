package lambdarun

import "context"

const (
	// MaxRequestBytes is the largest payload an invocation accepts.
	MaxRequestBytes = 6 << 20
	// MaxResponseBytes is the largest payload a function may return; Lambda
	// allows 100 bytes above 6 MiB.
	MaxResponseBytes = 6<<20 + 100
)

// Invoker runs one synchronous invocation: payload in, payload out. It is safe for
// concurrent use.
//
// ctx bounds how long the caller waits, not how long the function runs. When ctx ends,
// Invoke returns an error that wraps the cause ([context.Cause]). As in Lambda, an
// invocation that has begun still goes on, until the function has answered or has
// reached its own timeout. The caller must not change the payload until then.
//
// The error is a [*FunctionError] if the function reported an error or died.
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// InvokerFunc makes a Go function an [Invoker].
type InvokerFunc func(ctx context.Context, payload []byte) ([]byte, error)

// Invoke calls f.
func (f InvokerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}
