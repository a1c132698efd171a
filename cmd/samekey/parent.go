package main

import (
	"context"
	"os"
	"time"
)

// parentPoll is the interval between checks of the parent process.
const parentPoll = 100 * time.Millisecond

// withParent returns a context that ends with ctx, or when the parent process has ended or
// is about to end. withParent is for a command that a makefile runs. If a process sends
// SIGINT to make, then make waits until the command ends, but doesn't send the signal on
// to the command. (If a person types Ctrl-C, the terminal sends SIGINT to make and to the
// command.)
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		followParent(ctx, func() bool { return os.Getppid() == parent }, func() bool { return interrupted(parent) })
	}()
	return ctx, cancel
}

// followParent returns when ctx ends, when lives reports false, or when dying has reported
// true for half a second. The function dying may also report true for a moment while the
// parent forks, because a fork blocks signals.
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
