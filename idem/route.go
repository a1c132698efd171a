package idem

import (
	"net/http"
	"net/url"
	"strings"
)

// patternHost returns the host in the pattern of r's route, "" if there is none. Equal
// paths of two hosts are two routes.
func patternHost(r *Request) string {
	if r.Path == "" { // not HTTP
		return ""
	}
	_, path := splitPattern(r.Route)
	host, _, ok := strings.Cut(path, "/")
	if !ok {
		return ""
	}
	return host
}

// splitPattern returns the method of a pattern ("" for any method), and the rest: the path,
// after a host if the pattern has one. Other texts have no path.
func splitPattern(pattern string) (method, path string) {
	path = pattern
	if before, after, ok := strings.Cut(pattern, " "); ok {
		method, path = before, strings.TrimLeft(after, " \t")
	}
	return method, path
}

// sentPath returns the path as the client sent it. Routers cut r.URL.Path
// (http.StripPrefix), and two requests whose remaining paths are equal are two operations.
// For a request that a program has made, sentPath returns the path in r.URL.
func sentPath(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.EscapedPath()
	}
	return r.URL.EscapedPath()
}
