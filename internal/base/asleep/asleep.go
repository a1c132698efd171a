// Package asleep marks the context of a simulated process that renews no lease, because
// it sleeps past its deadline like a frozen sandbox of Lambda.
package asleep

import "context"

type key struct{}

// With returns a copy of ctx with the mark of a process that sleeps past its deadline. Only
// tests use With.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// In reports whether ctx has the mark of [With].
func In(ctx context.Context) bool { return ctx.Value(key{}) != nil }
