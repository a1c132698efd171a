package lambda_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// A function with several routes: some keyed, some not, one door for the gateway's
// events and for the completer.
func ExampleRouter() {
	type (
		request  = events.APIGatewayV2HTTPRequest
		response = events.APIGatewayV2HTTPResponse
	)
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Resumable, o.Function = true, "charges" })
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /charges", engine, func(context.Context, request) (response, error) {
		return response{StatusCode: 201, Body: "charged"}, nil
	})
	router.Keyed("POST /charges/{id}/refunds", engine, func(ctx context.Context, _ request) (response, error) {
		return response{StatusCode: 201, Body: "refunded " + lambda.PathValue(ctx, "id")}, nil
	})
	router.Route("GET /charges/{id}", func(ctx context.Context, _ request) (response, error) {
		return response{StatusCode: 200, Body: lambda.PathValue(ctx, "id")}, nil
	})
	// lambda.Start(router)

	for _, r := range [][2]string{{"POST", "/charges"}, {"POST", "/charges/7/refunds"}, {"POST", "/charges/7/refunds"}, {"GET", "/charges/7"}, {"GET", "/charges"}} {
		ev := request{RawPath: r[1], Headers: map[string]string{"idempotency-key": fmt.Sprintf("%x", r[1])}}
		ev.RequestContext.HTTP.Method = r[0]
		ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://id.example", "sub": "jane"}},
		}
		re, err := router.Handle(context.Background(), ev)
		if err != nil {
			fmt.Println(err)
			continue
		}
		if re.StatusCode < 400 {
			fmt.Println(re.StatusCode, re.Body, re.Headers["Idempotent-Replayed"] == "true")
		} else {
			fmt.Println(re.StatusCode, re.Headers["Allow"])
		}
	}
	// Output:
	// 201 charged false
	// 201 refunded 7 false
	// 201 refunded 7 true
	// 200 7 false
	// 405 POST
}

// A handler that finds its routes by a switch gets keys route by route: the rest still
// goes to it by the fallback "/", with the path as it came. docs/use/retrofit.md explains it.
func ExampleRouter_switch() {
	type (
		request  = events.APIGatewayV2HTTPRequest
		response = events.APIGatewayV2HTTPResponse
	)
	handler := func(_ context.Context, ev request) (response, error) {
		switch ev.RequestContext.HTTP.Method + " " + strings.TrimSuffix(ev.RawPath, "/") {
		case "POST /charges":
			return response{StatusCode: 201, Body: "charged"}, nil
		case "GET /charges":
			return response{StatusCode: 200, Body: "all charges, at " + ev.RawPath}, nil
		}
		return response{StatusCode: 404}, nil
	}
	engine := idem.New(new(idem.MemoryStore), idem.OneScope, func(o *idem.Options) { o.Key = idem.KeyOptional })

	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /charges", engine, handler)
	router.Keyed("POST /charges/{$}", engine, handler) // the switch takes it, too
	router.Route("/", handler)

	for _, r := range []string{"POST /charges", "POST /charges/", "GET /charges/", "GET /nowhere"} {
		method, path, _ := strings.Cut(r, " ")
		for range 2 {
			ev := request{Version: "2.0", RawPath: path, Headers: map[string]string{"idempotency-key": "5f2c8a1e9b7d4c3fa0e6" + strings.ReplaceAll(path, "/", "-")}}
			ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path = method, path
			re, err := router.Handle(context.Background(), ev)
			fmt.Println(r, re.StatusCode, re.Body, re.Headers["Idempotent-Replayed"] == "true", err)
		}
	}
	// Output:
	// POST /charges 201 charged false <nil>
	// POST /charges 201 charged true <nil>
	// POST /charges/ 201 charged false <nil>
	// POST /charges/ 201 charged true <nil>
	// GET /charges/ 200 all charges, at /charges/ false <nil>
	// GET /charges/ 200 all charges, at /charges/ false <nil>
	// GET /nowhere 404  false <nil>
	// GET /nowhere 404  false <nil>
}
