package idem

import (
	"net/http"
	"net/url"
	"strings"
)

// patternHost returns the host in the pattern of r's route, "" if there is none. The same
// path on two hosts means two routes.
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

// splitPattern returns the method of a pattern ("" for any method), and the rest: an
// optional host, and the path.
func splitPattern(pattern string) (method, path string) {
	path = pattern
	if before, after, ok := strings.Cut(pattern, " "); ok {
		method, path = before, strings.TrimLeft(after, " \t")
	}
	return method, path
}

// sentPath returns the path as the client sent it. Routers shorten r.URL.Path
// (http.StripPrefix), so two different operations may have the same r.URL.Path. If r has no
// RequestURI, because a program made it, sentPath returns the path in r.URL.
func sentPath(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.EscapedPath()
	}
	return r.URL.EscapedPath()
}
