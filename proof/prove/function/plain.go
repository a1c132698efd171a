package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
	"github.com/samekey/samekey/proof/prove/fault"
)

// plain is the function behind each front, and the one that is measured: no proxy stands between it
// and AWS.
type plain struct {
	http, rest, url front
	calls           *recorder
	made            time.Duration // for which Samekey's part of the start took
	events          int
}

type front interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

func servePlain() {
	p := &plain{calls: &recorder{}}
	client, err := dynamo.NewClient(p.calls.record)
	if err != nil {
		log.Fatal(err)
	}
	began := time.Now()
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
	router.Keyed("POST /phases", engine, phases)
	for name, preset := range presets {
		e := idem.New(store, preset, func(o *idem.Options) { o.Namespace, o.Scope = "presets", bearer })
		for _, route := range []string{"POST /presets/%s", "POST /presets/%s/{id}", "PUT /presets/%s/{id}", "POST /presets/%s/{id}/complete", "POST /presets/%s/{id}/cancel"} {
			if pattern := fmt.Sprintf(route, name); e.CheckRoute(pattern) == nil { // the preset says which methods have keys
				router.Keyed(pattern, e, session)
			}
		}
	}
	p.http = router
	p.rest = lambda.Wrap(engine, lambda.REST, func(_ context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.APIGatewayProxyResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
	})
	p.url = lambda.Wrap(engine, lambda.FunctionURL, func(_ context.Context, ev events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.LambdaFunctionURLResponse{StatusCode: status, Headers: isJSON, Body: body}, nil
	})
	p.made, p.calls.client = time.Since(began), client
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

// phases has two commits, each with a write of its own; the last one has the answer.
func phases(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (re events.APIGatewayV2HTTPResponse, _ error) {
	own := func(tx *idem.Tx, name string) {
		tx.Write(dynamo.Put(os.Getenv("PROVE_TABLE"), map[string]string{"id": fault.Own + name + tx.Key("item")}))
	}
	first, err := idem.Atomic(ctx, "first", func(_ context.Context, tx *idem.Tx) (string, error) {
		own(tx, "first#")
		return "done", nil
	})
	if err != nil {
		return re, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (events.APIGatewayV2HTTPResponse, error) {
		own(tx, "second#")
		status, body := made(ev.Body, ev.IsBase64Encoded)
		return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json", "X-First": first}, Body: body}, nil
	})
}

// Invoke passes an event to the adapter of its front. Without a front it tells of the process.
func (p *plain) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	p.events++
	var ev struct {
		Method  string            `json:"httpMethod"`
		Headers map[string]string `json:"headers"`
		Context *struct {
			Domain string `json:"domainName"`
		} `json:"requestContext"`
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, err
	}
	switch {
	case ev.Context == nil:
		return json.Marshal(fault.Start{Events: p.events, Made: p.made.Microseconds()})
	case ev.Method != "":
		return p.rest.Invoke(ctx, payload)
	case strings.Contains(ev.Context.Domain, ".lambda-url."):
		return p.url.Invoke(ctx, payload)
	case ev.Headers[strings.ToLower(fault.Header)] == fault.Measured:
		return p.measured(ctx, payload)
	}
	return p.http.Invoke(ctx, payload)
}

// measured answers with what the request took, and what its calls take that the SDK makes alone.
func (p *plain) measured(ctx context.Context, payload []byte) ([]byte, error) {
	p.calls.begin()
	began := time.Now()
	raw, err := p.http.Invoke(ctx, payload)
	took := time.Since(began)
	f := p.calls.end()
	floor, trouble := p.calls.again(ctx)
	if trouble != nil {
		f.Trouble = trouble.Error()
	}
	var out events.APIGatewayV2HTTPResponse
	if err := errors.Join(err, json.Unmarshal(raw, &out)); err != nil {
		return nil, err
	}
	f.Took, f.Floor = took.Microseconds(), floor.Microseconds()
	said, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	out.Headers[fault.Header] = string(said)
	return json.Marshal(out)
}
