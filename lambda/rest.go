package lambda

import (
	"cmp"
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/scope"
)

const restKind = "a REST API event (payload format 1.0)"

// REST adapts events of API Gateway's REST APIs with Lambda proxy integration (payload
// format 1.0). Don't change REST: change a copy, as [Adapter] shows.
//
// A request's path doesn't include the stage. On a custom domain the path includes the
// base path that the client sent. API Gateway decodes the query and loses the
// order of its names, so REST encodes the query again, sorted by name.
//
// The authorizer decides who the caller is:
//
//   - with a Cognito authorizer, the claims iss and sub, as with an HTTP API's JWT
//     authorizer;
//   - with a Lambda authorizer, the API and the principalId;
//   - with IAM, the Cognito identity, or else the user ARN.
//
// If an authorizer returns the principalId "user" for all callers, all callers share
// one scope. By default, a role's session (except of IAM Identity Center), an API key
// and a client certificate aren't callers. To make them callers, set
// [idem.Options.Scope]: to [RoleScope] or [SessionScope] for sessions, to [APIKeyScope]
// for API keys, to [CertificateScope] for certificates.
//
// A handler's response may use both Headers and MultiValueHeaders. If a name is in
// both, the values in MultiValueHeaders are used, as in API Gateway. The reply to API
// Gateway has each header only once: in Headers if the header has one value, in
// MultiValueHeaders if it has several.
var REST = Adapter[events.APIGatewayProxyRequest, events.APIGatewayProxyResponse]{
	Request:  restRequest,
	Event:    restEvent,
	Response: restResponse,
	Reply:    restReply,
}

func restRequest(ctx context.Context, ev events.APIGatewayProxyRequest) (idem.Request, error) {
	switch {
	case ev.HTTPMethod == "":
		return idem.Request{}, notA(restKind, "it has no httpMethod")
	case ev.Resource == "": // as in a load balancer's event
		return idem.Request{}, notA(restKind, "it has no resource")
	}
	req := idem.Request{
		Method: ev.HTTPMethod,
		Path:   scope.Path(ev.Path),
		Query:  encodedQuery(ev.QueryStringParameters, ev.MultiValueQueryStringParameters),
		Host:   ev.RequestContext.DomainName,
		Header: header(ev.Headers, ev.MultiValueHeaders),
		Route:  ev.HTTPMethod + " " + ev.Resource,
	}
	req.Identity, req.Facts = restIdentity(&ev.RequestContext)
	var err error
	if req.Body, err = decoded(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	if storable(ctx, req.Method) {
		req.Snapshot, err = restRequestSnapshot(&ev, &req)
	}
	return req, err
}

// If a Lambda authorizer ran, its context has at least the principalId, because API
// Gateway refuses an authorizer's answer without one. On public routes no authorizer
// ran, but the event may have an empty context, or a context of null members.
func restIdentity(rc *events.APIGatewayProxyRequestContext) (caller idem.Identity, facts idem.Facts) {
	id := &rc.Identity
	claims, _ := rc.Authorizer["claims"].(map[string]any)
	switch {
	case len(claims) > 0:
		iss, _ := claims["iss"].(string)
		caller, facts.Claims = jwtIdentity(iss, claimText(claims["sub"])), claims
	case named(rc.Authorizer):
		caller, facts.Claims = lambdaIdentity(rc.APIID, rc.Authorizer), rc.Authorizer
	case id.CognitoIdentityID != "" || id.UserArn != "":
		caller, facts = iamIdentity(id.CognitoIdentityPoolID, id.CognitoIdentityID, id.UserArn)
	}
	facts.APIKey = id.APIKeyID
	if cert := id.ClientCert; cert != nil {
		facts.Issuer, facts.Certificate = cert.IssuerDN, cert.SubjectDN
	}
	return caller, facts
}

// named reports whether an authorizer's context has a value other than null.
func named(authorizer map[string]any) bool {
	for _, v := range authorizer {
		if v != nil {
			return true
		}
	}
	return false
}

func restResponse(re events.APIGatewayProxyResponse) (idem.Response, error) {
	return response(re.StatusCode, header(re.Headers, re.MultiValueHeaders), nil, re.Body, re.IsBase64Encoded)
}

func restReply(r idem.Response) events.APIGatewayProxyResponse {
	re := events.APIGatewayProxyResponse{
		StatusCode: r.Status, Headers: make(map[string]string, len(r.Header)), MultiValueHeaders: make(map[string][]string),
	}
	for name, values := range r.Header {
		switch len(values) {
		case 0:
		case 1:
			re.Headers[name] = values[0]
		default:
			re.MultiValueHeaders[name] = values
		}
	}
	re.Body, re.IsBase64Encoded = textBody(r.Body)
	return re
}

func restRequestSnapshot(ev *events.APIGatewayProxyRequest, req *idem.Request) ([]byte, error) {
	rc, id := &ev.RequestContext, &ev.RequestContext.Identity
	s := restSnapshot{
		Resource:        ev.Resource,
		Path:            unlike(ev.Path, req.Path),
		PathParameters:  ev.PathParameters,
		StageVariables:  ev.StageVariables,
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext: restContext{
			APIID: rc.APIID, DomainName: rc.DomainName, OperationName: rc.OperationName, Stage: rc.Stage, Authorizer: restAuthorizer(rc.Authorizer),
			Path: unlike(rc.Path, stagePath(rc.Stage, ev.Path)),
			Identity: restCaller{
				AccountID: id.AccountID, APIKeyID: id.APIKeyID, Caller: id.Caller,
				CognitoAuthenticationProvider: id.CognitoAuthenticationProvider,
				CognitoAuthenticationType:     id.CognitoAuthenticationType,
				CognitoIdentityID:             id.CognitoIdentityID, CognitoIdentityPoolID: id.CognitoIdentityPoolID,
				SourceIP: id.SourceIP, User: id.User, UserARN: id.UserArn,
			},
		},
	}
	if id.ClientCert != nil {
		cert := id.ClientCert
		s.RequestContext.Identity.ClientCert = &certSnapshot{
			cert.IssuerDN, cert.SerialNumber, cert.SubjectDN, validity{cert.Validity.NotAfter, cert.Validity.NotBefore},
		}
	}
	return take(s)
}

// restAuthorizer returns the part of an authorizer's result that may be stored. Claims
// may be stored: they come from a token, but don't contain it.
func restAuthorizer(authorizer map[string]any) map[string]any {
	if claims, ok := authorizer["claims"].(map[string]any); ok && len(claims) > 0 {
		return authorizer
	}
	return withoutTokens(authorizer)
}

func restEvent(req idem.Request) (ev events.APIGatewayProxyRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	rc := &ev.RequestContext
	ev.HTTPMethod, rc.HTTPMethod = req.Method, req.Method
	ev.Resource = cmp.Or(ev.Resource, strings.TrimPrefix(req.Route, req.Method+" "))
	rc.ResourcePath = ev.Resource
	ev.Path = cmp.Or(ev.Path, req.Path)
	rc.Path = cmp.Or(rc.Path, stagePath(rc.Stage, ev.Path))
	rc.DomainPrefix = firstLabel(rc.DomainName)
	query := decodedQuery(req.Query)
	ev.QueryStringParameters, ev.MultiValueQueryStringParameters = lastOf(query), query
	ev.Headers, ev.MultiValueHeaders = lastOf(req.Header), req.Header.Clone()
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	return ev, nil
}

// stagePath returns the path with the stage, as on API Gateway's own domains.
func stagePath(stage, path string) string {
	if stage == "" {
		return path
	}
	return "/" + stage + path
}

type restSnapshot struct {
	Resource        string            `json:"resource,omitempty"`
	Path            string            `json:"path,omitempty"`
	PathParameters  map[string]string `json:"pathParameters,omitempty"`
	StageVariables  map[string]string `json:"stageVariables,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded,omitempty"`
	RequestContext  restContext       `json:"requestContext,omitzero"`
}

type restContext struct {
	APIID         string         `json:"apiId,omitempty"`
	DomainName    string         `json:"domainName,omitempty"`
	OperationName string         `json:"operationName,omitempty"`
	Path          string         `json:"path,omitempty"`
	Stage         string         `json:"stage,omitempty"`
	Authorizer    map[string]any `json:"authorizer,omitzero"`
	Identity      restCaller     `json:"identity,omitzero"`
}

// restCaller is the event's identity without the API key and the access key.
type restCaller struct {
	AccountID                     string        `json:"accountId,omitempty"`
	APIKeyID                      string        `json:"apiKeyId,omitempty"`
	Caller                        string        `json:"caller,omitempty"`
	CognitoAuthenticationProvider string        `json:"cognitoAuthenticationProvider,omitempty"`
	CognitoAuthenticationType     string        `json:"cognitoAuthenticationType,omitempty"`
	CognitoIdentityID             string        `json:"cognitoIdentityId,omitempty"`
	CognitoIdentityPoolID         string        `json:"cognitoIdentityPoolId,omitempty"`
	SourceIP                      string        `json:"sourceIp,omitempty"`
	User                          string        `json:"user,omitempty"`
	UserARN                       string        `json:"userArn,omitempty"`
	ClientCert                    *certSnapshot `json:"clientCert,omitempty"`
}
