package main

import (
	"context"
	"os"
	"time"
)

// parentPoll is the interval between checks of the parent process.
const parentPoll = 100 * time.Millisecond

// withParent returns a context that ends with ctx, or when the parent process has ended or is about
// to end. withParent is for commands in makefiles: if a process sends make a SIGINT, make waits for
// its recipes to end but doesn't pass the signal on. (A terminal sends SIGINT to the recipes as
// well.)
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		followParent(ctx, func() bool { return os.Getppid() == parent }, func() bool { return interrupted(parent) })
	}()
	return ctx, cancel
}

// followParent returns when ctx ends, or when the parent has ended or is about to end. A fork also
// blocks the parent's signals for a moment, so followParent waits until the signals have been
// blocked for half a second.
func followParent(ctx context.Context, lives, dying func() bool) {
	ticker := time.NewTicker(parentPoll)
	defer ticker.Stop()
	for looks := 0; lives() && looks < 5; {
		if looks++; !dying() {
			looks = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
