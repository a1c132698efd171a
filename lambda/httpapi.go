package lambda

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const httpAPIKind = "an HTTP API event (payload format 2.0)"

// HTTPAPI adapts events of API Gateway's HTTP APIs in payload format 2.0. It
// must not be changed; see [Adapter] for how to vary it.
//
// HTTP APIs join the values of a header by commas, so two keys reach the engine
// as one with a comma, which it refuses. They decode the path, so that
// an escaped slash can't be told from a plain one, nor %2541 from %41; other
// escapes don't matter. A named stage is cut off the path.
//
// Who is calling is the JWT authorizer's iss and sub; the IAM authorizer's
// Cognito identity or else user ARN; or the Lambda authorizer's context, where
// it has a principalId or else a sub. A Lambda authorizer that names nobody
// gets the request refused ([idem.ErrScope]), unless [idem.Options.Scope]
// knows better.
//
// Events of a function URL have the same form, so one handler can serve both.
var HTTPAPI = Adapter[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]{
	Request:  httpAPIRequest,
	Event:    httpAPIEvent,
	Response: httpAPIResponse,
	Reply:    httpAPIReply,
}

func httpAPIRequest(_ context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
	rc := &ev.RequestContext
	if rc.HTTP.Method == "" {
		return idem.Request{}, notA(httpAPIKind, "it has no requestContext.http.method")
	}
	req := idem.Request{
		Method:   rc.HTTP.Method,
		Path:     canonicalPath(withoutStage(ev.RawPath, rc.Stage)),
		Query:    ev.RawQueryString,
		Host:     rc.DomainName,
		Header:   withCookies(header(ev.Headers, nil), ev.Cookies),
		Identity: httpAPIIdentity(rc.Authorizer),
	}
	req.Route = httpAPIRoute(ev.RouteKey, req)
	var err error
	if req.Body, err = requestBody(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	req.Snapshot, err = httpAPISnapshot(&ev, &req)
	return req, err
}

// withoutStage cuts a stage off the front of a path. The default stage has no
// name in it.
func withoutStage(path, stage string) string {
	if rest, ok := strings.CutPrefix(path, "/"+stage); ok && stage != "" && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// httpAPIRoute is the route key as a REST API would have it: with the method of
// the request.
func httpAPIRoute(key string, req idem.Request) string {
	switch {
	case key == "" || key == "$default":
		return req.Method + " " + req.Path
	case strings.HasPrefix(key, "ANY "):
		return req.Method + strings.TrimPrefix(key, "ANY")
	}
	return key
}

// httpAPIIdentity finds who was authorized.
func httpAPIIdentity(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) idem.Identity {
	switch {
	case a == nil:
		return idem.Identity{}
	case a.JWT != nil && len(a.JWT.Claims) > 0:
		return jwtIdentity(a.JWT.Claims["iss"], a.JWT.Claims["sub"])
	case a.IAM != nil:
		return iamIdentity(a.IAM.CognitoIdentity.IdentityPoolID, a.IAM.CognitoIdentity.IdentityID, a.IAM.UserARN)
	case a.JWT != nil && a.Lambda == nil:
		// Local emulators add an empty jwt to public routes. API Gateway never
		// leaves out the claims of a token it has verified.
		return idem.Identity{}
	default:
		// Also without a context: somebody was authorized, and not named.
		return lambdaIdentity(a.Lambda)
	}
}

func httpAPIResponse(re events.APIGatewayV2HTTPResponse) (idem.Response, error) {
	h := header(re.Headers, re.MultiValueHeaders)
	return response(re.StatusCode, withSetCookies(h, re.Cookies), re.Body, re.IsBase64Encoded)
}

func httpAPIReply(r idem.Response) events.APIGatewayV2HTTPResponse {
	h, cookies := withoutSetCookies(r.Header)
	body, isBase64 := textBody(r.Body)
	return events.APIGatewayV2HTTPResponse{
		StatusCode: r.Status, Headers: joined(h), Cookies: cookies, Body: body, IsBase64Encoded: isBase64,
	}
}
