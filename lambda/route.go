package lambda

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/samekey/samekey/idem"
)

type pathKey struct{}

// PathValue returns the decoded value of a wildcard in the route's pattern, like
// [http.Request.PathValue]. PathValue returns "" if the pattern has no wildcard of this
// name, or if ctx doesn't come from a [Router].
func PathValue(ctx context.Context, name string) string {
	r, ok := ctx.Value(pathKey{}).(*http.Request)
	if !ok {
		return ""
	}
	return r.PathValue(name)
}

func withPath(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, pathKey{}, r)
}

// target is the http.Handler of a route in a ServeMux. The ServeMux only finds the
// route, so target doesn't run the route's handler.
type target struct{ route any }

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m, ok := w.(*matched); ok {
		m.target, m.request = t, r
	}
}

type matched struct {
	target  *target       // nil: no route
	request *http.Request // with path values
	header  http.Header
	status  int // status of the answer if there is no target
}

func (m *matched) Header() http.Header { return m.header }

func (m *matched) Write(b []byte) (int, error) { return len(b), nil }

func (m *matched) WriteHeader(status int) { m.status = status }

func match(mux *http.ServeMux, req *idem.Request) *matched {
	m := &matched{header: make(http.Header)}
	u := &url.URL{Path: req.Path, RawPath: req.Path}
	if path, err := url.PathUnescape(req.Path); err == nil {
		u.Path = path
	}
	mux.ServeHTTP(m, &http.Request{Method: req.Method, URL: u, Host: hostOf(req), Header: req.Header})
	return m
}

// matched.refusal returns the answer to a request without a route. ServeMux would
// redirect a request if its path lacks the last slash, or has "//" or "..". Router
// refuses such a request instead, because a client may repeat a redirected POST without
// the body.
func (m *matched) refusal() idem.Response {
	if m.status != http.StatusMethodNotAllowed {
		return idem.ProblemJSON(idem.Problem{
			Status: http.StatusNotFound, Code: "route_not_found", Title: "There is nothing at this path",
			Detail: "No route of this service has this path. Correct the path.",
		})
	}
	resp := idem.ProblemJSON(idem.Problem{
		Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Title: "The method is not allowed here",
		Detail: "Use one of the methods in the Allow header.",
	})
	resp.Header = resp.Header.Clone()
	resp.Header["Allow"] = m.header["Allow"]
	return resp
}

type pattern struct {
	method string // "": any
	host   string // "": any
	path   string
	mux    *http.ServeMux // contains only the pattern's path
}

func parsePattern(text string) pattern {
	p := pattern{path: text, mux: http.NewServeMux()}
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		p.method, p.path = text[:i], strings.TrimLeft(text[i:], " \t")
	}
	if i := strings.Index(p.path, "/"); i > 0 {
		p.host, p.path = p.path[:i], p.path[i:]
	}
	p.mux.Handle(p.path, &target{})
	return p
}

// pattern.route returns the pattern in the form of a gateway's route, which begins with
// a method. If the pattern has no method, the route has the request's method.
func (p *pattern) route(method string) string {
	if p.method != "" {
		method = p.method
	}
	return method + " " + p.host + p.path
}

// pattern.values adds the path values of a stored request to ctx. It matches the
// request's path with the path of pattern p only. Method and host don't count, nor do
// other routes, because host and routes may have changed since the request was stored.
func (p *pattern) values(ctx context.Context, req *idem.Request) (context.Context, error) {
	m := match(p.mux, req)
	switch {
	case m.target != nil:
		return withPath(ctx, m.request), nil
	case strings.Contains(p.path, "{"):
		return nil, fmt.Errorf("lambda: the stored request's path doesn't match the route's pattern %q any more", p.path)
	}
	return ctx, nil
}
