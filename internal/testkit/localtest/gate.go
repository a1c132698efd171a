// Package localtest has helpers for the tests of several packages of the local runner.
package localtest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Gate stops processes in their handlers: a process that calls URL waits until the gate is opened.
type Gate struct {
	URL     string
	Arrived chan struct{}
	// Open opens the gate for all calls, later calls included. The gate also opens when the test ends.
	Open func()
}

// NewGate returns a closed gate.
func NewGate(t *testing.T) *Gate {
	t.Helper()
	opened := make(chan struct{})
	g := &Gate{Arrived: make(chan struct{}, 100), Open: sync.OnceFunc(func() { close(opened) })}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case g.Arrived <- struct{}{}:
		default: // Arrived is full, so wait until the test receives from it or opens the gate
			select {
			case g.Arrived <- struct{}{}:
			case <-opened:
			}
		}
		select {
		case <-opened:
		case <-r.Context().Done(): // the process was killed
		}
	}))
	g.URL = srv.URL
	t.Cleanup(func() {
		g.Open()
		srv.Close()
	})
	return g
}
