package item

import (
	"context"
	"time"

	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/state"
)

// BackOff returns the wait before a request is sent again: a random time below
// [state.ResendWithin].
func BackOff(ctx context.Context, attempt int) time.Duration {
	return chance.N(ctx, state.ResendWithin(attempt))
}

// Pause waits before a request is sent again. It returns false if ctx ends first.
func Pause(ctx context.Context, round int) bool {
	timer := time.NewTimer(BackOff(ctx, round))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Overdue reports whether the deadline of ctx has passed by the wall clock. ctx itself
// may end later, because the timer of ctx stands still while a sandbox is frozen.
func Overdue(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && time.Now().Round(0).After(d.Round(0))
}
