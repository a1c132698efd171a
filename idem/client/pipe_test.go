package client_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
)

// A pipe is a network in memory, on which net/http runs in virtual time.
type pipe struct {
	conns chan net.Conn
	done  chan struct{}
	cut   func() (bytes int) // number of bytes after which a new connection breaks; nil or 0 = never

	mu     sync.Mutex
	dialed int
}

// serve runs a real server for handler on a pipe, and returns a real transport
// to it, until the test ends.
func serve(t *testing.T, handler http.Handler, cut func() int) (*http.Transport, *pipe) {
	t.Helper()
	p := &pipe{conns: make(chan net.Conn), done: make(chan struct{}), cut: cut}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(p) }()
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = server.Close()
	})
	return tr, p
}

func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	p.mu.Lock()
	p.dialed++
	c := &breaking{Conn: near}
	if p.cut != nil {
		c.left = p.cut()
	}
	c.breaks = c.left > 0
	p.mu.Unlock()
	select {
	case p.conns <- far:
		return c, nil
	case <-p.done:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { close(p.done); return nil }
func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// breaking is a connection that is reset after some bytes in either direction.
type breaking struct {
	net.Conn
	breaks bool

	mu   sync.Mutex
	left int
}

// take spends up to n bytes, and reports how many were left.
func (b *breaking) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.breaks {
		n = min(n, b.left)
		b.left -= n
	}
	return n
}

func (b *breaking) Write(p []byte) (int, error) {
	n := b.take(len(p))
	written, err := b.Conn.Write(p[:n])
	if err == nil && n < len(p) {
		err = b.reset("write")
	}
	return written, err
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if got := b.take(n); got < n {
		return got, b.reset("read")
	}
	return n, err
}

func (b *breaking) reset(op string) error {
	_ = b.Close()
	return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
}
