package idem

import (
	"net/http"
	"net/url"
	"strings"
)

// patternHost returns the host that the pattern of r's route names, "" if it names none.
// Equal paths of two hosts are two routes.
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

// splitPattern returns the method of a pattern, "" for any, and the rest: a host, if
// the pattern has one, and the path. Other texts have no path.
func splitPattern(pattern string) (method, path string) {
	path = pattern
	if before, after, ok := strings.Cut(pattern, " "); ok {
		method, path = before, strings.TrimLeft(after, " \t")
	}
	return method, path
}

// sentPath returns the path as the client sent it. Routers cut r.URL.Path
// (http.StripPrefix), and two requests whose remaining paths are equal are two
// operations. r.URL counts in a request that a program has made.
func sentPath(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.EscapedPath()
	}
	return r.URL.EscapedPath()
}
