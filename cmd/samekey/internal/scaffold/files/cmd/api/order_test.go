package main

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

func post(key, body string) events.APIGatewayV2HTTPRequest {
	req := events.APIGatewayV2HTTPRequest{RawPath: "/orders", Headers: map[string]string{"idempotency-key": key}, Body: body}
	req.RequestContext.HTTP.Method = "POST"
	req.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	return req
}

func TestAnOrderIsCreatedOnce(t *testing.T) {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI, createOrder)
	first, err := h.Handle(t.Context(), post("k1", `{"item":"tea","quantity":2}`))
	if err != nil || first.StatusCode != 201 {
		t.Fatalf("status %d, %v: %s", first.StatusCode, err, first.Body)
	}
	again, err := h.Handle(t.Context(), post("k1", `{"item":"tea","quantity":2}`))
	if err != nil || again.StatusCode != 201 || again.Body != first.Body {
		t.Errorf("the retry: status %d, %v: %s; want %s", again.StatusCode, err, again.Body, first.Body)
	}
	other, err := h.Handle(t.Context(), post("k1", `{"item":"tea","quantity":3}`))
	if err != nil || other.StatusCode != 422 {
		t.Errorf("another order with the same key: status %d, %v", other.StatusCode, err)
	}
}

func TestABadOrderIsRefused(t *testing.T) {
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.HTTPAPI, createOrder)
	for _, body := range []string{"", "tea", `{"item":"tea"}`, `{"quantity":1}`} {
		resp, err := h.Handle(t.Context(), post("k2", body))
		if err != nil || resp.StatusCode != 400 {
			t.Errorf("%s: status %d, %v", body, resp.StatusCode, err)
		}
	}
}
