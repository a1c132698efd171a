package lambda

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/scope"
)

const albKind = "a load balancer's event"

// ALB adapts events of an Application Load Balancer with a Lambda target. Don't
// change it: change a copy, as [Adapter] shows.
//
// Turn on multi-value headers in the target group (lambda.multi_value_headers.enabled).
// Otherwise the load balancer passes only the last value of each header and query
// parameter. Then a request with two keys isn't refused, and requests that differ only
// in dropped values count as the same. The adapter leaves the query in the client's
// encoding.
//
// A load balancer's event has no verified caller: the header x-amzn-oidc-identity is
// plain text, and x-amzn-oidc-data is an unverified token. The engine refuses keyed
// requests without a scope ([idem.ErrScope]). So set [idem.Options.Scope] to a function
// that verifies the token, as docs/use/http.md shows.
//
// A reply has both Headers and MultiValueHeaders, because the load balancer reads one
// of the two, depending on the target group's setting. Of several cookies, Headers has
// only the last.
var ALB = Adapter[events.ALBTargetGroupRequest, events.ALBTargetGroupResponse]{
	Request:  albRequest,
	Event:    albEvent,
	Response: albResponse,
	Reply:    albReply,
}

func albRequest(ctx context.Context, ev events.ALBTargetGroupRequest) (idem.Request, error) {
	switch {
	case ev.HTTPMethod == "":
		return idem.Request{}, notA(albKind, "it has no httpMethod")
	case ev.RequestContext.ELB.TargetGroupArn == "":
		return idem.Request{}, notA(albKind, "it has no requestContext.elb.targetGroupArn")
	}
	req := idem.Request{
		Method: ev.HTTPMethod,
		Path:   scope.Path(ev.Path),
		Query:  rawQuery(ev.QueryStringParameters, ev.MultiValueQueryStringParameters),
		Header: header(ev.Headers, ev.MultiValueHeaders),
	}
	req.Route = anyRoute(req.Method)
	var err error
	if req.Body, err = decoded(ev.Body, ev.IsBase64Encoded); err != nil {
		return req, err
	}
	if storable(ctx, req.Method) {
		req.Snapshot, err = albRequestSnapshot(&ev, &req)
	}
	return req, err
}

func albResponse(re events.ALBTargetGroupResponse) (idem.Response, error) {
	return response(re.StatusCode, header(re.Headers, re.MultiValueHeaders), nil, re.Body, re.IsBase64Encoded)
}

func albReply(r idem.Response) events.ALBTargetGroupResponse {
	body, isBase64 := textBody(r.Body)
	re := events.ALBTargetGroupResponse{
		StatusCode:        r.Status,
		StatusDescription: strings.TrimSpace(strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)),
		// If one of the two maps were null, the load balancer would answer 502.
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

func albRequestSnapshot(ev *events.ALBTargetGroupRequest, req *idem.Request) ([]byte, error) {
	return take(albSnapshot{
		Path:            unlike(ev.Path, req.Path),
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext:  albContext{albTarget{ev.RequestContext.ELB.TargetGroupArn}},
	})
}

// albEvent fills in both single-value and multi-value maps, because a handler reads one
// kind, depending on the target group's setting.
func albEvent(req idem.Request) (ev events.ALBTargetGroupRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	elb := &ev.RequestContext.ELB
	elb.TargetGroupArn = cmp.Or(elb.TargetGroupArn, "unknown") // never empty: this field marks an event of a load balancer
	ev.HTTPMethod = req.Method
	ev.Path = cmp.Or(ev.Path, req.Path)
	query := splitQuery(req.Query)
	ev.QueryStringParameters, ev.MultiValueQueryStringParameters = lastOf(query), query
	headers := make(url.Values, len(req.Header))
	for name, values := range req.Header {
		headers[strings.ToLower(name)] = values
	}
	ev.Headers, ev.MultiValueHeaders = lastOf(headers), headers
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	return ev, nil
}

// albSnapshot has no identity, because a load balancer verifies no caller.
type albSnapshot struct {
	Path            string     `json:"path,omitempty"`
	IsBase64Encoded bool       `json:"isBase64Encoded,omitempty"`
	RequestContext  albContext `json:"requestContext"`
}

type albContext struct {
	ELB albTarget `json:"elb"`
}

type albTarget struct {
	TargetGroupARN string `json:"targetGroupArn"`
}
