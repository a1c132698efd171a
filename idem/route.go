package idem

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// errWildcards is the reason why a request is refused whose path is not in its
// fingerprint.
var errWildcards = fmt.Errorf("%w: Fingerprint.SkipPath leaves out the values of the route's wildcards and the path below it, "+
	"so a key that was used for one path would replay its answer for another one", ErrScope)

// checkRoute refuses a request of a route that CheckRoute didn't see.
func checkRoute(f *Fingerprint, r *Request) error {
	if _, path := splitPattern(r.Route); r.Path != "" && f.hidesWildcards(path) {
		return errWildcards
	}
	return nil
}

// hidesWildcards reports whether neither the fingerprint nor a pattern with this path
// tells requests apart that differ in the values of the wildcards, or in what is below
// the path.
func (f *Fingerprint) hidesWildcards(path string) bool {
	return f.SkipPath && f.Func == nil && (greedy(path) || strings.Contains(strings.TrimSuffix(path, "{$}"), "{"))
}

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

// greedy reports whether a pattern stands for more than one operation, or for none:
// everything below a path, in the words of [http.ServeMux], API Gateway ("{proxy+}",
// "$default") and other routers ("*").
func greedy(path string) bool {
	return !strings.Contains(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "+}") ||
		strings.Contains(path, "...}") || strings.Contains(path, "*")
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
