package lambda_test

import (
	"context"
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
