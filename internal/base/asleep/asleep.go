// Package asleep marks a simulated process that sleeps past its deadline, like a frozen
// sandbox of Lambda. Such a process renews no lease.
package asleep

import "context"

type key struct{}

// With returns a context of a process that sleeps past its deadline. Only tests use it.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// In reports whether the process of ctx sleeps past its deadline.
func In(ctx context.Context) bool { return ctx.Value(key{}) != nil }
