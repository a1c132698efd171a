package storetest

import (
	"context"
	"testing"
)

// Gate stops one handler in the middle of its work.
type Gate struct{ entered, opened chan struct{} }

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{make(chan struct{}), make(chan struct{})} }

// Pass waits until the gate is opened or ctx ends. A second call of Pass panics.
func (g *Gate) Pass(ctx context.Context) {
	close(g.entered)
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
}

// Reached waits until the handler has called Pass. It fails the test after [Limit].
func (g *Gate) Reached(t testing.TB) {
	t.Helper()
	select {
	case <-g.entered:
	case <-Limited(t).Done():
		t.Fatal("the handler was not entered")
	}
}

// Open lets the handler go on.
func (g *Gate) Open() { close(g.opened) }
