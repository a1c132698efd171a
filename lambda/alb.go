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
// Turn on multi-value headers in the target group (lambda.multi_value_headers.enabled). Otherwise
// the load balancer passes only the last value of each header and query parameter: a second key in
// a request, or a difference in an earlier value, isn't noticed. The adapter leaves the query in
// the client's encoding.
//
// A load balancer verifies no caller: in its events x-amzn-oidc-identity is plain text, and
// x-amzn-oidc-data an unverified token. Verify the token in [idem.Options.Scope], as
// docs/use/http.md shows. The engine refuses keyed requests without a scope ([idem.ErrScope]).
//
// A reply fills in both Headers and MultiValueHeaders, since the target group's setting decides
// which of the two the load balancer reads. Headers can hold only the last of several cookies.
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
		// Neither map may be null: the load balancer would answer 502.
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

// albEvent fills in both single-value and multi-value maps, since the target group's setting
// decides which maps a handler reads.
func albEvent(req idem.Request) (ev events.ALBTargetGroupRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	elb := &ev.RequestContext.ELB
	elb.TargetGroupArn = cmp.Or(elb.TargetGroupArn, "unknown") // not empty: this field shows that the event is a load balancer's
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

// albSnapshot has no identity: a load balancer verifies no caller.
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
