package idem

import (
	"net/http"
	"net/url"
	"strings"
)

// patternHost returns the host in the pattern of r's route, "" if there is none.
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

// splitPattern splits a pattern into the method ("" for any method) and the path, with
// the host in front of the path if the pattern has one.
func splitPattern(pattern string) (method, path string) {
	path = pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, path = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	}
	return method, path
}

// sentPath returns the path as the client sent it. sentPath reads r.RequestURI, since
// routers shorten r.URL.Path (http.StripPrefix), and the shortened paths of two
// different operations may be the same. If r has no RequestURI, because a program made
// r, sentPath returns the path in r.URL.
func sentPath(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.EscapedPath()
	}
	return r.URL.EscapedPath()
}
