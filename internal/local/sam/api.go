package sam

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// API is an HTTP API or a REST API, with its routes to all functions.
type API struct {
	ID    string // logical id
	REST  bool
	Stage string // "$default" if an HTTP API names no stage, "Prod" if a REST API names none
	// StageVariables are passed to the functions.
	StageVariables map[string]string
	// BinaryMediaTypes are the binary media types of a REST API.
	BinaryMediaTypes []string
	Routes           []Route
	// Notes say which properties of the template have no effect here.
	Notes []string
}

// Route is a route of an API.
type Route struct {
	Key        string // see [RouteEvent]
	Function   string // logical id
	Timeout    time.Duration
	Authorizer *Authorizer // nil: every request is allowed
}

// Authorizer is the function or the JWT configuration that decides who may call a route.
type Authorizer struct {
	Name     string
	Function string // logical id; "" for JWT
	JWT      *JWT
	// Token is true for a REST API's authorizer of type TOKEN, and false for REQUEST.
	Token bool
	// Simple is true if an HTTP API's authorizer may answer with isAuthorized instead of
	// a policy.
	Simple bool
	// Sources are the identity sources that every request must have: "header.Name",
	// "querystring.name" or "stageVariables.name".
	Sources []string
	// Validation, if not nil, must match the whole token.
	Validation *regexp.Regexp
}

// JWT is the configuration of a JWT authorizer.
type JWT struct {
	Issuer    string
	Audience  []string
	Scopes    []string // if not empty, the token must have one of these scopes
	HeaderKey string   // the header with the token
}

// APIs returns the APIs that have routes. For each template it returns the declared
// APIs, in the template's order, and then the APIs that SAM makes.
func (t *Template) APIs(functions []Function) ([]API, error) {
	var out []API
	var errs []error
	for in := range t.all() {
		apis, err := in.ownAPIs(functions)
		out = append(out, apis...)
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (t *Template) ownAPIs(functions []Function) ([]API, error) {
	var out []API
	var errs []error
	for _, r := range t.resources {
		if r.kind == typeHTTPAPI || r.kind == typeRESTAPI {
			api, err := t.readAPI(r, functions)
			if len(api.Routes) > 0 || err != nil {
				out = append(out, api)
			}
			errs = append(errs, err)
		}
	}
	for _, implicit := range []resource{{id: implicitHTTP, kind: typeHTTPAPI}, {id: implicitREST, kind: typeRESTAPI}} {
		if _, declared := t.resource(implicit.id); declared {
			continue
		}
		implicit.properties = child(child(t.root, "Globals"), strings.TrimPrefix(implicit.kind, "AWS::Serverless::"))
		api, err := t.readAPI(implicit, functions)
		if len(api.Routes) > 0 {
			out = append(out, api)
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (t *Template) readAPI(r resource, functions []Function) (API, error) {
	p := t.props(r)
	api := API{ID: t.full(r.id), REST: r.kind == typeRESTAPI, Stage: p.str("StageName"), BinaryMediaTypes: p.strs("BinaryMediaTypes")}
	for i, mediaType := range api.BinaryMediaTypes {
		api.BinaryMediaTypes[i] = strings.ReplaceAll(mediaType, "~1", "/")
	}
	switch {
	case api.Stage != "":
	case api.REST:
		api.Stage = "Prod"
	default:
		api.Stage = "$default"
	}
	api.StageVariables = p.texts(map[bool]string{true: "Variables", false: "StageVariables"}[api.REST])
	for _, name := range []string{"CorsConfiguration", "Cors", "DefinitionBody", "DefinitionUri", "Domain", "Models", "GatewayResponses"} {
		if child(p.node, name) != nil {
			api.Notes = append(api.Notes, name+" has no effect here")
		}
	}
	auth := p.mapping("Auth")
	byDefault := auth.str("DefaultAuthorizer")
	for _, f := range functions {
		for _, e := range f.Events {
			if e.Route == nil || e.Route.API != api.ID {
				continue
			}
			route := Route{Key: e.Route.Key, Function: f.ID, Timeout: e.Route.Timeout}
			name := e.Route.authorizer
			if name == "" {
				name = byDefault
			}
			if name != "" && name != "NONE" {
				route.Authorizer = t.authorizer(auth, e.Route.where, name, api.REST)
				if a := route.Authorizer; a != nil && a.JWT != nil && len(e.Route.scopes) > 0 {
					a.JWT.Scopes = e.Route.scopes
				}
			}
			api.Routes = append(api.Routes, route)
		}
	}
	return api, p.err()
}

// Template.authorizer reads the authorizer with this name. The parameter auth is the
// API's property Auth; the parameter where names the route in errors.
func (t *Template) authorizer(auth *props, where, name string, rest bool) *Authorizer {
	p := auth.mapping("Authorizers").mapping(name)
	if p.node == nil {
		auth.fail("", fmt.Errorf("%s needs authorizer %s, which is not among the Authorizers; samekey local runs no others", where, name))
		return nil
	}
	a := &Authorizer{Name: name}
	if jwt := p.mapping("JwtConfiguration"); jwt.node != nil && !rest {
		a.JWT = &JWT{Issuer: jwt.str("issuer"), Audience: jwt.strs("audience"), Scopes: p.strs("AuthorizationScopes"), HeaderKey: "Authorization"}
		if source := p.str("IdentitySource"); source != "" {
			header, ok := strings.CutPrefix(source, "$request.header.")
			if !ok {
				p.fail("IdentitySource", fmt.Errorf("%s: only a header is read here", source))
			}
			a.JWT.HeaderKey = header
		}
		return a
	}
	arn := p.str("FunctionArn")
	if arn == "" {
		p.fail("", errors.New("only Lambda and JWT authorizers are run here"))
		return nil
	}
	id := t.target(arn)
	if id == "" {
		p.fail("FunctionArn", fmt.Errorf("%s is no function of this template", arn))
	}
	a.Function = id
	identity := p.mapping("Identity")
	if rest {
		t.restAuthorizer(a, p, identity)
		return a
	}
	if v := p.str("AuthorizerPayloadFormatVersion"); v != "2.0" {
		p.fail("AuthorizerPayloadFormatVersion", fmt.Errorf("%q: samekey local supports only format 2.0 for an HTTP API's authorizer", v))
	}
	a.Simple = p.boolean("EnableSimpleResponses")
	a.Sources = sources(identity)
	return a
}

func (t *Template) restAuthorizer(a *Authorizer, p, identity *props) {
	a.Token = !strings.EqualFold(p.str("FunctionPayloadType"), "REQUEST")
	if !a.Token {
		a.Sources = sources(identity)
		return
	}
	header := identity.str("Header")
	if header == "" {
		header = "Authorization"
	}
	a.Sources = []string{"header." + header}
	if expr := identity.str("ValidationExpression"); expr != "" {
		re, err := regexp.Compile(`^(?:` + expr + `)$`)
		if err != nil {
			identity.fail("ValidationExpression", err)
		}
		a.Validation = re
	}
}

func sources(identity *props) []string {
	var out []string
	if identity.has("Context") {
		identity.fail("Context", errors.New("no identity source here"))
	}
	for _, source := range [][2]string{
		{"Headers", "header"}, {"QueryStrings", "querystring"}, {"StageVariables", "stageVariables"},
	} {
		for _, name := range identity.strs(source[0]) {
			out = append(out, source[1]+"."+name)
		}
	}
	return out
}
