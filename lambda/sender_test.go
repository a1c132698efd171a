package lambda_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// inHTTP answers an event by an http.Handler, as programs do whose routes are those
// of net/http. It passes on what the client sent, and nothing that was verified.
func inHTTP(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
	return func(ctx context.Context, ev v2Request) (v2Response, error) {
		r := httptest.NewRequestWithContext(ctx, ev.RequestContext.HTTP.Method, ev.RawPath, strings.NewReader(ev.Body))
		for name, value := range ev.Headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return lambda.HTTPAPI.Reply(idem.Response{Status: w.Code, Header: w.Result().Header, Body: w.Body.Bytes()}), nil
	}
}

// signedIn is a POST of a user with a token.
func signedIn(sub, token string) v2Request {
	ev := post("k", `{"amount":5}`)
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://issuer.example", "sub": sub}},
	}
	ev.Headers["authorization"] = "Bearer " + token
	return ev
}

// Middleware inside of a handler knows the caller that the adapter has verified: a
// refreshed token is the same caller, and another user is another.
func TestMiddlewareKnowsTheVerifiedSender(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(http.Handler) func(context.Context, v2Request) (v2Response, error){
		"in a handler of another engine": func(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
			outer := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
			return lambda.Wrap(outer, lambda.HTTPAPI, inHTTP(h)).Handle
		},
		"in a handler that this engine leaves alone": func(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
			outer := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Methods = []string{"DELETE"} })
			return lambda.Wrap(outer, lambda.HTTPAPI, inHTTP(h)).Handle
		},
		"in a handler with an operation of its own": func(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
			outer := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Mode = idem.ModeObserve })
			return lambda.Wrap(outer, lambda.HTTPAPI, inHTTP(h)).Handle
		},
		"in a router's route without keys": func(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
			r := lambda.NewRouter(lambda.HTTPAPI)
			r.Route("/", inHTTP(h))
			return r.Handle
		},
		"in a router's route with keys": func(h http.Handler) func(context.Context, v2Request) (v2Response, error) {
			r := lambda.NewRouter(lambda.HTTPAPI)
			r.Keyed("/", idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff }), inHTTP(h))
			return r.Handle
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := idem.New(new(idem.MemoryStore))
			runs := 0
			handle := open(inner.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				w.WriteHeader(http.StatusCreated)
			})))
			for i, step := range []struct {
				sub, token string
				want       int // runs after the request
			}{{"jane", "t1", 1}, {"jane", "t2", 1}, {"omar", "t2", 2}, {"jane", "t3", 2}, {"omar", "t4", 2}} {
				re, err := handle(t.Context(), signedIn(step.sub, step.token))
				if err != nil || re.StatusCode != 201 || runs != step.want {
					t.Errorf("request %d, %s with %s: %d (%s), %v, %d runs; want 201 and %d runs", i, step.sub, step.token, re.StatusCode, re.Body, err, runs, step.want)
				}
			}
		})
	}
}

// An authorizer that names nobody is nobody inside of the handler, too.
func TestMiddlewareRefusesASenderWithoutAName(t *testing.T) {
	t.Parallel()
	r := lambda.NewRouter(lambda.HTTPAPI)
	r.Route("/", inHTTP(idem.New(new(idem.MemoryStore)).Middleware(http.NotFoundHandler())))
	if re, err := r.Handle(t.Context(), signedIn("", "t1")); err != nil || re.StatusCode != 500 || !strings.Contains(re.Body, "scope_unknown") {
		t.Errorf("%d %s, %v; want scope_unknown", re.StatusCode, re.Body, err)
	}
}

// What is a caller only by choice is chosen inside of a handler, too: a role's session.
func TestMiddlewareKnowsTheFacts(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]*idem.Engine{
		"without an engine": nil, "in an engine that leaves the request alone": idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff }),
		"in an operation": idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Mode, o.Scope = idem.ModeObserve, lambda.RoleScope }),
	} {
		inner := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Scope = lambda.RoleScope })
		runs := 0
		r := lambda.NewRouter(lambda.HTTPAPI)
		if h := inHTTP(inner.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }))); outer == nil {
			r.Route("/", h)
		} else {
			r.Keyed("/", outer, h)
		}
		for i, role := range []string{"Checkout/task-1", "Checkout/task-2", "Refunds/task-1"} {
			ev := post("k", "{}")
			ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:sts::111122223333:assumed-role/" + role},
			}
			if re, err := r.Handle(t.Context(), ev); err != nil || re.StatusCode != 200 || runs != max(1, i) {
				t.Errorf("%s, %s: %d %s, %v, %d runs", name, role, re.StatusCode, re.Body, err, runs)
			}
		}
	}
}

// The status of an operation is for its sender.
func TestStatusKnowsTheVerifiedSender(t *testing.T) {
	t.Parallel()
	inner := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.StatusURL = "/operations/" })
	mux := http.NewServeMux()
	mux.Handle("POST /", inner.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })))
	mux.Handle("GET /api/operations/{key}", http.StripPrefix("/api", inner.StatusHandler()))
	r := lambda.NewRouter(lambda.HTTPAPI)
	r.Route("/", inHTTP(mux))
	if re, err := r.Handle(t.Context(), signedIn("jane", "t1")); err != nil || re.StatusCode != 201 {
		t.Fatalf("%d, %v", re.StatusCode, err)
	}
	for sub, want := range map[string]int{"jane": 201, "omar": 404} {
		ev := signedIn(sub, "t2")
		ev.RequestContext.HTTP.Method, ev.RawPath = "GET", "/api/operations/k"
		if re, err := r.Handle(t.Context(), ev); err != nil || re.StatusCode != want {
			t.Errorf("%s: %d, %v; want %d", sub, re.StatusCode, err, want)
		}
	}
}
