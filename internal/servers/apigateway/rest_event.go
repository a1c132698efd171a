package apigateway

import (
	"encoding/base64"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
)

// restEvent is the event of a REST API. It replaces aws-lambda-go's type, which omits fields
// that API Gateway sends as null or false.
type restEvent struct {
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
	Body              *string             `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

type restContext struct {
	ResourceID        string         `json:"resourceId"`
	Authorizer        map[string]any `json:"authorizer,omitempty"`
	ResourcePath      string         `json:"resourcePath"`
	HTTPMethod        string         `json:"httpMethod"`
	ExtendedRequestID string         `json:"extendedRequestId"`
	RequestTime       string         `json:"requestTime"`
	Path              string         `json:"path"`
	AccountID         string         `json:"accountId"`
	Protocol          string         `json:"protocol"`
	Stage             string         `json:"stage"`
	DomainPrefix      string         `json:"domainPrefix"`
	RequestTimeEpoch  int64          `json:"requestTimeEpoch"`
	RequestID         string         `json:"requestId"`
	Identity          restIdentity   `json:"identity"`
	DomainName        string         `json:"domainName"`
	DeploymentID      string         `json:"deploymentId"`
	APIID             string         `json:"apiId"`
}

// restIdentity has values only for the client's address and user agent. The other
// fields are null, because IAM callers are not emulated.
type restIdentity struct {
	CognitoIdentityPoolID         *string `json:"cognitoIdentityPoolId"`
	AccountID                     *string `json:"accountId"`
	CognitoIdentityID             *string `json:"cognitoIdentityId"`
	Caller                        *string `json:"caller"`
	SourceIP                      string  `json:"sourceIp"`
	PrincipalOrgID                *string `json:"principalOrgId"`
	AccessKey                     *string `json:"accessKey"`
	CognitoAuthenticationType     *string `json:"cognitoAuthenticationType"`
	CognitoAuthenticationProvider *string `json:"cognitoAuthenticationProvider"`
	UserARN                       *string `json:"userArn"`
	UserAgent                     *string `json:"userAgent"`
	User                          *string `json:"user"`
}

// restAPI.event makes the event of a request, without the body.
func (a *restAPI) event(r *http.Request, key string, params map[string]string, requestID, extendedID string) *restEvent {
	_, resource, _ := strings.Cut(key, " ")
	now := a.now().UTC()
	sourceIP := hostname(r.RemoteAddr)
	domain := a.opts.DomainName
	if domain == "" {
		domain = hostname(r.Host)
	}
	prefix, _, _ := strings.Cut(domain, ".")
	path := r.URL.EscapedPath()

	ev := &restEvent{
		Resource: resource, Path: path, HTTPMethod: r.Method,
		PathParameters: params, StageVariables: a.opts.StageVariables,
		RequestContext: restContext{
			ResourceID: shortID(resource), ResourcePath: resource, HTTPMethod: r.Method,
			ExtendedRequestID: extendedID, RequestID: requestID,
			RequestTime: now.Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: now.UnixMilli(),
			Path: "/" + a.opts.Stage + path, Stage: a.opts.Stage, AccountID: a.opts.AccountID, Protocol: r.Proto,
			DomainName: domain, DomainPrefix: prefix, DeploymentID: "local", APIID: a.opts.APIID,
			Identity: restIdentity{SourceIP: sourceIP},
		},
	}
	if agent := r.Header.Values("User-Agent"); len(agent) > 0 {
		ev.RequestContext.Identity.UserAgent = &agent[0]
	}
	a.setHeaders(ev, r, sourceIP)
	for name, value := range queryPairs(r.URL.RawQuery) {
		if ev.Query == nil {
			ev.Query, ev.MultiValueQuery = make(map[string]string), make(map[string][]string)
		}
		ev.Query[name] = value // the last value of a name is used
		ev.MultiValueQuery[name] = append(ev.MultiValueQuery[name], value)
	}
	return ev
}

// setHeaders fills ev.Headers and ev.MultiValueHeaders. They get the request's headers,
// spelt as the client spelt them, and the headers that API Gateway adds.
func (a *restAPI) setHeaders(ev *restEvent, r *http.Request, sourceIP string) {
	ev.Headers, ev.MultiValueHeaders = make(map[string]string), make(map[string][]string)
	set := func(name string, values ...string) {
		ev.MultiValueHeaders[name] = values
		ev.Headers[name] = values[len(values)-1]
	}
	spelling := headerSpelling(r)
	for name, values := range r.Header {
		// A REST API doesn't pass on Content-Length and the hopHeaders, except Cookie.
		if hopHeaders[name] && name != "Cookie" || name == "Content-Length" || len(values) == 0 {
			continue
		}
		if spelt, ok := spelling[name]; ok {
			name = spelt
		}
		set(name, values...)
	}
	set("Host", r.Host)
	client, proto, port := forwarded(r, r.Header.Get("X-Forwarded-For"), sourceIP)
	for _, h := range [][2]string{{"X-Forwarded-For", client}, {"X-Forwarded-Proto", proto}, {"X-Forwarded-Port", port}} {
		if spelt, ok := spelling[h[0]]; ok {
			delete(ev.Headers, spelt)
			delete(ev.MultiValueHeaders, spelt)
		}
		set(h[0], h[1])
	}
	if r.Header.Get("X-Amzn-Trace-Id") == "" {
		set("X-Amzn-Trace-Id", a.newTraceID())
	}
}

// setBody adds the body to an event. A missing body is null.
func (e *restEvent) setBody(body []byte, binary bool) {
	if len(body) == 0 {
		return
	}
	text := string(body)
	if binary {
		text = base64.StdEncoding.EncodeToString(body)
	}
	e.Body, e.IsBase64Encoded = &text, binary
}

// shortID returns an id in the form of API Gateway's ids. The same name always has the same
// id.
func shortID(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	id := strconv.FormatUint(uint64(h.Sum32()), 36)
	return ("000000" + id)[len(id):]
}
