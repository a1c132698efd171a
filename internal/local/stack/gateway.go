package stack

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/apigateway"
)

// gateway serves all APIs of the template on one port.
type gateway struct{ mounts []mount }

// mount is an API and its path. The path is the API's stage, as in AWS. If another API
// already has this path, the path is the API's id.
type mount struct {
	id, path string // path is "" or "/Prod"
	rest     bool
	handler  http.Handler
}

func newGateway(apis []sam.API, functions map[string]*function, log *slog.Logger) (*gateway, error) {
	fr := &gateway{}
	for _, api := range apis {
		m := mount{id: api.ID, rest: api.REST}
		if api.Stage != "$default" {
			m.path = "/" + api.Stage
		}
		if fr.taken(m.path) {
			m.path = "/" + api.ID
		}
		var err error
		if m.handler, err = newAPI(api, functions, log.With("api", api.ID)); err != nil {
			return nil, fmt.Errorf("API %s: %w", api.ID, err)
		}
		fr.mounts = append(fr.mounts, m)
	}
	// A route of an API at the root must not be below another API's path, since the
	// other API would get the route's requests.
	for _, api := range apis {
		if api.Stage != "$default" || fr.at(api.ID) != "" {
			continue
		}
		for _, route := range api.Routes {
			_, path, _ := strings.Cut(route.Key, " ")
			for _, m := range fr.mounts {
				if m.path != "" && (path == m.path || strings.HasPrefix(path, m.path+"/")) {
					return nil, fmt.Errorf("route %q of API %s collides with API %s under %s: give one of them another path", route.Key, api.ID, m.id, m.path)
				}
			}
		}
	}
	return fr, nil
}

func (fr *gateway) taken(path string) bool {
	for _, m := range fr.mounts {
		if m.path == path {
			return true
		}
	}
	return false
}

// gateway.at returns the path of an API.
func (fr *gateway) at(id string) string {
	for _, m := range fr.mounts {
		if m.id == id {
			return m.path
		}
	}
	return ""
}

// gateway.main returns the path of the API in Ready.API: the first HTTP API, or else
// the first API.
func (fr *gateway) main() string {
	for _, m := range fr.mounts {
		if !m.rest {
			return m.path
		}
	}
	if len(fr.mounts) > 0 {
		return fr.mounts[0].path
	}
	return ""
}

func (fr *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var best *mount
	escaped := r.URL.EscapedPath()
	for i := range fr.mounts {
		m := &fr.mounts[i]
		under := m.path == "" || escaped == m.path || strings.HasPrefix(escaped, m.path+"/")
		if under && (best == nil || len(m.path) > len(best.path)) {
			best = m
		}
	}
	if best == nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"Not Found"}`))
		return
	}
	best.handler.ServeHTTP(w, below(r, best.path))
}

// below returns the request r with prefix removed from the beginning of its path.
func below(r *http.Request, prefix string) *http.Request {
	if prefix == "" {
		return r
	}
	escaped := strings.TrimPrefix(r.URL.EscapedPath(), prefix)
	if escaped == "" {
		escaped = "/"
	}
	out := r.Clone(r.Context())
	if path, err := url.PathUnescape(escaped); err == nil {
		out.URL.Path, out.URL.RawPath = path, escaped
	}
	return out
}

func newAPI(api sam.API, functions map[string]*function, log *slog.Logger) (http.Handler, error) {
	seen := make(map[string]bool)
	for _, r := range api.Routes {
		if err := apigateway.CheckRoute(r.Key); err != nil {
			return nil, err
		}
		if seen[r.Key] {
			return nil, fmt.Errorf("route %q appears twice", r.Key)
		}
		seen[r.Key] = true
	}
	if api.REST {
		routes := make(map[string]apigateway.RESTRoute)
		for _, r := range api.Routes {
			route := apigateway.RESTRoute{Function: functions[r.Function], Timeout: r.Timeout}
			if a := r.Authorizer; a != nil {
				route.Authorizer = &apigateway.RESTAuthorizer{
					Function: functions[a.Function], Token: a.Token, IdentitySources: a.Sources, Validation: a.Validation,
				}
			}
			routes[r.Key] = route
		}
		return apigateway.RESTAPI(routes, func(o *apigateway.RESTAPIOptions) {
			o.APIID, o.Stage, o.StageVariables, o.BinaryMediaTypes, o.Logger = api.ID, api.Stage, api.StageVariables, api.BinaryMediaTypes, log
		}), nil
	}
	routes := make(map[string]apigateway.HTTPRoute)
	for _, r := range api.Routes {
		route := apigateway.HTTPRoute{Function: functions[r.Function], Timeout: r.Timeout}
		switch a := r.Authorizer; {
		case a == nil:
		case a.JWT != nil:
			route.Authorizer = apigateway.RequestAuthorizer(jwtAuthorizer(*a.JWT))
		default:
			route.Authorizer = &apigateway.LambdaAuthorizer{Function: functions[a.Function], IdentitySources: a.Sources, Simple: a.Simple}
		}
		routes[r.Key] = route
	}
	return apigateway.HTTPAPIRoutes(routes, func(o *apigateway.HTTPAPIOptions) {
		o.APIID, o.Stage, o.StageVariables, o.Logger = api.ID, api.Stage, api.StageVariables, log
	}), nil
}
