package stack

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
)

// proxy is the HTTPS_PROXY of the functions. It refuses connections to AWS, because an
// SDK that doesn't know AWS_ENDPOINT_URL would call AWS itself. It lets connections to
// other hosts through. Requests other than CONNECT go to the handler in the field next.
type proxy struct {
	ended <-chan struct{}   // ends the connections
	allow map[string]string // the variables of --env; proxy lets an AWS host through if a value contains the host
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	log   *slog.Logger
	next  http.Handler
}

// proxy.environ returns the variables that send a function's HTTPS requests to the
// proxy, except requests to this machine.
func (*proxy) environ(url string) []string {
	const local = "127.0.0.1,localhost,::1"
	return []string{"HTTPS_PROXY=" + url, "https_proxy=" + url, "NO_PROXY=" + local, "no_proxy=" + local}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		p.next.ServeHTTP(w, r)
		return
	}
	host := r.URL.Hostname()
	if ofAWS(host) && !p.wanted(host) {
		p.log.WarnContext(r.Context(), "a function called AWS itself and was refused: use an SDK that knows AWS_ENDPOINT_URL, and set no other endpoint", "host", host)
		http.Error(w, "samekey local lets no call through to AWS", http.StatusNotImplemented)
		return
	}
	out, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack() // the ignored buffer is empty, because a client sends nothing before the answer to CONNECT
	if err != nil {
		_ = out.Close()
		return
	}
	defer func() { _, _ = in.Close(), out.Close() }()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// When one goroutine ends, both connections are closed, so the other goroutine ends too.
	// The channel has room for both, because at most one value is received.
	over := make(chan struct{}, 2)
	connect := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		over <- struct{}{}
	}
	go connect(out, in)
	go connect(in, out)
	select {
	case <-over:
	case <-p.ended:
	}
}

// proxy.wanted reports whether a value of --env contains this host.
func (p *proxy) wanted(host string) bool {
	for _, value := range p.allow {
		if strings.Contains(value, host) {
			return true
		}
	}
	return false
}

// ofAWS reports whether a host is an endpoint of AWS.
func ofAWS(host string) bool {
	host = "." + strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"}, func(suffix string) bool {
		return strings.HasSuffix(host, suffix)
	})
}
