package lambda_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func TestHTTPAPIPathAndRoute(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rawPath, stage, routeKey string
		path, route              string
	}{
		"default stage":            {"/rides", "$default", "POST /rides", "/rides", "POST /rides"},
		"named stage":              {"/prod/rides", "prod", "POST /rides", "/rides", "POST /rides"},
		"stage alone":              {"/prod", "prod", "POST /", "/", "POST /"},
		"stage and slash":          {"/prod/", "prod", "POST /", "/", "POST /"},
		"stage twice":              {"/prod/prod/x", "prod", "POST /prod/x", "/prod/x", "POST /prod/x"},
		"looks like the stage":     {"/production", "prod", "POST /production", "/production", "POST /production"},
		"custom domain":            {"/rides", "prod", "POST /rides", "/rides", "POST /rides"},
		"no stage":                 {"//rides", "", "POST /rides", "//rides", "POST /rides"},
		"default route":            {"/a", "$default", "$default", "/a", "POST /*"},
		"no route":                 {"/a", "$default", "", "/a", "POST /*"},
		"any method":               {"/a/1", "$default", "ANY /a/{id}", "/a/1", "POST /a/{id}"},
		"greedy":                   {"/a/1/2", "$default", "POST /a/{p+}", "/a/1/2", "POST /a/{p+}"},
		"no path":                  {"", "$default", "$default", "/", "POST /*"},
		"decoded":                  {"/zoë a?b#c", "$default", "$default", "/zo%C3%AB%20a%3Fb%23c", "POST /*"},
		"percent sign":             {"/100%", "$default", "$default", "/100%25", "POST /*"},
		"percent sign kept escape": {"/100%25", "$default", "$default", "/100%25", "POST /*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := post("k", "")
			ev.RawPath, ev.RouteKey, ev.RequestContext.Stage = tc.rawPath, tc.routeKey, tc.stage
			req, err := lambda.HTTPAPI.Request(t.Context(), ev)
			if req.Path != tc.path || req.Route != tc.route || err != nil {
				t.Errorf("got path %q, route %q, %v, want %q, %q", req.Path, req.Route, err, tc.path, tc.route)
			}
		})
	}
}

// One path in all the spellings that clients and sources give it.
func TestPathSpellings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ sent, want string }{
		{"/a%40b", "/a@b"},
		{"/a@b", "/a@b"},
		{"/%7euser/%7E", "/~user/~"},
		{"/a%2fb", "/a%2Fb"}, // a slash in a segment is not a slash between them
		{"/a/b", "/a/b"},
		{"/a%zz", "/a%25zz"},
		{"/%ff", "/%FF"},
		{"/a;b,c", "/a%3Bb%2Cc"},
		{"/a%3bb%2cc", "/a%3Bb%2Cc"},
	} {
		ev := events.LambdaFunctionURLRequest{RawPath: tc.sent}
		ev.RequestContext.HTTP.Method = "POST"
		if req, err := lambda.FunctionURL.Request(t.Context(), ev); req.Path != tc.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", tc.sent, req.Path, err, tc.want)
		}
	}
}

func TestHTTPAPIIdentity(t *testing.T) {
	t.Parallel()
	type (
		authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
		jwt        = events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription
		iam        = events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription
		cognito    = events.APIGatewayV2HTTPRequestContextAuthorizerCognitoIdentity
		claims     = map[string]string
	)
	for name, tc := range map[string]struct {
		authorizer *authorizer
		want       idem.Identity
	}{
		"none":             {nil, idem.Identity{}},
		"jwt":              {&authorizer{JWT: &jwt{Claims: claims{"iss": "i", "sub": "s"}}}, idem.Identity{Kind: "jwt", Subject: "i|s"}},
		"jwt, bars":        {&authorizer{JWT: &jwt{Claims: claims{"iss": "i|x", "sub": "s"}}}, idem.Identity{Kind: "jwt", Subject: "i%7Cx|s"}},
		"jwt, other bars":  {&authorizer{JWT: &jwt{Claims: claims{"iss": "i", "sub": "x|s"}}}, idem.Identity{Kind: "jwt", Subject: "i|x|s"}},
		"jwt, escaped":     {&authorizer{JWT: &jwt{Claims: claims{"iss": "i%7Cx", "sub": "s"}}}, idem.Identity{Kind: "jwt", Subject: "i%257Cx|s"}},
		"jwt without iss":  {&authorizer{JWT: &jwt{Claims: claims{"sub": "s"}}}, idem.Identity{Kind: "jwt", Subject: "|s"}},
		"jwt without sub":  {&authorizer{JWT: &jwt{Claims: claims{"iss": "i", "client_id": "c"}}}, idem.Identity{Kind: "jwt"}},
		"empty jwt":        {&authorizer{JWT: &jwt{}}, idem.Identity{}},
		"iam":              {&authorizer{IAM: &iam{UserARN: "arn:aws:iam::1:user/ann"}}, idem.Identity{Kind: "iam", Subject: "arn:aws:iam::1:user/ann"}},
		"iam, empty":       {&authorizer{IAM: &iam{}}, idem.Identity{Kind: "iam"}},
		"cognito identity": {&authorizer{IAM: &iam{UserARN: "arn", CognitoIdentity: cognito{IdentityID: "i", IdentityPoolID: "p"}}}, idem.Identity{Kind: "iam", Subject: "p|i"}},
		"lambda principal": {&authorizer{Lambda: map[string]any{"principalId": "p", "sub": "s"}}, idem.Identity{Kind: "lambda", Subject: "api1|p"}},
		"lambda sub":       {&authorizer{Lambda: map[string]any{"principalId": "", "sub": "s"}}, idem.Identity{Kind: "lambda", Subject: "api1|s"}},
		"lambda, no text":  {&authorizer{Lambda: map[string]any{"principalId": 7.5, "sub": []any{"s"}}}, idem.Identity{Kind: "lambda"}},
		"lambda, others":   {&authorizer{Lambda: map[string]any{"email": "e", "exp": 1.0}}, idem.Identity{Kind: "lambda"}},
		"lambda, empty":    {&authorizer{Lambda: map[string]any{}}, idem.Identity{Kind: "lambda"}},
		"lambda, null":     {&authorizer{}, idem.Identity{Kind: "lambda"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := post("k", "")
			ev.RequestContext.APIID, ev.RequestContext.Authorizer = "api1", tc.authorizer
			if req, err := lambda.HTTPAPI.Request(t.Context(), ev); req.Identity != tc.want || err != nil {
				t.Errorf("got %+v, %v, want %+v", req.Identity, err, tc.want)
			}
		})
	}
}

func TestRESTIdentity(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	user := events.APIGatewayRequestIdentity{UserArn: "arn:aws:iam::1:user/ann", APIKeyID: "key", APIKey: "secret", SourceIP: "192.0.2.1"}
	cognito := user
	cognito.CognitoIdentityPoolID, cognito.CognitoIdentityID = "p", "i"
	for name, tc := range map[string]struct {
		authorizer m
		identity   events.APIGatewayRequestIdentity
		want       idem.Identity
	}{
		"none":                   {nil, events.APIGatewayRequestIdentity{SourceIP: "192.0.2.1"}, idem.Identity{}},
		"empty authorizer":       {m{}, events.APIGatewayRequestIdentity{}, idem.Identity{}},
		"null members":           {m{"claims": nil, "scopes": nil}, events.APIGatewayRequestIdentity{}, idem.Identity{}},
		"claims":                 {m{"claims": m{"iss": "i", "sub": "s"}}, user, idem.Identity{Kind: "jwt", Subject: "i|s"}},
		"claims and scopes":      {m{"claims": m{"iss": "i", "sub": "s"}, "scopes": []any{"a"}}, user, idem.Identity{Kind: "jwt", Subject: "i|s"}},
		"claims without sub":     {m{"claims": m{"iss": "i"}}, user, idem.Identity{Kind: "jwt"}},
		"claims, sub a number":   {m{"claims": m{"iss": "i", "sub": 7.0}}, user, idem.Identity{Kind: "jwt", Subject: "i|7"}},
		"principal":              {m{"principalId": "p", "integrationLatency": 3.0}, user, idem.Identity{Kind: "lambda", Subject: "api1|p"}},
		"principal, text claims": {m{"principalId": "p", "claims": `{"sub":"s"}`}, user, idem.Identity{Kind: "lambda", Subject: "api1|p"}},
		"context of nobody":      {m{"integrationLatency": 3.0}, user, idem.Identity{Kind: "lambda"}},
		"cognito, no user":       {nil, events.APIGatewayRequestIdentity{CognitoIdentityPoolID: "p", CognitoIdentityID: "i"}, idem.Identity{Kind: "iam", Subject: "p|i"}},
		"cognito identity":       {nil, cognito, idem.Identity{Kind: "iam", Subject: "p|i"}},
		"user":                   {m{}, user, idem.Identity{Kind: "iam", Subject: "arn:aws:iam::1:user/ann"}},
		"API key":                {nil, events.APIGatewayRequestIdentity{APIKeyID: "key", APIKey: "secret"}, idem.Identity{}},
		"API key, no id":         {nil, events.APIGatewayRequestIdentity{APIKey: "secret"}, idem.Identity{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/rides", Path: "/rides"}
			ev.RequestContext.APIID = "api1"
			ev.RequestContext.Authorizer, ev.RequestContext.Identity = tc.authorizer, tc.identity
			if req, err := lambda.REST.Request(t.Context(), ev); req.Identity != tc.want || err != nil {
				t.Errorf("got %+v, %v, want %+v", req.Identity, err, tc.want)
			}
		})
	}
}

func TestFunctionURLDomain(t *testing.T) {
	t.Parallel()
	for domain, ok := range map[string]bool{
		"":                                   true, // a hand-written event
		"abc.lambda-url.eu-central-1.on.aws": true,
		"abc.lambda-url.us-east-1.localhost.localstack.cloud": true,
		"a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com":   false,
		"api.example.com":        false, // an HTTP API's: its authorizer would be lost
		"lambda-url.example.com": false,
	} {
		var ev events.LambdaFunctionURLRequest
		ev.RequestContext.HTTP.Method, ev.RequestContext.DomainName = "POST", domain
		if _, err := lambda.FunctionURL.Request(t.Context(), ev); (err == nil) != ok {
			t.Errorf("%q: got %v, want accepted: %t", domain, err, ok)
		}
	}
}

// The maps of an event, with one value and with more, make one header.
func TestHeaderMaps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		single map[string]string
		multi  map[string][]string
		want   http.Header
	}{
		"none":                {nil, nil, http.Header{}},
		"single":              {map[string]string{"x-a": "1", "X-B": ""}, nil, http.Header{"X-A": {"1"}, "X-B": {""}}},
		"multi":               {nil, map[string][]string{"x-a": {"1", "2"}}, http.Header{"X-A": {"1", "2"}}},
		"both":                {map[string]string{"X-A": "2"}, map[string][]string{"X-A": {"1", "2"}}, http.Header{"X-A": {"1", "2"}}},
		"both, spelled anew":  {map[string]string{"x-a": "2"}, map[string][]string{"X-A": {"1", "2"}}, http.Header{"X-A": {"1", "2"}}},
		"both, other values":  {map[string]string{"x-a": "3"}, map[string][]string{"X-A": {"1"}}, http.Header{"X-A": {"1"}}},
		"each its own":        {map[string]string{"X-A": "1"}, map[string][]string{"X-B": {"2"}}, http.Header{"X-A": {"1"}, "X-B": {"2"}}},
		"two spellings":       {nil, map[string][]string{"x-a": {"2"}, "X-A": {"1"}}, http.Header{"X-A": {"1", "2"}}},
		"two single ones":     {map[string]string{"x-a": "2", "X-A": "1"}, nil, http.Header{"X-A": {"1", "2"}}},
		"no values":           {map[string]string{"X-A": "1"}, map[string][]string{"X-A": {}, "X-B": nil}, http.Header{"X-A": {"1"}}},
		"equal values remain": {nil, map[string][]string{"X-A": {"1", "1"}}, http.Header{"X-A": {"1", "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := lambda.REST.Request(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: "POST", Resource: "/", Headers: tc.single, MultiValueHeaders: tc.multi,
			})
			if diff := cmp.Diff(tc.want, req.Header); diff != "" || err != nil {
				t.Errorf("request: err %v (-want +got):\n%s", err, diff)
			}
			resp, err := lambda.REST.Response(events.APIGatewayProxyResponse{Headers: tc.single, MultiValueHeaders: tc.multi})
			if diff := cmp.Diff(tc.want, resp.Header); diff != "" || err != nil {
				t.Errorf("response: err %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestQueryMaps(t *testing.T) {
	t.Parallel()
	type (
		single = map[string]string
		multi  = map[string][]string
	)
	for name, tc := range map[string]struct {
		single         single
		multi          multi
		decoded, taken string // what REST encodes, what ALB takes as it is
	}{
		"none":         {nil, nil, "", ""},
		"single":       {single{"b": "2", "a": "1"}, nil, "a=1&b=2", "a=1&b=2"},
		"multi first":  {single{"a": "2"}, multi{"a": {"1", "2"}}, "a=1&a=2", "a=1&a=2"},
		"empty values": {nil, multi{"a": {""}, "": {"x"}}, "=x&a=", "=x&a="},
		"escapes":      {nil, multi{"a b": {"c%20d", "é&="}}, "a+b=c%2520d&a+b=%C3%A9%26%3D", "a b=c%20d&a b=é&="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := lambda.REST.Request(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: "POST", Resource: "/", QueryStringParameters: tc.single, MultiValueQueryStringParameters: tc.multi,
			})
			if req.Query != tc.decoded || err != nil {
				t.Errorf("REST: got %q, %v, want %q", req.Query, err, tc.decoded)
			}
			ev := events.ALBTargetGroupRequest{
				HTTPMethod: "POST", QueryStringParameters: tc.single, MultiValueQueryStringParameters: tc.multi,
			}
			ev.RequestContext.ELB.TargetGroupArn = "arn"
			if req, err = lambda.ALB.Request(t.Context(), ev); req.Query != tc.taken || err != nil {
				t.Errorf("ALB: got %q, %v, want %q", req.Query, err, tc.taken)
			}
		})
	}
}

// Handlers' own answers, with all that their types allow.
func TestResponses(t *testing.T) {
	t.Parallel()
	cookies := []string{"a=1", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"}
	withCookies := http.Header{"X-A": {"1"}, "Set-Cookie": {"c=3", cookies[0], cookies[1]}}
	check := func(t *testing.T, name string, want, got idem.Response, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: err %v (-want +got):\n%s", name, err, diff)
		}
	}
	got, err := lambda.HTTPAPI.Response(events.APIGatewayV2HTTPResponse{})
	check(t, "HTTPAPI, zero", idem.Response{Status: 200}, got, err)
	got, err = lambda.HTTPAPI.Response(events.APIGatewayV2HTTPResponse{
		StatusCode: 201, Headers: map[string]string{"x-a": "1", "set-cookie": "c=3"}, Cookies: cookies, Body: "/w==", IsBase64Encoded: true,
	})
	check(t, "HTTPAPI", idem.Response{Status: 201, Header: withCookies, Body: []byte{0xff}}, got, err)
	got, err = lambda.FunctionURL.Response(events.LambdaFunctionURLResponse{})
	check(t, "FunctionURL, zero", idem.Response{Status: 200}, got, err)
	got, err = lambda.FunctionURL.Response(events.LambdaFunctionURLResponse{
		StatusCode: 201, Headers: map[string]string{"x-a": "1", "set-cookie": "c=3"}, Cookies: cookies, Body: "é",
	})
	check(t, "FunctionURL", idem.Response{Status: 201, Header: withCookies, Body: []byte("é")}, got, err)
	got, err = lambda.REST.Response(events.APIGatewayProxyResponse{})
	check(t, "REST, zero", idem.Response{Status: 200}, got, err)
	got, err = lambda.REST.Response(events.APIGatewayProxyResponse{
		StatusCode: 201, Headers: map[string]string{"x-a": "1"}, MultiValueHeaders: map[string][]string{"set-cookie": {"c=3", cookies[0], cookies[1]}},
	})
	check(t, "REST", idem.Response{Status: 201, Header: withCookies}, got, err)
	got, err = lambda.ALB.Response(events.ALBTargetGroupResponse{})
	check(t, "ALB, zero", idem.Response{Status: 200}, got, err)
	got, err = lambda.ALB.Response(events.ALBTargetGroupResponse{
		StatusCode: 201, StatusDescription: "201 Whatever", MultiValueHeaders: map[string][]string{"x-a": {"1"}}, Body: "/w==", IsBase64Encoded: true,
	})
	check(t, "ALB", idem.Response{Status: 201, Header: http.Header{"X-A": {"1"}}, Body: []byte{0xff}}, got, err)
}

// Replies in the exact form that each source reads.
func TestReplies(t *testing.T) {
	t.Parallel()
	type (
		one  = map[string]string
		many = map[string][]string
	)
	full := idem.Response{Status: 201, Body: []byte("é\xff"), Header: http.Header{
		"X-A": {"1"}, "X-B": {"1", "2"}, "Set-Cookie": {"a=1", "b=2"}, "X-None": {},
	}}
	zero := idem.Response{Status: 299}
	for _, tc := range []struct {
		name      string
		want, got any
	}{
		{"HTTPAPI", events.APIGatewayV2HTTPResponse{
			StatusCode: 201, Headers: one{"X-A": "1", "X-B": "1, 2"}, Cookies: []string{"a=1", "b=2"}, Body: "w6n/", IsBase64Encoded: true,
		}, lambda.HTTPAPI.Reply(full)},
		{"HTTPAPI, empty", events.APIGatewayV2HTTPResponse{StatusCode: 299, Headers: one{}}, lambda.HTTPAPI.Reply(zero)},
		{"FunctionURL", events.LambdaFunctionURLResponse{
			StatusCode: 201, Headers: one{"X-A": "1", "X-B": "1, 2"}, Cookies: []string{"a=1", "b=2"}, Body: "w6n/", IsBase64Encoded: true,
		}, lambda.FunctionURL.Reply(full)},
		{"FunctionURL, empty", events.LambdaFunctionURLResponse{StatusCode: 299, Headers: one{}}, lambda.FunctionURL.Reply(zero)},
		{"REST", events.APIGatewayProxyResponse{
			StatusCode: 201, Headers: one{"X-A": "1"}, MultiValueHeaders: many{"X-B": {"1", "2"}, "Set-Cookie": {"a=1", "b=2"}},
			Body: "w6n/", IsBase64Encoded: true,
		}, lambda.REST.Reply(full)},
		{"REST, empty", events.APIGatewayProxyResponse{StatusCode: 299, Headers: one{}, MultiValueHeaders: many{}}, lambda.REST.Reply(zero)},
		{"ALB", events.ALBTargetGroupResponse{
			StatusCode: 201, StatusDescription: "201 Created", Headers: one{"X-A": "1", "X-B": "1, 2", "Set-Cookie": "b=2"},
			MultiValueHeaders: many{"X-A": {"1"}, "X-B": {"1", "2"}, "Set-Cookie": {"a=1", "b=2"}}, Body: "w6n/", IsBase64Encoded: true,
		}, lambda.ALB.Reply(full)},
		{"ALB, empty", events.ALBTargetGroupResponse{
			StatusCode: 299, StatusDescription: "299", Headers: one{}, MultiValueHeaders: many{},
		}, lambda.ALB.Reply(zero)},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if len(full.Header["Set-Cookie"]) != 2 {
		t.Error("Reply changed the response it was given")
	}
}

// Text stays text whatever it holds, as long as JSON can carry it. A large body with so many control
// characters that their escapes would take more than base64 is sent in base64: 6 MB is what Lambda gives.
func TestBodies(t *testing.T) {
	t.Parallel()
	const small = 128 << 10
	controls := func(all, n int, c string) string { return strings.Repeat(c, n) + strings.Repeat("x", all-n) }
	bodies := map[string]bool{ // in base64
		"": false, "text": false, "é\u2028\ufeff<&>": false, "\x00\x1b[0m": false, "\ufffd": false,
		"\xff": true, "a\xc3": true, "\x1f\x8b": true, "\xed\xa0\x80": true, strings.Repeat("\xff", small+1): true,
		controls(small, small, "\x01"): false, controls(small+1, small+1, "\x01"): true,
		controls(150_000, 10_000, "\x01"): false, controls(150_000, 10_001, "\x01"): true, controls(150_000, 10_001, "\x1f"): true,
	}
	for _, c := range []string{" ", "\n", "\r", "\t"} {
		bodies[controls(150_000, 100_000, c)] = false
	}
	for _, c := range []string{"\v", "\b", "\f", "\x0e"} {
		bodies[controls(150_000, 100_000, c)] = true
	}
	for body, wantBase64 := range bodies {
		re := lambda.HTTPAPI.Reply(idem.Response{Status: 200, Body: []byte(body)})
		if re.IsBase64Encoded != wantBase64 {
			t.Errorf("%d bytes %.10q: base64 is %t", len(body), body, re.IsBase64Encoded)
		}
		back, err := lambda.HTTPAPI.Response(re)
		if string(back.Body) != body || err != nil {
			t.Errorf("%d bytes %.10q came back as %.10q, %v", len(body), body, back.Body, err)
		}
	}
}
