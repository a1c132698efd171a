package lambda_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// A handler behind an HTTP API. A function's main hands the result of Wrap to
// Start, with a store on DynamoDB; a test calls Handle.
func ExampleWrap() {
	hello := func(_ context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		fmt.Println("handler runs")
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "hello, " + req.Body}, nil
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI, hello)

	req := events.APIGatewayV2HTTPRequest{
		RawPath: "/hello",
		Headers: map[string]string{"idempotency-key": "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		Body:    "world",
	}
	req.RequestContext.HTTP.Method = "POST"
	req.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://id.example", "sub": "jane"}},
	}
	for range 2 {
		resp, err := h.Handle(context.Background(), req)
		fmt.Println(resp.StatusCode, resp.Body, resp.Headers["Idempotent-Replayed"], err)
	}
	req.Body = "moon" // another request with the same key
	resp, err := h.Handle(context.Background(), req)
	fmt.Println(resp.StatusCode, resp.Headers["Content-Type"], err)
	// Output:
	// handler runs
	// 201 hello, world  <nil>
	// 201 hello, world true <nil>
	// 422 application/problem+json <nil>
}

// The same behind a REST API.
func ExampleWrap_rest() {
	hello := func(_ context.Context, req events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		fmt.Println("handler runs")
		return events.APIGatewayProxyResponse{StatusCode: 201, Body: "hello, " + req.Body}, nil
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.REST, hello)

	req := events.APIGatewayProxyRequest{
		HTTPMethod:        "POST",
		Resource:          "/hello",
		Path:              "/hello",
		MultiValueHeaders: map[string][]string{"Idempotency-Key": {"8e03978e-40d5-43e8-bc93-6894a57f9324"}},
		Body:              "world",
	}
	req.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "https://id.example", "sub": "jane"}} // of Cognito
	for range 2 {
		resp, err := h.Handle(context.Background(), req)
		fmt.Println(resp.StatusCode, resp.Body, resp.Headers["Idempotent-Replayed"], err)
	}
	// Output:
	// handler runs
	// 201 hello, world  <nil>
	// 201 hello, world true <nil>
}

// The same behind a function URL with the AuthType AWS_IAM.
func ExampleWrap_functionURL() {
	hello := func(_ context.Context, req events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		fmt.Println("handler runs")
		return events.LambdaFunctionURLResponse{StatusCode: 201, Body: "hello, " + req.Body}, nil
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.FunctionURL, hello)

	req := events.LambdaFunctionURLRequest{
		RawPath: "/hello",
		Headers: map[string]string{"idempotency-key": "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		Body:    "world",
	}
	req.RequestContext.HTTP.Method = "POST"
	req.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{
		IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::123456789012:user/jane"},
	}
	for range 2 {
		resp, err := h.Handle(context.Background(), req)
		fmt.Println(resp.StatusCode, resp.Body, resp.Headers["Idempotent-Replayed"], err)
	}
	// Output:
	// handler runs
	// 201 hello, world  <nil>
	// 201 hello, world true <nil>
}

// The same behind an Application Load Balancer, whose target group has
// multi-value headers on. A load balancer verifies nobody, so a public route treats all
// callers as one.
func ExampleWrap_alb() {
	hello := func(_ context.Context, req events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		fmt.Println("handler runs")
		return events.ALBTargetGroupResponse{StatusCode: 201, Body: "hello, " + req.Body}, nil
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, idem.OneScope), lambda.ALB, hello)

	req := events.ALBTargetGroupRequest{
		HTTPMethod:        "POST",
		Path:              "/hello",
		MultiValueHeaders: map[string][]string{"idempotency-key": {"8e03978e-40d5-43e8-bc93-6894a57f9324"}},
		Body:              "world",
	}
	req.RequestContext.ELB.TargetGroupArn = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/hello/6d0ecf831eec9f09"
	for range 2 {
		resp, err := h.Handle(context.Background(), req)
		fmt.Println(resp.StatusDescription, resp.Body, resp.MultiValueHeaders["Idempotent-Replayed"], err)
	}
	// Output:
	// handler runs
	// 201 Created hello, world [] <nil>
	// 201 Created hello, world [true] <nil>
}

// An adapter that takes the scope from what a Lambda authorizer found out, so
// that a key belongs to a tenant and not to one of its users.
func ExampleAdapter() {
	api := lambda.HTTPAPI // a copy
	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		if err != nil {
			return req, err
		}
		if a := ev.RequestContext.Authorizer; a != nil {
			req.Scope, _ = a.Lambda["tenant"].(string)
		}
		if req.Scope == "" {
			return req, fmt.Errorf("%w: no tenant", idem.ErrScope)
		}
		return req, nil
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), api,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
		})

	for _, authorizer := range []map[string]any{
		{"sub": "alice", "tenant": "acme"},
		{"sub": "bob", "tenant": "acme"},
		{"sub": "carol", "tenant": "umbrella"},
		{"sub": "dave"},
	} {
		req := events.APIGatewayV2HTTPRequest{Headers: map[string]string{"idempotency-key": "k"}}
		req.RequestContext.HTTP.Method = "POST"
		req.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: authorizer}
		resp, _ := h.Handle(context.Background(), req)
		fmt.Println(authorizer["sub"], resp.StatusCode, resp.Headers["Idempotent-Replayed"] == "true")
	}
	// Output:
	// alice 201 false
	// bob 201 true
	// carol 201 false
	// dave 500 false
}

// A function that is wired to the wrong source says so.
func ExampleHandler_Invoke() {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{}, nil
		})
	_, err := h.Invoke(context.Background(), []byte(`{"Records": [{"eventSource": "aws:sqs", "body": "hello"}]}`))
	fmt.Println(errors.Is(err, lambda.ErrEvent))
	fmt.Println(err)
	// Output:
	// true
	// lambda: event of another kind: want an HTTP API event (payload format 2.0): it has no requestContext.http.method; the payload is records of "aws:sqs"
}
