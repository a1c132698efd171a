package lambda

import (
	"cmp"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// v2Snapshot is the snapshot of a payload in format 2.0.
type v2Snapshot struct {
	RouteKey        string            `json:"routeKey,omitempty"`
	RawPath         string            `json:"rawPath,omitempty"`
	PathParameters  map[string]string `json:"pathParameters,omitempty"`
	StageVariables  map[string]string `json:"stageVariables,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded,omitempty"`
	RequestContext  v2Context         `json:"requestContext,omitzero"`
}

type v2Context struct {
	DomainName     string           `json:"domainName,omitempty"`
	Stage          string           `json:"stage,omitempty"`
	Authorizer     *v2Authorizer    `json:"authorizer,omitempty"`
	Authentication v2Authentication `json:"authentication,omitzero"`
	HTTP           v2Client         `json:"http,omitzero"`
}

// v2Authorizer keeps apart what is empty and what isn't there: the former is
// somebody without a name, the latter nobody.
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

// IsZero is for encoding/json: a struct with a slice can't be compared.
func (c v2Cognito) IsZero() bool { return c.AMR == nil && c.IdentityID == "" && c.IdentityPoolID == "" }

type v2Authentication struct {
	ClientCert certSnapshot `json:"clientCert,omitzero"`
}

type v2Client struct {
	SourceIP string `json:"sourceIp,omitempty"`
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
			DomainName: rc.DomainName, Stage: rc.Stage, HTTP: v2Client{rc.HTTP.SourceIP},
		},
	}
	if a := rc.Authorizer; a != nil {
		s.RequestContext.Authorizer = &v2Authorizer{JWT: a.JWT, Lambda: a.Lambda}
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
	return take(req.Method, s)
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
	ev.Headers = v2Headers(req.Header) // never cookies: no record has them
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	rc.RouteKey = ev.RouteKey
	rc.DomainPrefix = firstLabel(rc.DomainName)
	rc.HTTP.Method, rc.HTTP.Path = req.Method, ev.RawPath
	return ev, nil
}

// firstLabel is what comes before the first dot of a domain name.
func firstLabel(domain string) string {
	label, _, _ := strings.Cut(domain, ".")
	return label
}
