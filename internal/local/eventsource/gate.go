package eventsource

import (
	"context"
	"sync"
)

// gate lets invocations begin, unless it is closed. The zero value is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while the gate is open; otherwise a channel, which the method open closes
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

// gate.wait returns nil when the gate is open, or ctx's error if ctx ends first.
func (g *gate) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
