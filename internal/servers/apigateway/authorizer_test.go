package apigateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

func policyFor(effect, action, resource string) map[string]any {
	return map[string]any{
		"principalId":    "ann",
		"policyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{"Effect": effect, "Action": action, "Resource": resource}}},
	}
}

// seesAuthorizer returns requestContext.authorizer as its body; both kinds of
// API take it so.
var seesAuthorizer = lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
	var ev struct {
		RequestContext struct {
			Authorizer json.RawMessage `json:"authorizer"`
		} `json:"requestContext"`
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"statusCode": 200, "body": string(ev.RequestContext.Authorizer)})
})

func TestLambdaAuthorizerOfAnHTTPAPI(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:execute-api:us-east-1:123456789012:local/$default/GET/"
	tests := map[string]struct {
		answer any // or an error
		strict bool
		header string
		status int
		body   string
	}{
		"allowed, with a context": {
			answer: map[string]any{"isAuthorized": true, "context": map[string]any{"sub": "ann", "n": 1.5, "list": []int{1}}},
			status: 200, body: `{"lambda":{"list":[1],"n":1.5,"sub":"ann"}}`,
		},
		"allowed, without one":        {answer: map[string]any{"isAuthorized": true}, status: 200, body: `{"lambda":null}`},
		"refused":                     {answer: map[string]any{"isAuthorized": false}, status: 403, body: `{"message":"Forbidden"}`},
		"policy allows":               {answer: policyFor("Allow", "execute-api:Invoke", arn), strict: true, status: 200, body: `{"lambda":{"principalId":"ann"}}`},
		"policy allows, with stars":   {answer: policyFor("Allow", "execute-api:*", "arn:aws:execute-api:*/GET/*"), status: 200, body: `{"lambda":{"principalId":"ann"}}`},
		"policy with a question mark": {answer: policyFor("Allow", "execute-api:Invok?", "*:*:*"), status: 200, body: `{"lambda":{"principalId":"ann"}}`},
		"policy is of a longer route": {answer: policyFor("Allow", "execute-api:Invoke?", "*"), status: 403, body: `{"message":"Forbidden"}`},
		"policy is of another route":  {answer: policyFor("Allow", "execute-api:Invoke", arn+"x"), status: 403, body: `{"message":"Forbidden"}`},
		"policy is of another action": {answer: policyFor("Allow", "s3:GetObject", "*"), status: 403, body: `{"message":"Forbidden"}`},
		"policy denies":               {answer: policyFor("Deny", "*", "*"), status: 403, body: `{"message":"Forbidden"}`},
		"simple, but not enabled":     {answer: map[string]any{"isAuthorized": true}, strict: true, status: 500, body: `{"message":"Internal Server Error"}`},
		"no decision":                 {answer: map[string]any{}, status: 500, body: `{"message":"Internal Server Error"}`},
		"no object":                   {answer: 1, status: 500, body: `{"message":"Internal Server Error"}`},
		"says Unauthorized":           {answer: &lambdarun.FunctionError{Type: "errorString", Message: "Unauthorized"}, status: 401, body: `{"message":"Unauthorized"}`},
		"fails":                       {answer: &lambdarun.FunctionError{Type: "errorString", Message: "no such user"}, status: 500, body: `{"message":"Internal Server Error"}`},
		"no identity source":          {answer: errors.New("not reached"), header: "-", status: 401, body: `{"message":"Unauthorized"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authorizer := &LambdaAuthorizer{Function: answerOf(tt.answer), IdentitySources: []string{"header.Authorization"}, Simple: !tt.strict}
			api := HTTPAPIRoutes(map[string]HTTPRoute{"GET /": {Function: seesAuthorizer, Authorizer: authorizer}})
			req := newRequest(t, http.MethodGet, nil)
			if tt.header != "-" {
				req.Header.Set("Authorization", "Bearer x")
			}
			if status, body := serve(t, api, req); status != tt.status || body != tt.body {
				t.Errorf("status %d, body %s; want %d, %s", status, body, tt.status, tt.body)
			}
		})
	}
}

// answerOf is a function that returns v, or fails with it.
func answerOf(v any) lambdarun.InvokerFunc {
	if err, ok := v.(error); ok {
		return func(context.Context, []byte) ([]byte, error) { return nil, err }
	}
	return answers(v)
}

func TestEventOfAnHTTPAPIsAuthorizer(t *testing.T) {
	t.Parallel()
	var payload []byte
	authorizer := &LambdaAuthorizer{
		IdentitySources: []string{"header.Authorization", "querystring.user", "stageVariables.colour"}, Simple: true,
		Function: lambdarun.InvokerFunc(func(_ context.Context, p []byte) ([]byte, error) {
			payload = p
			return []byte(`{"isAuthorized":true}`), nil
		}),
	}
	api := HTTPAPIRoutes(map[string]HTTPRoute{"POST /rides/{id}": {Function: seesAuthorizer, Authorizer: authorizer}}, func(o *HTTPAPIOptions) {
		o.Stage, o.APIID, o.StageVariables = "test", "abcdef123", map[string]string{"colour": "blue"}
	})
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/rides/7?user=ann", nil)
	req.Header.Set("Authorization", "token")
	req.Header.Set("Cookie", "a=1; b=2")
	if status, body := serve(t, api, req); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}

	var ev events.APIGatewayV2CustomAuthorizerV2Request
	if err := json.Unmarshal(payload, &ev); err != nil {
		t.Fatal(err)
	}
	got := []any{ev.Version, ev.Type, ev.RouteArn, ev.IdentitySource, ev.RouteKey, ev.RawPath, ev.Cookies, ev.PathParameters, ev.RequestContext.Stage, ev.Headers["authorization"]}
	want := []any{
		"2.0", "REQUEST", "arn:aws:execute-api:us-east-1:123456789012:abcdef123/test/POST/rides/7",
		[]string{"token", "ann", "blue"},
		"POST /rides/{id}", "/test/rides/7",
		[]string{"a=1", "b=2"},
		map[string]string{"id": "7"},
		"test", "token",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	// The members that AWS documents.
	var members map[string]any
	if err := json.Unmarshal(payload, &members); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"cookies", "headers", "identitySource", "pathParameters", "queryStringParameters", "rawPath", "rawQueryString",
		"requestContext", "routeArn", "routeKey", "stageVariables", "type", "version",
	}, slices.Sorted(maps.Keys(members))); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestLambdaAuthorizerOfARESTAPI(t *testing.T) {
	t.Parallel()
	withContext := func(context map[string]any) map[string]any {
		answer := policyFor("Allow", "execute-api:Invoke", "*")
		answer["context"] = context
		return answer
	}
	const denied = `{"Message":"User is not authorized to access this resource`
	tests := map[string]struct {
		answer any
		header string
		status int
		body   string
	}{
		"allowed, its context as text": {
			answer: withContext(map[string]any{"s": "x", "n": 12345678901234567, "b": true, "none": nil}),
			status: 200, body: `{"b":"true","integrationLatency":0,"n":"12345678901234567","none":null,"principalId":"ann","s":"x"}`,
		},
		"a context of lists":    {answer: withContext(map[string]any{"l": []int{1}}), status: 500, body: `{"message":null}`},
		"denied":                {answer: policyFor("Deny", "execute-api:Invoke", "*"), status: 403, body: denied + ` with an explicit deny"}`},
		"not allowed":           {answer: policyFor("Allow", "execute-api:Invoke", "arn:aws:execute-api:*/GET/*"), status: 403, body: denied + `"}`},
		"nobody's name":         {answer: map[string]any{"policyDocument": allowAll}, status: 500, body: `{"message":null}`},
		"no policy":             {answer: map[string]any{"principalId": "ann"}, status: 500, body: `{"message":null}`},
		"a condition":           {answer: map[string]any{"principalId": "ann", "policyDocument": map[string]any{"Statement": map[string]any{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": map[string]any{}}}}, status: 500, body: `{"message":null}`},
		"says Unauthorized":     {answer: &lambdarun.FunctionError{Message: "Unauthorized"}, status: 401, body: `{"message":"Unauthorized"}`},
		"fails":                 {answer: &lambdarun.FunctionError{Message: "x"}, status: 500, body: `{"message":null}`},
		"no token":              {answer: errors.New("not reached"), header: "-", status: 401, body: `{"message":"Unauthorized"}`},
		"a token of other form": {answer: errors.New("not reached"), header: "Bearer ann!", status: 401, body: `{"message":"Unauthorized"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := RESTAPI(map[string]RESTRoute{"POST /": {Function: seesAuthorizer, Authorizer: &RESTAuthorizer{
				Function: answerOf(tt.answer), Token: true, IdentitySources: []string{"header.Authorization"},
				Validation: regexp.MustCompile(`^(?:Bearer [a-z]+)$`),
			}}})
			req := newRequest(t, http.MethodPost, nil)
			switch tt.header {
			case "":
				req.Header.Set("Authorization", "Bearer ann")
			case "-":
			default:
				req.Header.Set("Authorization", tt.header)
			}
			if status, body := serve(t, api, req); status != tt.status || body != tt.body {
				t.Errorf("status %d, body %s; want %d, %s", status, body, tt.status, tt.body)
			}
		})
	}
}

func TestEventsOfARESTAPIsAuthorizers(t *testing.T) {
	t.Parallel()
	var payload []byte
	fn := lambdarun.InvokerFunc(func(_ context.Context, p []byte) ([]byte, error) {
		payload = p
		return json.Marshal(policyFor("Allow", "*", "*"))
	})
	ask := func(a RESTAuthorizer) map[string]any {
		a.Function = fn
		api := RESTAPI(map[string]RESTRoute{"GET /rides/{id}": {Function: seesAuthorizer, Authorizer: &a}})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/rides/7", nil)
		req.Header.Set("X-Token", "t")
		if status, body := serve(t, api, req); status != http.StatusOK {
			t.Fatalf("status %d: %s", status, body)
		}
		var event map[string]any
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		return event
	}
	const arn = "arn:aws:execute-api:us-east-1:123456789012:local/Prod/GET/rides/7"
	token := ask(RESTAuthorizer{Token: true, IdentitySources: []string{"header.X-Token"}})
	if diff := cmp.Diff(map[string]any{"type": "TOKEN", "authorizationToken": "t", "methodArn": arn}, token); diff != "" {
		t.Errorf("TOKEN (-want +got):\n%s", diff)
	}
	request := ask(RESTAuthorizer{})
	if request["type"] != "REQUEST" || request["methodArn"] != arn || request["resource"] != "/rides/{id}" {
		t.Errorf("REQUEST is %v", request)
	}
	if diff := cmp.Diff([]string{
		"headers", "httpMethod", "methodArn", "multiValueHeaders", "multiValueQueryStringParameters", "path", "pathParameters",
		"queryStringParameters", "requestContext", "resource", "stageVariables", "type",
	}, slices.Sorted(maps.Keys(request))); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestRoutesHaveTheirOwnFunctionAndAuthorizer(t *testing.T) {
	t.Parallel()
	says := func(s string) lambdarun.Invoker { return answers(s) }
	api := HTTPAPIRoutes(map[string]HTTPRoute{
		"GET /open":   {Function: says("open")},
		"GET /closed": {Function: says("closed"), Authorizer: RequestAuthorizer(bearer)},
	})
	for path, want := range map[string]int{"/open": 200, "/closed": 401, "/": 404} {
		status, _ := serve(t, api, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	if status, _ := serve(t, HTTPAPIRoutes(nil), newRequest(t, http.MethodGet, nil)); status != http.StatusNotFound {
		t.Errorf("without routes: status %d", status)
	}
}
