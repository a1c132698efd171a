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
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for os.Getppid() == parent && !interrupted(parent) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return ctx, cancel
}
