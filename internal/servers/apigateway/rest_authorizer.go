package apigateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// RESTAuthorizer is a Lambda authorizer of a REST API. Its answers are not cached.
//
// A refused request is answered with
//   - 401 if an identity source is missing or the token is invalid, without a call of the
//     authorizer's function,
//   - 401 if the authorizer's function fails with "Unauthorized",
//   - 403 if the policy doesn't allow the request,
//   - 500 after any other failure or a malformed answer.
type RESTAuthorizer struct {
	Function lambdarun.Invoker
	// Token is true for the type TOKEN, and false for REQUEST. A TOKEN authorizer gets
	// the value of its identity source, but not the rest of the request.
	Token bool
	// IdentitySources are the parts that a request must have: "header.Name",
	// "querystring.name" or "stageVariables.name". An authorizer of the type TOKEN
	// has exactly one source, a header.
	IdentitySources []string
	// Validation, if not nil, decides whether the token of a TOKEN authorizer is valid.
	// The expression must be anchored at both ends, so that it matches whole tokens.
	Validation *regexp.Regexp
}

// RESTAuthorizer.authorize returns what the route's function gets as
// requestContext.authorizer.
func (a *RESTAuthorizer) authorize(r *http.Request, opts *RESTAPIOptions, ev *restEvent) (map[string]any, error) {
	token := ""
	for _, name := range a.IdentitySources {
		value := identitySource(r, name, opts.StageVariables)
		if value == "" {
			return nil, fmt.Errorf("no %s in the request", name)
		}
		if token == "" {
			token = value
		}
	}
	if a.Token && a.Validation != nil && !a.Validation.MatchString(token) {
		return nil, errors.New("the token is not valid")
	}
	arn := executeARN(opts.AccountID, opts.APIID, opts.Stage, r.Method, ev.Path)
	answer, err := askAuthorizer(r.Context(), a.Function, a.event(ev, arn, token))
	if err != nil {
		return nil, err
	}
	if answer.PrincipalID == "" {
		return nil, fmt.Errorf("%w: its answer has no principalId", errAuthorizer)
	}
	if err := answer.allows(arn); err != nil {
		return nil, err
	}
	out := map[string]any{"principalId": answer.PrincipalID, "integrationLatency": 0}
	for name, v := range answer.Context {
		// Numbers and bools become text. Objects and arrays aren't allowed.
		switch v := v.(type) {
		case nil, string:
			out[name] = v
		case bool:
			out[name] = strconv.FormatBool(v)
		case json.Number:
			out[name] = v.String()
		default:
			return nil, fmt.Errorf("%w: %s in its context is neither text, number nor bool", errAuthorizer, name)
		}
	}
	return out, nil
}

func (a *RESTAuthorizer) event(ev *restEvent, arn, token string) any {
	type tokenEvent struct {
		Type      string `json:"type"`
		MethodARN string `json:"methodArn"`
		Token     string `json:"authorizationToken"`
	}
	if a.Token {
		return tokenEvent{Type: "TOKEN", MethodARN: arn, Token: token}
	}
	type requestEvent struct {
		Type              string              `json:"type"`
		MethodARN         string              `json:"methodArn"`
		Resource          string              `json:"resource"`
		Path              string              `json:"path"`
		HTTPMethod        string              `json:"httpMethod"`
		Headers           map[string]string   `json:"headers"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
		Query             map[string]string   `json:"queryStringParameters"`
		MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
		PathParameters    map[string]string   `json:"pathParameters"`
		StageVariables    map[string]string   `json:"stageVariables"`
		RequestContext    restContext         `json:"requestContext"`
	}
	return requestEvent{
		Type: "REQUEST", MethodARN: arn, Resource: ev.Resource, Path: ev.Path, HTTPMethod: ev.HTTPMethod,
		Headers: ev.Headers, MultiValueHeaders: ev.MultiValueHeaders, Query: orEmpty(ev.Query), MultiValueQuery: orEmpty(ev.MultiValueQuery),
		PathParameters: orEmpty(ev.PathParameters), StageVariables: orEmpty(ev.StageVariables), RequestContext: ev.RequestContext,
	}
}

// orEmpty returns m, or an empty map if m is nil. A map that is null in the function's
// event is {} in the authorizer's event.
func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
