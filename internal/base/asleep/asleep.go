// Package asleep says that a simulated process sleeps past its deadline, as Lambda's do: it
// renews no lease.
package asleep

import "context"

type key struct{}

// With returns a context of a process that sleeps past its deadline. Only tests use it.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// In reports whether the process of ctx sleeps past its deadline.
func In(ctx context.Context) bool { return ctx.Value(key{}) != nil }
