package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// plain is the function behind each front. No proxy stands between it and AWS.
type plain struct{ http, rest, url front }

type front interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

func servePlain() {
	client, err := dynamo.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err != nil {
		log.Fatal(err)
	}
	engine := idem.New(store, func(o *idem.Options) { o.Namespace, o.Scope = "plain", bearer })
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /plain", engine, func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
	})
	for name, preset := range presets {
		e := idem.New(store, preset, func(o *idem.Options) { o.Namespace, o.Scope = "presets", bearer })
		for _, route := range []string{"POST /presets/%s", "POST /presets/%s/{id}", "PUT /presets/%s/{id}", "POST /presets/%s/{id}/complete", "POST /presets/%s/{id}/cancel"} {
			if pattern := fmt.Sprintf(route, name); e.CheckRoute(pattern) == nil { // the preset says which methods have keys
				router.Keyed(pattern, e, session)
			}
		}
	}
	p := &plain{http: router}
	p.rest = lambda.Wrap(engine, lambda.REST, func(_ context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.APIGatewayProxyResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
	})
	p.url = lambda.Wrap(engine, lambda.FunctionURL, func(_ context.Context, ev events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.LambdaFunctionURLResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
	})
	lambda.Start(p)
}

// presets are served below /presets, each by its name.
var presets = map[string]func(*idem.Options){"stripe": idem.Stripe, "stripe-v1": idem.StripeV1, "ietf": idem.IETF, "acp": idem.ACP, "ucp": idem.UCP}

var isJSON = map[string]string{"Content-Type": "application/json"}

// bearer takes the token for the caller: the stack has no other secret, and goes.
func bearer(_ context.Context, r *idem.Request) (string, error) {
	if token := r.Header.Get("Authorization"); token != "" {
		return token, nil
	}
	return "", idem.ErrScope
}

// made answers a request.
func made(body string, isBase64 bool) (int, string) {
	if isBase64 {
		raw, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return http.StatusBadRequest, `{"error":"no base64"}`
		}
		body = string(raw)
	}
	var in struct {
		At float64 `json:"origin_lat"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.At > 90 {
		return http.StatusUnprocessableEntity, `{"error":"no such place"}`
	}
	return http.StatusCreated, fmt.Sprintf(`{"at":%v,"id":"%d"}`, in.At, time.Now().UnixNano())
}

// session answers all that the contract of a preset asks for: whoever runs again makes another answer.
func session(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	status, body := made(ev.Body, ev.IsBase64Encoded)
	if status == http.StatusUnprocessableEntity { // Stripe frees the key of a 400
		status = http.StatusBadRequest
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
}

// Invoke passes an event to the adapter of its front.
func (p *plain) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev struct {
		Method  string `json:"httpMethod"`
		Context struct {
			Domain string `json:"domainName"`
		} `json:"requestContext"`
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, err
	}
	switch {
	case ev.Method != "":
		return p.rest.Invoke(ctx, payload)
	case strings.Contains(ev.Context.Domain, ".lambda-url."):
		return p.url.Invoke(ctx, payload)
	}
	return p.http.Invoke(ctx, payload)
}
