package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/internal/servers/apigateway"
)

// server serves a handler on a port of 127.0.0.1.
type server struct {
	url    string
	http   *http.Server
	ln     net.Listener
	served chan struct{} // nil before serve
}

// listen opens a port without serving it yet; port 0 means any free port.
func listen(ctx context.Context, port int) (*server, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	s := &server{url: "http://" + ln.Addr().String()}
	s.http = &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.ln = apigateway.KeepHeaderCase(s.http, ln)
	return s, nil
}

// swap is a handler that can be replaced while it serves. Running requests stay with the
// old handler. Set a handler before the first request.
type swap struct{ now atomic.Pointer[http.Handler] }

func (s *swap) set(h http.Handler) { s.now.Store(&h) }

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }

func (s *server) serve(h http.Handler) {
	s.http.Handler = h
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.http.Serve(s.ln) // Serve returns only after a call of close
	}()
}

func (s *server) close() error {
	if s.served == nil {
		return s.ln.Close()
	}
	err := s.http.Close()
	<-s.served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
