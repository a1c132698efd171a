package idemtest

import (
	"sync"
	"time"
)

// Clock is a clock whose time changes only by Advance. Set Now of [idem.Options] to the
// Clock's method Now. The engine uses the Clock only for times that it stores. The time
// limit of a request is the deadline of the request's context, which is in real time. A
// Clock is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a Clock with the current time, in whole seconds.
func NewClock() *Clock { return &Clock{now: time.Now().Truncate(time.Second)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the Clock forward by d, or back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
