// Package chance draws the random part of waits. A simulation puts its own source of random
// numbers into the context, so that a run can be repeated from its seed.
package chance

import (
	"context"
	"math/rand/v2"
)

type sourceKey struct{}

// With returns a context in which [N] and [Perm] take their numbers from draw. draw(n)
// must return a number from 0 to n-1. Only simulations use With.
func With(ctx context.Context, draw func(n int64) int64) context.Context {
	return context.WithValue(ctx, sourceKey{}, draw)
}

// N returns a random number from 0 to n-1. It panics if n is zero or negative.
func N[T ~int | ~int64](ctx context.Context, n T) T {
	if draw, ok := ctx.Value(sourceKey{}).(func(int64) int64); ok {
		return T(draw(int64(n)))
	}
	return rand.N(n)
}

// Perm returns the numbers from 0 to n-1 in random order.
func Perm(ctx context.Context, n int) []int {
	all := make([]int, n)
	for i := range all {
		j := N(ctx, i+1)
		all[i], all[j] = all[j], i
	}
	return all
}
