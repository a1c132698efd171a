package apigateway

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
)

// maxHeadBytes limits how much of a request's head (its first line and its headers) is kept.
const maxHeadBytes = 1 << 20

type headKey struct{}

// KeepHeaderCase makes srv remember the case in which clients write header names. REST
// APIs pass on this case, but Go's server canonicalizes the names. Call KeepHeaderCase
// before srv serves, and then serve on the returned listener instead of ln.
// KeepHeaderCase works only for HTTP/1 without TLS.
func KeepHeaderCase(srv *http.Server, ln net.Listener) net.Listener {
	connContext, connState := srv.ConnContext, srv.ConnState
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if connContext != nil {
			ctx = connContext(ctx, c)
		}
		if c, ok := c.(*headConn); ok {
			ctx = context.WithValue(ctx, headKey{}, c)
		}
		return ctx
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		// The connection is idle, so the next request's head begins. The first byte of
		// this head is lost if Go's server has read it already. The loss does no harm,
		// because headerSpelling ignores the first line.
		if c, ok := c.(*headConn); ok && state == http.StateIdle {
			c.reset()
		}
		if connState != nil {
			connState(c, state)
		}
	}
	return headListener{ln}
}

type headListener struct{ net.Listener }

func (l headListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: c}, nil
}

// headConn keeps the head of the request that is being read.
type headConn struct {
	net.Conn
	mu   sync.Mutex
	head []byte
	done bool
}

func (c *headConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done && n > 0 {
		from := max(0, len(c.head)-3)
		c.head = append(c.head, p[:n]...)
		if i := bytes.Index(c.head[from:], []byte("\r\n\r\n")); i >= 0 {
			c.head, c.done = c.head[:from+i], true
		} else if len(c.head) > maxHeadBytes {
			c.done = true
		}
	}
	return n, err
}

func (c *headConn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.done = c.head[:0], false
}

// headerSpelling maps a request's canonical header names to the client's spelling. The
// map is empty if the spelling is unknown.
func headerSpelling(r *http.Request) map[string]string {
	c, ok := r.Context().Value(headKey{}).(*headConn)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	spelling := make(map[string]string)
	_, lines, _ := strings.Cut(string(c.head), "\r\n")
	for line := range strings.SplitSeq(lines, "\r\n") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			spelling[http.CanonicalHeaderKey(name)] = name
		}
	}
	return spelling
}
