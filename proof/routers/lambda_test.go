package routers

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// plainApp has the route and knows nothing of Lambda, nor of keys.
func plainApp(b *bank) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/payments", func(w http.ResponseWriter, r *http.Request) { paid(w, r, b, r.PathValue("id")) })
	return mux
}

func chiApp(b *bank) http.Handler {
	mux := chi.NewRouter()
	mux.Post("/orders/{id}/payments", func(w http.ResponseWriter, r *http.Request) { paid(w, r, b, chi.URLParam(r, "id")) })
	return mux
}

func paid(w http.ResponseWriter, r *http.Request, b *bank, order string) {
	p, err := b.pay(r.Context(), order)
	if err != nil {
		http.Error(w, "try again", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(p)
}

// gateway sends a request through an adapter, as the gateway of its events does.
type gateway func(t *testing.T, e *idem.Engine, app http.Handler, opt func(*lambda.HandlerOptions)) func(method, path, user, key string) answer

func invoking[Ev, Re any](a lambda.Adapter[Ev, Re], event func(method, path, user, key string) Ev) gateway {
	return func(t *testing.T, e *idem.Engine, app http.Handler, opt func(*lambda.HandlerOptions)) func(method, path, user, key string) answer {
		t.Helper()
		h := lambda.WrapHandler(e, a, app, opt)
		return func(method, path, user, key string) answer {
			t.Helper()
			payload, err := json.Marshal(event(method, path, user, key))
			if err != nil {
				t.Fatal(err)
			}
			out, err := h.Invoke(t.Context(), payload)
			if err != nil {
				t.Fatal(err)
			}
			var re struct {
				StatusCode      int
				Headers         map[string]string
				Body            string
				IsBase64Encoded bool
			}
			if err := json.Unmarshal(out, &re); err != nil {
				t.Fatal(err)
			}
			return answer{re.StatusCode, re.Body, re.Headers[idem.ReplayedHeader] == "true"}
		}
	}
}

func headersOf(user, key string) map[string]string {
	h := map[string]string{"x-user": user, "host": "shop.example"}
	if key != "" {
		h["idempotency-key"] = key
	}
	return h
}

var gateways = map[string]struct {
	gateway
	route string
}{
	"HTTP API": {invoking(lambda.HTTPAPI, func(method, path, user, key string) events.APIGatewayV2HTTPRequest {
		ev := events.APIGatewayV2HTTPRequest{RawPath: "/live" + path, RouteKey: "$default", Headers: headersOf(user, key)}
		ev.RequestContext.Stage, ev.RequestContext.HTTP.Method = "live", method
		if user != "" {
			ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://issuer.example", "sub": user}},
			}
		}
		return ev
	}), "POST /*"},
	"REST API": {invoking(lambda.REST, func(method, path, user, key string) events.APIGatewayProxyRequest {
		ev := events.APIGatewayProxyRequest{HTTPMethod: method, Path: path, Resource: "/{proxy+}", Headers: headersOf(user, key)}
		ev.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "https://issuer.example", "sub": user}}
		return ev
	}), "POST /{proxy+}"},
	"function URL": {invoking(lambda.FunctionURL, func(method, path, user, key string) events.LambdaFunctionURLRequest {
		ev := events.LambdaFunctionURLRequest{RawPath: path, Headers: headersOf(user, key)}
		ev.RequestContext.HTTP.Method = method
		ev.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{
			IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::1:user/" + user},
		}
		return ev
	}), "POST /*"},
}

// An application under any router runs on Lambda as it is: each gateway's keyed POST runs
// once, for the caller that the gateway has verified, and its route is the router's
// pattern where that is told.
func TestRoutersOnLambda(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.TestMode)
	const pattern = "POST /orders/{id}/payments"
	for name, tc := range map[string]struct {
		app   func(*bank) http.Handler
		route func(http.Handler) func(*http.Request) string // nil: as it is
		tells bool
	}{
		"net/http": {plainApp, nil, true},
		"chi": {chiApp, func(app http.Handler) func(*http.Request) string {
			return func(r *http.Request) string {
				return app.(chi.Routes).Find(chi.NewRouteContext(), r.Method, r.URL.Path)
			}
		}, true},
		"chi, without its pattern": {chiApp, nil, false},
		"echo":                     {echoApp, nil, false},
		"gin":                      {ginApp, nil, false},
		"huma":                     {humaApp, nil, true}, // on net/http's mux
		"oapi-codegen":             {generatedApp, nil, true},
	} {
		for from, gw := range gateways {
			t.Run(name+", "+from, func(t *testing.T) {
				t.Parallel()
				b := &bank{charges: make(map[string]string), silent: true}
				routes := make(map[string]int)
				engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
					o.Hooks.Ended = func(_ context.Context, s idem.Summary) { routes[s.Route]++ }
				})
				app := tc.app(b)
				send := gw.gateway(t, engine, app, func(o *lambda.HandlerOptions) {
					if tc.route != nil {
						o.Route = tc.route(app)
					}
				})
				b.paysOnce(t, send)
				route := gw.route
				if tc.tells {
					route = pattern
				}
				if diff := cmp.Diff(map[string]int{route: 5}, routes); diff != "" {
					t.Errorf("routes (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The same application is a plain server by one if: what runs on Lambda is what main
// decides.
func serves(engine *idem.Engine, app http.Handler, onLambda bool) any {
	if onLambda {
		return lambda.WrapHandler(engine, lambda.HTTPAPI, app) // for lambda.Start
	}
	return engine.Middleware(app) // for http.ListenAndServe
}

// Through both doors of one program the same key is the same operation.
func TestOneMainForLambdaAndServer(t *testing.T) {
	t.Parallel()
	b := &bank{charges: make(map[string]string)}
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Scope = func(_ context.Context, r *idem.Request) (string, error) { return r.Header.Get("X-User"), nil }
	})
	server := httptest.NewServer(serves(engine, plainApp(b), false).(http.Handler))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders/7/payments", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", "jane")
	r.Header.Set(idem.KeyHeader, "k1")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	first, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	ev := events.APIGatewayV2HTTPRequest{RawPath: "/orders/7/payments", Headers: headersOf("jane", "k1")}
	ev.RequestContext.HTTP.Method = http.MethodPost
	re, err := serves(engine, plainApp(b), true).(*lambda.Handler[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]).Handle(t.Context(), ev)
	if err != nil || re.Body != string(first) || b.runs != 1 {
		t.Errorf("on Lambda: %+v, %v, after %d runs; want %s", re, err, b.runs, first)
	}
}
