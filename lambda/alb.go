package lambda

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const albKind = "a load balancer's event"

// ALB adapts events of an Application Load Balancer with a Lambda target. It
// must not be changed; see [Adapter] for how to vary it.
//
// Whether headers and query have one value or more for a name is a setting of
// the target group. Where it is one, the load balancer keeps the last: the
// second of two keys passes unnoticed, and so does a difference in the values
// before the last. Turn on multi-value headers (lambda.multi_value_headers.enabled).
// The query is taken as it comes, which is undecoded.
//
// A load balancer vouches for nobody in its events: x-amzn-oidc-identity is
// plain text, and x-amzn-oidc-data a token to be verified. Do that in
// [idem.Options.Scope], else callers are told apart by what they present
// ([idem.ErrCredentials]).
//
// A reply fills in Headers and MultiValueHeaders alike, since the load balancer
// reads the one that its setting names. Of several cookies Headers has room for
// the last.
var ALB = Adapter[events.ALBTargetGroupRequest, events.ALBTargetGroupResponse]{
	Request:  albRequest,
	Event:    albEvent,
	Response: albResponse,
	Reply:    albReply,
}

func albRequest(_ context.Context, ev events.ALBTargetGroupRequest) (idem.Request, error) {
	switch {
	case ev.HTTPMethod == "":
		return idem.Request{}, notA(albKind, "it has no httpMethod")
	case ev.RequestContext.ELB.TargetGroupArn == "":
		return idem.Request{}, notA(albKind, "it has no requestContext.elb.targetGroupArn")
	}
	req := idem.Request{
		Method: ev.HTTPMethod,
		Path:   canonicalPath(ev.Path),
		Query:  rawQuery(ev.QueryStringParameters, ev.MultiValueQueryStringParameters),
		Header: header(ev.Headers, ev.MultiValueHeaders),
	}
	req.Route = req.Method + " " + req.Path
	var err error
	if req.Body, err = requestBody(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	req.Snapshot, err = albRequestSnapshot(&ev, &req)
	return req, err
}

func albResponse(re events.ALBTargetGroupResponse) (idem.Response, error) {
	return response(re.StatusCode, header(re.Headers, re.MultiValueHeaders), re.Body, re.IsBase64Encoded)
}

func albReply(r idem.Response) events.ALBTargetGroupResponse {
	body, isBase64 := textBody(r.Body)
	re := events.ALBTargetGroupResponse{
		StatusCode:        r.Status,
		StatusDescription: strings.TrimSpace(strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)),
		// Neither may be null: the load balancer would answer 502.
		Headers:           joined(r.Header),
		MultiValueHeaders: make(map[string][]string, len(r.Header)),
		Body:              body,
		IsBase64Encoded:   isBase64,
	}
	for name, values := range r.Header {
		if len(values) > 0 {
			re.MultiValueHeaders[name] = values
		}
	}
	return re
}
