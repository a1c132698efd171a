package apigateway

import (
	"fmt"
	"slices"
	"strings"
)

const defaultRouteKey = "$default"

// route is a row of a [routeTable].
type route struct {
	key      string   // as written: "GET /rides/{id}"
	method   string   // "ANY" for every method
	segments []string // segments of the path, without the leading slash
}

// CheckRoute returns an error if a route key is not valid. "GET /rides/{id}" and
// "$default" are valid.
func CheckRoute(key string) error {
	if key == defaultRouteKey {
		return nil
	}
	_, err := parseRoute(key)
	return err
}

// parseRoute reads a route key other than $default.
func parseRoute(key string) (route, error) {
	method, path, ok := strings.Cut(key, " ")
	if !ok || method == "" || method != strings.ToUpper(method) || !strings.HasPrefix(path, "/") {
		return route{}, fmt.Errorf("route %q is neither \"METHOD /path\" nor %q", key, defaultRouteKey)
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		name, isParam := parameter(s)
		if strings.ContainsAny(s, "{}") && (!isParam || name == "" || strings.ContainsAny(name, "{}")) {
			return route{}, fmt.Errorf("route %q: bad parameter %q", key, s)
		}
		if isGreedy(s) && i != len(segments)-1 {
			return route{}, fmt.Errorf("route %q: %q is not at the end", key, s)
		}
	}
	return route{key: key, method: method, segments: segments}, nil
}

// parameter returns the name in "{name}" or "{name+}".
func parameter(segment string) (name string, ok bool) {
	name, ok = strings.CutPrefix(segment, "{")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "}")
	return strings.TrimSuffix(name, "+"), ok
}

func isGreedy(segment string) bool { return strings.HasSuffix(segment, "+}") }

// route.match reports whether the route takes the request, and returns the path
// parameters. path holds the segments of the request's path. A parameter's value is
// never empty, so /rides/{id} doesn't match /rides/.
func (r route) match(method string, path []string) (params map[string]string, ok bool) {
	if r.method != "ANY" && r.method != method {
		return nil, false
	}
	for i, s := range r.segments {
		name, isParam := parameter(s)
		switch {
		case i >= len(path):
			return nil, false
		case !isParam && s != path[i]:
			return nil, false
		case !isParam:
			continue
		}
		value := path[i]
		if isGreedy(s) {
			value = strings.Join(path[i:], "/")
			path = path[:i+1]
		}
		if value == "" {
			return nil, false
		}
		if params == nil {
			params = make(map[string]string)
		}
		params[name] = value
	}
	return params, len(path) == len(r.segments)
}

// route.compare orders routes so that the most specific route comes first. In each
// segment, a literal comes before a parameter, and a parameter before a greedy
// parameter. If the segments don't decide, a method comes before ANY.
func (r route) compare(other route) int {
	rank := func(s string) int {
		switch _, isParam := parameter(s); {
		case isGreedy(s):
			return 2
		case isParam:
			return 1
		default:
			return 0
		}
	}
	for i := range min(len(r.segments), len(other.segments)) {
		if d := rank(r.segments[i]) - rank(other.segments[i]); d != 0 {
			return d
		}
	}
	switch {
	case r.method == other.method:
		return 0
	case r.method == "ANY":
		return 1
	case other.method == "ANY":
		return -1
	default:
		return 0
	}
}

// routeTable finds the route of a request.
type routeTable struct {
	routes   []route // most specific first
	fallback bool    // $default
}

// newRouteTable makes the table of the given route keys, which must be distinct.
func newRouteTable(keys []string) (routeTable, error) {
	var t routeTable
	for _, key := range keys {
		if key == defaultRouteKey {
			t.fallback = true
			continue
		}
		r, err := parseRoute(key)
		if err != nil {
			return routeTable{}, err
		}
		t.routes = append(t.routes, r)
	}
	slices.SortStableFunc(t.routes, route.compare)
	return t, nil
}

// routeTable.find returns the key and the path parameters of the route that takes the
// request. path must be decoded.
func (t routeTable) find(method, path string) (key string, params map[string]string, ok bool) {
	return t.findSegments(method, strings.Split(strings.TrimPrefix(path, "/"), "/"))
}

// findSegments does the same as find, for a path that is already split at its slashes.
func (t routeTable) findSegments(method string, segments []string) (key string, params map[string]string, ok bool) {
	for _, r := range t.routes {
		if params, ok := r.match(method, segments); ok {
			return r.key, params, true
		}
	}
	return defaultRouteKey, nil, t.fallback
}
