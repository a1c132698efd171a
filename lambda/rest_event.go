package lambda

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// restSnapshot is the snapshot of a payload in format 1.0.
type restSnapshot struct {
	Resource        string            `json:"resource,omitempty"`
	Path            string            `json:"path,omitempty"`
	PathParameters  map[string]string `json:"pathParameters,omitempty"`
	StageVariables  map[string]string `json:"stageVariables,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded,omitempty"`
	RequestContext  restContext       `json:"requestContext,omitzero"`
}

type restContext struct {
	DomainName    string         `json:"domainName,omitempty"`
	OperationName string         `json:"operationName,omitempty"`
	Path          string         `json:"path,omitempty"`
	Stage         string         `json:"stage,omitempty"`
	Authorizer    map[string]any `json:"authorizer,omitzero"`
	Identity      restCaller     `json:"identity,omitzero"`
}

// restCaller is the event's identity, but for its secrets.
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

func restRequestSnapshot(ev *events.APIGatewayProxyRequest, req *idem.Request) ([]byte, error) {
	rc, id := &ev.RequestContext, &ev.RequestContext.Identity
	s := restSnapshot{
		Resource:        ev.Resource,
		Path:            unlike(ev.Path, req.Path),
		PathParameters:  ev.PathParameters,
		StageVariables:  ev.StageVariables,
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext: restContext{
			DomainName: rc.DomainName, OperationName: rc.OperationName, Stage: rc.Stage, Authorizer: rc.Authorizer,
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
	return take(req.Method, s)
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

// stagePath is a path as API Gateway's own domains have it.
func stagePath(stage, path string) string {
	if stage == "" {
		return path
	}
	return "/" + stage + path
}

// lastOf is m with the last value of each name, as sources have it that give one.
func lastOf[M url.Values | http.Header](m M) map[string]string {
	if len(m) == 0 {
		return nil
	}
	single := make(map[string]string, len(m))
	for name, values := range m {
		if len(values) > 0 {
			single[name] = values[len(values)-1]
		}
	}
	return single
}
