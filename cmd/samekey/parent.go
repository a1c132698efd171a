package main

import (
	"context"
	"os"
	"time"
)

// parentPoll is how often a parent is looked at.
const parentPoll = 100 * time.Millisecond

// withParent returns a context that ends with ctx or when the program that
// started this one has ended or is about to. make is the reason: told to end by a
// SIGINT it waits for its recipes and passes nothing on, since a terminal would
// have sent the signal to all of them.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		followParent(ctx, func() bool { return os.Getppid() == parent }, func() bool { return interrupted(parent) })
	}()
	return ctx, cancel
}

// followParent returns when ctx ends, the parent has ended, or is about to. A parent that forks
// blocks its signals for a moment, and looks then as if it were: so it has to look so for
// half a second.
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
