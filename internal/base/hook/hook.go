// Package hook combines hooks: functions that may be nil.
package hook

import "context"

// Both returns a hook that calls the hook a and then the hook b. Either of them may be nil;
// if both are nil, the result is nil.
func Both[E any](a, b func(context.Context, E)) func(context.Context, E) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, e E) {
		a(ctx, e)
		b(ctx, e)
	}
}

// Both2 is [Both] for hooks that also get an error.
func Both2[E any](a, b func(context.Context, E, error)) func(context.Context, E, error) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, e E, err error) {
		a(ctx, e, err)
		b(ctx, e, err)
	}
}
