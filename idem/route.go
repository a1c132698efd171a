package idem

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// errWildcards is the reason why a request is refused whose path is neither in its
// fingerprint nor in its scope.
var errWildcards = fmt.Errorf("%w: Fingerprint.SkipPath leaves out the values of the route's wildcards and the path below it, "+
	"so a key that was used for one path would replay its answer for another one", ErrScope)

// checkRoute refuses a request of a route that CheckRoute didn't see. routes says that
// the route is part of the scope.
func checkRoute(f *Fingerprint, r *Request, routes bool) error {
	if _, path := splitPattern(r.Route); r.Path != "" && f.hidesWildcards(path) && (!routes || isWhole(path, r.Path)) {
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

// operationRoute is the route in the scope ([Options.ScopeRoute]): the method and the
// pattern, if the pattern stands for this path as the client sent it. Otherwise it is
// the method and the path, behind the host that the pattern names: without a pattern, with a pattern for everything below a
// path ("/{proxy+}"), and with the pattern of a router that got only a part of the
// path (http.StripPrefix, a base path). A request without a path, which isn't HTTP,
// has the route that its source gives it.
func operationRoute(r *Request) string {
	_, path := splitPattern(r.Route)
	switch {
	case r.Path == "":
		return r.Route
	case isWhole(path, r.Path):
		return r.Method + " " + path
	}
	return r.Method + " " + patternHost(r) + r.Path
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

// isWhole reports whether a pattern's path stands for the whole path of a request,
// and for single operations.
func isWhole(pattern, path string) bool {
	if greedy(pattern) {
		return false
	}
	_, afterHost, _ := strings.Cut(pattern, "/")
	want, got := strings.Split("/"+afterHost, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, segment := range want {
		switch {
		case segment == "{$}": // the end of the path, after a slash
			if got[i] != "" {
				return false
			}
		case !strings.HasPrefix(segment, "{") && unescaped(segment) != unescaped(got[i]):
			return false
		}
	}
	return true
}

func unescaped(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
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
