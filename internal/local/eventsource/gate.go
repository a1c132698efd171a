package eventsource

import (
	"context"
	"sync"
)

// gate lets invocations begin, unless it is closed, and knows of those that are
// under way. The zero value is open.
type gate struct {
	mu       sync.Mutex
	opened   chan struct{} // nil while open, closed by opening
	underWay int
	idle     chan struct{} // nil unless a caller waits, closed when underWay is 0
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened != nil
}

// wait returns when the gate is open, or ctx's error.
func (g *gate) wait(ctx context.Context) error {
	if g.begin(ctx) {
		g.end()
	}
	return ctx.Err()
}

// begin waits until the gate is open and counts an invocation. It reports
// false, and counts none, if ctx has ended.
func (g *gate) begin(ctx context.Context) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		opened := g.tryBegin()
		if opened == nil {
			return true
		}
		select {
		case <-opened:
		case <-ctx.Done():
		}
	}
}

// tryBegin counts an invocation if the gate is open. Otherwise it returns what
// is closed by its opening.
func (g *gate) tryBegin() (opened <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.underWay++
	}
	return g.opened
}

// count counts an invocation whether the gate is open or not.
func (g *gate) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay++
}

// end undoes the count of begin or count.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay--
	if g.underWay == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// waitIdle returns when nothing is under way, or ctx's error.
func (g *gate) waitIdle(ctx context.Context) error {
	g.mu.Lock()
	if g.underWay == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
