package apigateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// authorizerTimeout is how long API Gateway waits for an authorizer.
const authorizerTimeout = 10 * time.Second

// errAuthorizer marks an error that isn't the caller's fault: the authorizer failed, or
// its answer is malformed.
var errAuthorizer = errors.New("the authorizer failed")

// Authorizer decides on requests to an HTTP API: a [RequestAuthorizer] or a
// [LambdaAuthorizer].
type Authorizer interface {
	// authorize returns requestContext.authorizer for the function's event. If
	// authorize returns nil, the event has no such member. The parameter event has no
	// body yet.
	authorize(r *http.Request, api *httpAPI, event *httpEvent) (json.RawMessage, error)
}

// RequestAuthorizer is a Go function that decides on requests. If it returns an error,
// the route's function doesn't run. The answer is 403 if the error matches
// [ErrForbidden], and otherwise 401. If a RequestAuthorizer returns neither an error
// nor an identity, the request goes through without an identity. A RequestAuthorizer
// must not read the body.
type RequestAuthorizer func(*http.Request) (*Identity, error)

func (f RequestAuthorizer) authorize(r *http.Request, _ *httpAPI, _ *httpEvent) (json.RawMessage, error) {
	identity, err := f(r)
	if err != nil || identity == nil {
		return nil, err
	}
	out, err := json.Marshal(identity)
	if err != nil {
		return nil, fmt.Errorf("%w: its identity is not JSON: %w", errAuthorizer, err)
	}
	return out, nil
}

// LambdaAuthorizer decides by calling a Lambda function with payload format 2.0. The
// function's answers are not cached.
//
// A refused request is answered with
//   - 401 if an identity source is missing (the function isn't called), or if the function
//     fails with "Unauthorized",
//   - 403 if the function doesn't allow the request,
//   - 500 after any other failure or a malformed answer.
type LambdaAuthorizer struct {
	Function lambdarun.Invoker
	// IdentitySources are the parts that a request must have: "header.Name",
	// "querystring.name" or "stageVariables.name". If the list is empty, the function
	// decides on every request.
	IdentitySources []string
	// Simple allows the function to answer with isAuthorized instead of an IAM policy.
	Simple bool
}

type authorizerEvent struct {
	Version               string            `json:"version"`
	Type                  string            `json:"type"`
	RouteARN              string            `json:"routeArn"`
	IdentitySource        []string          `json:"identitySource"`
	RouteKey              string            `json:"routeKey"`
	RawPath               string            `json:"rawPath"`
	RawQueryString        string            `json:"rawQueryString"`
	Cookies               []string          `json:"cookies,omitempty"`
	Headers               map[string]string `json:"headers"`
	QueryStringParameters map[string]string `json:"queryStringParameters,omitempty"`
	RequestContext        httpEventContext  `json:"requestContext"`
	PathParameters        map[string]string `json:"pathParameters,omitempty"`
	StageVariables        map[string]string `json:"stageVariables,omitempty"`
}

func (l *LambdaAuthorizer) authorize(r *http.Request, api *httpAPI, ev *httpEvent) (json.RawMessage, error) {
	var sources []string
	for _, name := range l.IdentitySources {
		value := identitySource(r, name, api.opts.StageVariables)
		if value == "" {
			return nil, fmt.Errorf("no %s in the request", name)
		}
		sources = append(sources, value)
	}
	arn := executeARN(ev.RequestContext.AccountID, api.opts.APIID, api.opts.Stage, r.Method, strings.TrimPrefix(ev.RawPath, "/"+api.opts.Stage))
	answer, err := askAuthorizer(r.Context(), l.Function, authorizerEvent{
		Version: "2.0", Type: "REQUEST", RouteARN: arn, IdentitySource: sources,
		RouteKey: ev.RouteKey, RawPath: ev.RawPath, RawQueryString: ev.RawQueryString, Cookies: ev.Cookies,
		Headers: ev.Headers, QueryStringParameters: ev.QueryStringParameters, RequestContext: ev.RequestContext,
		PathParameters: ev.PathParameters, StageVariables: ev.StageVariables,
	})
	if err != nil {
		return nil, err
	}
	switch {
	case answer.Authorized != nil && !l.Simple:
		return nil, fmt.Errorf("%w: it answered with isAuthorized, but EnableSimpleResponses is not set", errAuthorizer)
	case answer.Authorized != nil:
		if !*answer.Authorized {
			return nil, fmt.Errorf("isAuthorized is false: %w", ErrForbidden)
		}
	default:
		if err := answer.allows(arn); err != nil {
			return nil, err
		}
		if answer.PrincipalID != "" {
			if answer.Context == nil {
				answer.Context = make(map[string]any)
			}
			answer.Context["principalId"] = answer.PrincipalID
		}
	}
	out, err := json.Marshal(map[string]any{"lambda": answer.Context})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthorizer, err)
	}
	return out, nil
}

// authorizerAnswer is an authorizer's answer: a policy or a simple answer.
type authorizerAnswer struct {
	PrincipalID string         `json:"principalId"`
	Policy      *policy        `json:"policyDocument"`
	Authorized  *bool          `json:"isAuthorized"`
	Context     map[string]any `json:"context"`
}

// askAuthorizer invokes an authorizer's function. As in Lambda, the function continues if
// the request is cancelled.
func askAuthorizer(ctx context.Context, fn lambdarun.Invoker, event any) (*authorizerAnswer, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthorizer, err)
	}
	ctx, cancel := context.WithTimeout(ctx, authorizerTimeout)
	defer cancel()
	result, err := fn.Invoke(ctx, payload)
	if fe, ok := errors.AsType[*lambdarun.FunctionError](err); ok && fe.Message == "Unauthorized" {
		return nil, errors.New("the authorizer says Unauthorized")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthorizer, err)
	}
	var answer authorizerAnswer
	dec := json.NewDecoder(bytes.NewReader(result))
	dec.UseNumber() // numbers are passed on as they are written
	if err := dec.Decode(&answer); err != nil {
		return nil, fmt.Errorf("%w: its answer: %w", errAuthorizer, err)
	}
	return &answer, nil
}

// authorizerAnswer.allows returns an error unless the answer's policy allows the
// request with this ARN.
func (a *authorizerAnswer) allows(arn string) error {
	if a.Policy == nil {
		return fmt.Errorf("%w: its answer has no policyDocument", errAuthorizer)
	}
	return a.Policy.allows(arn)
}

// identitySource returns the value that a request has for an identity source, or "".
func identitySource(r *http.Request, source string, stageVariables map[string]string) string {
	kind, name, _ := strings.Cut(source, ".")
	switch kind {
	case "header":
		if strings.EqualFold(name, "Host") {
			return r.Host
		}
		return r.Header.Get(name)
	case "querystring":
		return r.URL.Query().Get(name)
	case "stageVariables":
		return stageVariables[name]
	default:
		return ""
	}
}

// executeARN returns the ARN by which policies name a request to an API.
func executeARN(account, api, stage, method, path string) string {
	return "arn:aws:execute-api:" + ids.Region + ":" + account + ":" + api + "/" + stage + "/" + method + path
}
