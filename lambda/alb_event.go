package lambda

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// albSnapshot says nothing about who is calling: a load balancer verifies nobody.
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

func albRequestSnapshot(ev *events.ALBTargetGroupRequest, req *idem.Request) ([]byte, error) {
	return take(req.Method, albSnapshot{
		Path:            unlike(ev.Path, req.Path),
		IsBase64Encoded: ev.IsBase64Encoded,
		RequestContext:  albContext{albTarget{ev.RequestContext.ELB.TargetGroupArn}},
	})
}

// albEvent fills in single and multi-value maps alike, since a handler reads
// those that its target group's setting names.
func albEvent(req idem.Request) (ev events.ALBTargetGroupRequest, err error) {
	if err := restore(req.Snapshot, &ev); err != nil {
		return ev, err
	}
	elb := &ev.RequestContext.ELB
	elb.TargetGroupArn = cmp.Or(elb.TargetGroupArn, "unknown") // it tells this kind of event from others
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
