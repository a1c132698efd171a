package lambda

import (
	"cmp"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

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
	return take(req.Method, s)
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
	ev.Headers = v2Headers(req.Header) // never cookies: no record has them
	ev.Body, ev.IsBase64Encoded = eventBody(req.Body, ev.IsBase64Encoded)
	rc.DomainPrefix = firstLabel(rc.DomainName)
	rc.HTTP.Method, rc.HTTP.Path = req.Method, ev.RawPath
	return ev, nil
}
