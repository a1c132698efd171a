package idemtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is advanced: give its Now to [idem.Options].
// Only stored times use the clock; the time that a request has left ends with its context's
// real deadline. A Clock is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at the present second.
func NewClock() *Clock { return &Clock{now: time.Now().Truncate(time.Second)} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d; back, if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
