package lambda

import (
	"cmp"
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/scope"
)

const httpAPIKind = "an HTTP API event (payload format 2.0)"

// HTTPAPI adapts events of API Gateway's HTTP APIs in payload format 2.0. Don't change
// HTTPAPI: change a copy, as [Adapter] shows.
//
// HTTP APIs join the values of a header by commas. So if a request has two keys, the
// engine sees one key with a comma, and refuses the request. HTTP APIs decode the path.
// So the engine can't distinguish an escaped slash from a plain slash, nor %2541 from
// %41. Other paths are not affected. The adapter removes a named stage from the path.
//
// The authorizer decides who the caller is:
//
//   - with a JWT authorizer, the token's iss and sub;
//   - with IAM, the Cognito identity, or else the user ARN;
//   - with a Lambda authorizer, principalId or else sub from the authorizer's context,
//     together with the API's id. If principalId or sub is a whole number from 1 to
//     2^53-1, its digits are used.
//
// If a Lambda authorizer names no caller, the request is refused ([idem.ErrScope]),
// unless [idem.Options.Scope] finds the scope. A role's session, except of IAM Identity
// Center, and a client certificate are callers only if you choose a scope for them
// ([RoleScope], [SessionScope], [CertificateScope]).
//
// Events of a function URL have the same form, so the same handler can serve a function
// URL too.
var HTTPAPI = Adapter[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]{
	Request:  httpAPIRequest,
	Event:    httpAPIEvent,
	Response: httpAPIResponse,
	Reply:    httpAPIReply,
}

func httpAPIRequest(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
	rc := &ev.RequestContext
	if rc.HTTP.Method == "" {
		return idem.Request{}, notA(httpAPIKind, "it has no requestContext.http.method")
	}
	path := ev.RawPath // begins with the stage, except on the default stage
	if rest := strings.TrimPrefix(path, "/"+rc.Stage); rc.Stage != "" && (rest == "" || rest[0] == '/') {
		path = rest
	}
	req := idem.Request{
		Method: rc.HTTP.Method,
		Path:   scope.Path(path),
		Query:  ev.RawQueryString,
		Host:   rc.DomainName,
		Header: withCookies(header(ev.Headers, nil), ev.Cookies),
	}
	req.Identity, req.Facts = httpAPIIdentity(rc)
	req.Route = httpAPIRoute(ev.RouteKey, req.Method)
	var err error
	if req.Body, err = decoded(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	if storable(ctx, req.Method) {
		req.Snapshot, err = httpAPISnapshot(&ev, &req)
	}
	return req, err
}

// httpAPIRoute makes a request's route from the route key. If the route key begins with
// ANY, the route begins with the request's method instead, as with a REST API.
func httpAPIRoute(key, method string) string {
	switch {
	case key == "" || key == "$default":
		return anyRoute(method)
	case strings.HasPrefix(key, "ANY "):
		return method + strings.TrimPrefix(key, "ANY")
	}
	return key
}

func httpAPIIdentity(rc *events.APIGatewayV2HTTPRequestContext) (caller idem.Identity, facts idem.Facts) {
	switch a := rc.Authorizer; {
	case a == nil:
	case a.JWT != nil && len(a.JWT.Claims) > 0:
		caller = jwtIdentity(a.JWT.Claims["iss"], a.JWT.Claims["sub"])
		facts.Claims = make(map[string]any, len(a.JWT.Claims))
		for name, value := range a.JWT.Claims {
			facts.Claims[name] = value
		}
	case a.IAM != nil:
		caller, facts = iamIdentity(a.IAM.CognitoIdentity.IdentityPoolID, a.IAM.CognitoIdentity.IdentityID, a.IAM.UserARN)
	case a.JWT != nil && a.Lambda == nil:
		// The route is public. Local emulators add a jwt without claims to public routes,
		// but API Gateway adds a jwt with claims, after it has verified a token.
	default:
		// If a.Lambda is empty, the authorizer allowed the caller, but didn't name the caller.
		caller, facts.Claims = lambdaIdentity(rc.APIID, a.Lambda), a.Lambda
	}
	cert := &rc.Authentication.ClientCert
	facts.Issuer, facts.Certificate = cert.IssuerDN, cert.SubjectDN
	return caller, facts
}

func httpAPIResponse(re events.APIGatewayV2HTTPResponse) (idem.Response, error) {
	return response(re.StatusCode, header(re.Headers, re.MultiValueHeaders), re.Cookies, re.Body, re.IsBase64Encoded)
}

func httpAPIReply(r idem.Response) events.APIGatewayV2HTTPResponse {
	headers := joined(r.Header)
	delete(headers, setCookie) // cookies are in a separate list
	body, isBase64 := textBody(r.Body)
	return events.APIGatewayV2HTTPResponse{
		StatusCode: r.Status, Headers: headers, Cookies: r.Header[setCookie], Body: body, IsBase64Encoded: isBase64,
	}
}

func httpAPISnapshot(ev *events.APIGatewayV2HTTPRequest, req *idem.Request) ([]byte, error) {
	rc := &ev.RequestContext
	s := v2Snapshot{
		RouteKey:        ev.RouteKey,
		RawPath:         unlike(ev.RawPath, req.Path),
		PathParameters:  ev.PathParameters,
		StageVariables:  ev.StageVariables,
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext: v2Context{
			APIID: rc.APIID, DomainName: rc.DomainName, Stage: rc.Stage, HTTP: v2Client{rc.HTTP.SourceIP},
		},
	}
	if a := rc.Authorizer; a != nil {
		s.RequestContext.Authorizer = &v2Authorizer{JWT: a.JWT, Lambda: withoutTokens(a.Lambda)}
		if iam := a.IAM; iam != nil {
			s.RequestContext.Authorizer.IAM = &v2IAM{
				AccountID: iam.AccountID, CallerID: iam.CallerID, CognitoIdentity: v2Cognito(iam.CognitoIdentity),
				PrincipalOrgID: iam.PrincipalOrgID, UserARN: iam.UserARN, UserID: iam.UserID,
			}
		}
	}
	cert := &rc.Authentication.ClientCert
	s.RequestContext.Authentication.ClientCert = certSnapshot{
		cert.IssuerDN, cert.SerialNumber, cert.SubjectDN, validity{cert.Validity.NotAfter, cert.Validity.NotBefore},
	}
	return take(s)
}

func httpAPIEvent(req idem.Request) (ev events.APIGatewayV2HTTPRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	rc := &ev.RequestContext
	ev.Version = "2.0"
	ev.RouteKey = cmp.Or(ev.RouteKey, req.Route)
	ev.RawPath = cmp.Or(ev.RawPath, req.Path)
	ev.RawQueryString = req.Query
	ev.QueryStringParameters = joinedParameters(req.Query)
	ev.Headers = v2Headers(req.Header) // without cookies, which are never stored
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	rc.RouteKey = ev.RouteKey
	rc.DomainPrefix = firstLabel(rc.DomainName)
	rc.HTTP.Method, rc.HTTP.Path = req.Method, ev.RawPath
	return ev, nil
}

type v2Snapshot struct {
	RouteKey        string            `json:"routeKey,omitempty"`
	RawPath         string            `json:"rawPath,omitempty"`
	PathParameters  map[string]string `json:"pathParameters,omitempty"`
	StageVariables  map[string]string `json:"stageVariables,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded,omitempty"`
	RequestContext  v2Context         `json:"requestContext,omitzero"`
}

type v2Context struct {
	APIID          string           `json:"apiId,omitempty"`
	DomainName     string           `json:"domainName,omitempty"`
	Stage          string           `json:"stage,omitempty"`
	Authorizer     *v2Authorizer    `json:"authorizer,omitempty"`
	Authentication v2Authentication `json:"authentication,omitzero"`
	HTTP           v2Client         `json:"http,omitzero"`
}

// v2Authorizer distinguishes an empty member (an authorized caller without a name) from a
// missing member (no authorized caller).
type v2Authorizer struct {
	JWT    *events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription `json:"jwt,omitzero"`
	Lambda map[string]any                                                 `json:"lambda,omitzero"`
	IAM    *v2IAM                                                         `json:"iam,omitzero"`
}

type v2IAM struct {
	AccountID       string    `json:"accountId,omitempty"`
	CallerID        string    `json:"callerId,omitempty"`
	CognitoIdentity v2Cognito `json:"cognitoIdentity,omitzero"`
	PrincipalOrgID  string    `json:"principalOrgId,omitempty"`
	UserARN         string    `json:"userArn,omitempty"`
	UserID          string    `json:"userId,omitempty"`
}

type v2Cognito struct {
	AMR            []string `json:"amr,omitzero"`
	IdentityID     string   `json:"identityId,omitempty"`
	IdentityPoolID string   `json:"identityPoolId,omitempty"`
}

// IsZero tells omitzero of encoding/json whether c is empty. It looks at each field, because Go
// can't compare a struct that contains a slice.
func (c v2Cognito) IsZero() bool { return c.AMR == nil && c.IdentityID == "" && c.IdentityPoolID == "" }

type v2Authentication struct {
	ClientCert certSnapshot `json:"clientCert,omitzero"`
}

type v2Client struct {
	SourceIP string `json:"sourceIp,omitempty"`
}
