package lambda

import (
	"cmp"
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/scope"
)

const (
	functionURLKind = "a function URL event"

	// urlDomain is part of the domain name of every function URL.
	urlDomain = ".lambda-url."
)

// FunctionURL adapts events of Lambda function URLs (invoke mode BUFFERED). Don't
// change FunctionURL: change a copy, as [Adapter] shows.
//
// As with HTTP APIs, several values of a header are joined by commas. A function URL
// has no route patterns, so the route is the method followed by /*, such as "POST /*".
//
// With AuthType AWS_IAM the caller is the user ARN. A role's session, except of IAM
// Identity Center, is a caller only if you choose [RoleScope] or [SessionScope]. A user
// of a Cognito identity pool is not a verified caller, because the event doesn't name
// the user. With AuthType NONE there is no verified caller, whatever the event or its
// headers say. So set [idem.Options.Scope].
//
// FunctionURL refuses an event whose domain name isn't a function URL's ([ErrEvent]).
// Otherwise FunctionURL would accept an HTTP API's event, which has the same form, and
// would ignore the API's authorizer.
var FunctionURL = Adapter[events.LambdaFunctionURLRequest, events.LambdaFunctionURLResponse]{
	Request:  functionURLRequest,
	Event:    functionURLEvent,
	Response: functionURLResponse,
	Reply:    functionURLReply,
}

func functionURLRequest(ctx context.Context, ev events.LambdaFunctionURLRequest) (idem.Request, error) {
	rc := &ev.RequestContext
	switch {
	case rc.HTTP.Method == "":
		return idem.Request{}, notA(functionURLKind, "it has no requestContext.http.method")
	case rc.DomainName != "" && !strings.Contains(rc.DomainName, urlDomain):
		return idem.Request{}, notA(functionURLKind, "its domain name is not a function URL's")
	}
	req := idem.Request{
		Method: rc.HTTP.Method,
		Path:   scope.Path(ev.RawPath),
		Query:  ev.RawQueryString,
		Host:   rc.DomainName,
		Header: withCookies(header(ev.Headers, nil), ev.Cookies),
	}
	req.Route = anyRoute(req.Method)
	if rc.Authorizer != nil && rc.Authorizer.IAM != nil {
		req.Identity, req.Facts = iamIdentity("", "", rc.Authorizer.IAM.UserARN)
	}
	var err error
	if req.Body, err = decoded(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	if storable(ctx, req.Method) {
		req.Snapshot, err = functionURLSnapshot(&ev, &req)
	}
	return req, err
}

func functionURLResponse(re events.LambdaFunctionURLResponse) (idem.Response, error) {
	return response(re.StatusCode, header(re.Headers, nil), re.Cookies, re.Body, re.IsBase64Encoded)
}

func functionURLReply(r idem.Response) events.LambdaFunctionURLResponse {
	headers := joined(r.Header)
	delete(headers, setCookie) // cookies are in a separate list
	body, isBase64 := textBody(r.Body)
	return events.LambdaFunctionURLResponse{
		StatusCode: r.Status, Headers: headers, Cookies: r.Header[setCookie], Body: body, IsBase64Encoded: isBase64,
	}
}

func functionURLSnapshot(ev *events.LambdaFunctionURLRequest, req *idem.Request) ([]byte, error) {
	rc := &ev.RequestContext
	s := v2Snapshot{
		RawPath:         unlike(ev.RawPath, req.Path),
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext:  v2Context{DomainName: rc.DomainName, HTTP: v2Client{rc.HTTP.SourceIP}},
	}
	if rc.Authorizer != nil && rc.Authorizer.IAM != nil {
		iam := rc.Authorizer.IAM
		s.RequestContext.Authorizer = &v2Authorizer{
			IAM: &v2IAM{AccountID: iam.AccountID, CallerID: iam.CallerID, UserARN: iam.UserARN, UserID: iam.UserID},
		}
	}
	return take(s)
}

func functionURLEvent(req idem.Request) (ev events.LambdaFunctionURLRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	rc := &ev.RequestContext
	ev.Version = "2.0"
	ev.RawPath = cmp.Or(ev.RawPath, req.Path)
	ev.RawQueryString = req.Query
	ev.QueryStringParameters = joinedParameters(req.Query)
	ev.Headers = v2Headers(req.Header) // without cookies, which are never stored
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	rc.DomainPrefix = firstLabel(rc.DomainName)
	rc.HTTP.Method, rc.HTTP.Path = req.Method, ev.RawPath
	return ev, nil
}
