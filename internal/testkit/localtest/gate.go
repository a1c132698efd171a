// Package localtest has helpers for the tests of several packages of the local runner.
package localtest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Gate lets a test meet processes at a point of their handlers: each process that
// calls URL arrives, and waits until the gate is opened.
type Gate struct {
	URL     string
	Arrived chan struct{}
	// Open lets all pass, those that are to come as well. The test's end opens too.
	Open func()
}

// NewGate returns a gate that is shut until it is opened or the test ends.
func NewGate(t *testing.T) *Gate {
	t.Helper()
	opened := make(chan struct{})
	g := &Gate{Arrived: make(chan struct{}, 100), Open: sync.OnceFunc(func() { close(opened) })}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case g.Arrived <- struct{}{}:
		default: // a hundred that nobody has counted
			select {
			case g.Arrived <- struct{}{}:
			case <-opened:
			}
		}
		select {
		case <-opened:
		case <-r.Context().Done(): // killed
		}
	}))
	g.URL = srv.URL
	t.Cleanup(func() {
		g.Open()
		srv.Close()
	})
	return g
}
