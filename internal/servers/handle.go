package servers

import (
	"net/http"
	"sync"
	"time"
)

// Handle manages a server. The method Close ends the server, at most once. The method
// HTTP returns the [http.Client] that all clients of the server share. If somebody else
// ends the server, use the zero Handle, whose Close ends no server. A Handle is safe
// for concurrent use and must not be copied.
type Handle struct {
	// Stop ends the server. It is nil if no server was started. Close calls Stop.
	Stop func() error

	closeOnce sync.Once
	closeErr  error

	httpOnce sync.Once
	http     *http.Client
}

// HTTP returns the client that all clients of the server share.
func (h *Handle) HTTP() *http.Client {
	h.httpOnce.Do(func() {
		tr := &http.Transport{}
		if def, ok := http.DefaultTransport.(*http.Transport); ok {
			tr = def.Clone()
		}
		// Many goroutines of a test call one host. With the default of two idle
		// connections, nearly every request would open and close a connection.
		tr.MaxIdleConnsPerHost = 100
		// This timeout is shorter than the server's, so that the client closes an idle
		// connection before the server does. A request on a connection that the server
		// is closing could fail, and the clients don't retry.
		tr.IdleConnTimeout = 10 * time.Second
		h.http = &http.Client{
			Transport:     tr,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return h.http
}

// Close drops the idle connections, ends the server and waits until it has ended.
// Later calls of Close return the first call's result.
func (h *Handle) Close() error {
	h.closeOnce.Do(func() {
		h.HTTP().CloseIdleConnections()
		if h.Stop != nil {
			h.closeErr = h.Stop()
		}
	})
	return h.closeErr
}
