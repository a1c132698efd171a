package lambda_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/lambda"
)

// A handler gets the request that the client sent, and its answer comes whole: bytes,
// several values of a header, cookies, an escaped path, the invocation's deadline.
func TestRequestsAndAnswersOnLambda(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 4<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	type seen struct {
		Method, Path, Escaped, Query, Host, Remote, URI string
		Cookies                                         []string
		Accept                                          []string
		Length                                          int64
		Body                                            int
		Claims                                          string
		Deadline                                        bool
	}
	var got seen
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{
			Method: r.Method, Path: r.URL.Path, Escaped: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Remote: r.RemoteAddr, URI: r.RequestURI,
			Accept: r.Header.Values("Accept"), Length: r.ContentLength, Body: len(body),
		}
		for _, c := range r.Cookies() {
			got.Cookies = append(got.Cookies, c.String())
		}
		_, got.Deadline = r.Context().Deadline()
		if ev, ok := lambda.EventOf[events.APIGatewayV2HTTPRequest](r.Context()); ok {
			got.Claims = ev.RequestContext.Authorizer.JWT.Claims["sub"]
		}
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", "Origin")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(noise[:3<<20])
	})
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.MaxBody = 4 << 20 })
	wrapped := lambda.WrapHandler(engine, lambda.HTTPAPI, h)
	ev := events.APIGatewayV2HTTPRequest{
		RawPath: "/live/a%2Fb/ä", RawQueryString: "x=1&x=2&y=%20", Cookies: []string{"c=3", "d=4"},
		Headers: map[string]string{"idempotency-key": "k", "accept": "text/html,application/json", "host": "shop.example"},
		Body:    base64.StdEncoding.EncodeToString(noise), IsBase64Encoded: true,
	}
	ev.RequestContext.Stage, ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = "live", http.MethodPost, "203.0.113.9"
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "i", "sub": "jane"}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, replayed := range []string{"", "true"} {
		re, err := wrapped.Handle(ctx, ev)
		if err != nil || re.StatusCode != http.StatusCreated || re.Headers[idem.ReplayedHeader] != replayed {
			t.Fatalf("%d, %v: %v", re.StatusCode, err, re.Headers)
		}
		body, err := base64.StdEncoding.DecodeString(re.Body)
		if err != nil || !re.IsBase64Encoded || !slices.Equal(body, noise[:3<<20]) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		if replayed == "" && (!slices.Equal(re.Cookies, []string{"a=1", "b=2"}) || re.Headers["Vary"] != "Accept, Origin") {
			t.Errorf("cookies %q, headers %v", re.Cookies, re.Headers)
		}
	}
	want := seen{
		Method: "POST", Path: "/a/b/ä", Escaped: "/a%2Fb/%C3%A4", Query: "x=1&x=2&y=%20", Host: "shop.example", Remote: "203.0.113.9:0",
		URI: "/a%2Fb/%C3%A4?x=1&x=2&y=%20", Cookies: []string{"c=3", "d=4"}, Accept: []string{"text/html,application/json"},
		Length: 4 << 20, Body: 4 << 20, Claims: "jane", Deadline: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the handler got (-want +got):\n%s", diff)
	}
	ev.RequestContext.HTTP.Method = http.MethodHead
	if re, err := wrapped.Handle(ctx, ev); err != nil || re.Body != "" || re.StatusCode != http.StatusCreated {
		t.Errorf("a HEAD: %d with %d bytes, %v", re.StatusCode, len(re.Body), err)
	}
}

// A load balancer's event has neither an identity nor the client's address in a field.
func TestHandlerBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	remote := ""
	engine := idem.New(&idem.MemoryStore{}, idem.OneScope)
	h := lambda.WrapHandler(engine, lambda.ALB, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { remote = r.RemoteAddr }))
	ev := events.ALBTargetGroupRequest{
		HTTPMethod: http.MethodGet, Path: "/", Headers: map[string]string{},
	}
	ev.RequestContext.ELB.TargetGroupArn = "arn"
	for forwarded, want := range map[string]string{
		"198.51.100.1, 203.0.113.9": "203.0.113.9:0", "2001:db8::1": "[2001:db8::1]:0", "203.0.113.9:4711": "203.0.113.9:4711",
		"[2001:db8::1]:4711": "[2001:db8::1]:4711", "198.51.100.1:1, 203.0.113.9:4711": "203.0.113.9:4711",
	} {
		ev.Headers["x-forwarded-for"] = forwarded
		if re, err := h.Handle(t.Context(), ev); err != nil || re.StatusCode != 200 || remote != want {
			t.Errorf("%s: %+v, %v, from %s, want %s", forwarded, re, err, remote, want)
		}
	}
	if _, err := h.Invoke(t.Context(), []byte(`{"Records":[]}`)); !errors.Is(err, lambda.ErrEvent) {
		t.Errorf("an event of another kind: %v", err)
	}
}

// The client's address is the one that the gateway has seen, whatever the headers say.
func TestHandlerKnowsItsClient(t *testing.T) {
	t.Parallel()
	remote := ""
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { remote = r.RemoteAddr })
	engine := idem.New(&idem.MemoryStore{}, idem.OneScope)
	header := map[string]string{"x-forwarded-for": "198.51.100.1"}
	for name, serve := range map[string]func(ip string) error{
		"REST": func(ip string) error {
			ev := events.APIGatewayProxyRequest{HTTPMethod: http.MethodGet, Resource: "/", Path: "/", Headers: header}
			ev.RequestContext.Identity.SourceIP = ip
			_, err := lambda.WrapHandler(engine, lambda.REST, h).Handle(t.Context(), ev)
			return err
		},
		"a function URL": func(ip string) error {
			ev := events.LambdaFunctionURLRequest{RawPath: "/", Headers: header}
			ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = http.MethodGet, ip
			_, err := lambda.WrapHandler(engine, lambda.FunctionURL, h).Handle(t.Context(), ev)
			return err
		},
	} {
		for ip, want := range map[string]string{"203.0.113.9": "203.0.113.9:0", "2001:db8::9": "[2001:db8::9]:0", "": ""} {
			if err := serve(ip); err != nil || remote != want {
				t.Errorf("%s, %s: from %s, %v", name, ip, remote, err)
			}
		}
	}
}

// The route of a request is the pattern that the handler tells, with the request's method
// unless it has one, or else the gateway's.
func TestRouteOfAHandler(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{"/orders/{id}": "POST /orders/{id}", "GET /orders/{id}": "GET /orders/{id}", "": "POST /{proxy+}"} {
		got := ""
		engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) { got = r.Route; return "one", nil }
		})
		h := lambda.WrapHandler(engine, lambda.HTTPAPI, http.NotFoundHandler(), func(o *lambda.HandlerOptions) {
			o.Route = func(*http.Request) string { return pattern }
		})
		ev := post("k", "")
		ev.RouteKey = "POST /{proxy+}"
		if _, err := h.Handle(t.Context(), ev); err != nil || got != want {
			t.Errorf("%q: got the route %q, %v, want %q", pattern, got, err, want)
		}
	}
}

// A ServeMux tells the pattern of each request itself.
func TestRouteOfAServeMux(t *testing.T) {
	t.Parallel()
	got := ""
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Scope = func(_ context.Context, r *idem.Request) (string, error) { got = r.Route; return "one", nil }
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}", func(http.ResponseWriter, *http.Request) {})
	if _, err := lambda.WrapHandler(engine, lambda.HTTPAPI, mux).Handle(t.Context(), post("k", "")); err != nil || got != "POST /{kind}" {
		t.Errorf("got the route %q, %v", got, err)
	}
}

// A request without a body, a host's header or a path that can be decoded is one that a server
// would have read.
func TestBareRequestOnLambda(t *testing.T) {
	t.Parallel()
	var got *http.Request
	h := lambda.WrapHandler(idem.New(&idem.MemoryStore{}, idem.OneScope), lambda.FunctionURL, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	ev := events.LambdaFunctionURLRequest{RawPath: "/a%zz"}
	ev.RequestContext.HTTP.Method, ev.RequestContext.DomainName = http.MethodGet, "x.lambda-url.eu-west-3.on.aws"
	if _, err := h.Handle(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
	if got.Body != http.NoBody || got.ContentLength != 0 || got.Host != ev.RequestContext.DomainName || got.URL.Path == "" || got.ProtoMajor != 1 || got.ProtoMinor != 1 {
		t.Errorf("the handler got %+v", got)
	}
	ev.Headers = map[string]string{"host": "shop.example"}
	if _, err := h.Handle(t.Context(), ev); err != nil || got.Host != "shop.example" || got.Header.Get("Host") != "" {
		t.Errorf("from %s the handler got %+v, %v", got.Host, got.Header, err)
	}
}

// A handler reads the headers of a request that has none.
func TestHandlerOfARequestWithoutHeaders(t *testing.T) {
	t.Parallel()
	api, served := lambda.HTTPAPI, 0
	api.Request = func(ctx context.Context, ev v2Request) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		req.Header = nil
		return req, err
	}
	h := lambda.WrapHandler(idem.New(&idem.MemoryStore{}, idem.OneScope), api, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Seen", "1")
		served++
	}))
	ev := post("", "")
	ev.RequestContext.HTTP.Method = http.MethodGet
	if _, err := h.Handle(t.Context(), ev); err != nil || served != 1 {
		t.Errorf("served %d times, %v", served, err)
	}
}

// A handler serves the request as the engine has read it: no event is read twice, and
// none is served that can't be read.
func TestHandlerReadsAnEventOnce(t *testing.T) {
	t.Parallel()
	reads, served := 0, 0
	api := lambda.HTTPAPI
	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
		reads++
		return lambda.HTTPAPI.Request(ctx, ev)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/orders", func(http.ResponseWriter, *http.Request) { served++ })
	h := lambda.WrapHandler(idem.New(&idem.MemoryStore{}, idem.OneScope), api, mux)
	handle := func(method, key, body string, isBase64 bool) (int, error) {
		ev := events.APIGatewayV2HTTPRequest{RawPath: "/orders", Headers: map[string]string{"idempotency-key": key}, Body: body, IsBase64Encoded: isBase64}
		ev.RequestContext.HTTP.Method = method
		re, err := h.Handle(t.Context(), ev)
		return re.StatusCode, err
	}
	key := strings.Repeat("k", 22)
	for i, method := range []string{http.MethodPost, http.MethodGet} {
		if status, err := handle(method, key, "{}", false); status != http.StatusOK || err != nil || reads != i+1 || served != i+1 {
			t.Errorf("%s: %d, %v; read %d times, served %d times", method, status, err, reads, served)
		}
	}
	if status, err := handle(http.MethodPost, key+"2", "?", true); status != http.StatusBadRequest || err != nil || reads != 3 || served != 2 {
		t.Errorf("a body that is none: %d, %v; read %d times, served %d times", status, err, reads, served)
	}
	if _, err := handle(http.MethodGet, "", "?", true); !errors.Is(err, idem.ErrRequest) || reads != 4 || served != 2 {
		t.Errorf("a body that is none, without the engine: %v; read %d times, served %d times", err, reads, served)
	}
}

// A completer runs the handler from the stored request: with its path, body and caller,
// and reads the event once.
func TestHandlerCompletesWithoutItsClient(t *testing.T) {
	t.Parallel()
	store, runs, callers := &idem.MemoryStore{}, 0, []string{}
	app := http.NewServeMux()
	app.HandleFunc("POST /orders/{id}/payments", func(w http.ResponseWriter, r *http.Request) {
		op, _ := idem.FromContext(r.Context())
		ev, ok := lambda.EventOf[events.APIGatewayV2HTTPRequest](r.Context())
		callers = append(callers, fmt.Sprint(op.Caller().Subject, ok, ev.RequestContext.Authorizer.JWT.Claims["sub"]))
		if runs++; runs == 1 {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "paid %s %s", r.PathValue("id"), body)
	})
	engine := idem.New(store, func(o *idem.Options) { o.Resumable, o.Function = true, "pay" })
	reads, api := 0, lambda.HTTPAPI
	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
		reads++
		return lambda.HTTPAPI.Request(ctx, ev)
	}
	h := lambda.WrapHandler(engine, api, app, func(o *lambda.HandlerOptions) { o.Name = "api" })
	ev := events.APIGatewayV2HTTPRequest{RawPath: "/orders/7/payments", RouteKey: "$default", Headers: map[string]string{"idempotency-key": "k1"}, Body: "{}"}
	ev.RequestContext.HTTP.Method = http.MethodPost
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "i", "sub": "jane"}},
	}
	if re, err := h.Handle(t.Context(), ev); err != nil || re.StatusCode != http.StatusInternalServerError {
		t.Fatalf("%+v, %v", re, err)
	}
	for _, rec := range store.Records() {
		ticket := state.TicketFor(rec)
		out, err := h.Invoke(t.Context(), envelope.EncodeTicket(ticket))
		if err != nil || !strings.Contains(string(out), "done") {
			t.Errorf("the completer hears %s, %v", out, err)
		}
	}
	re, err := h.Handle(t.Context(), ev)
	if err != nil || re.StatusCode != http.StatusCreated || re.Body != "paid 7 {}" || runs != 2 {
		t.Errorf("%+v, %v, after %d runs", re, err, runs)
	}
	if len(callers) != 2 || callers[0] != callers[1] || reads != 3 {
		t.Errorf("callers %q; events were read %d times", callers, reads)
	}
}

// Equal paths of two hosts are two routes where the patterns name the hosts: the same
// through a Router, WrapHandler and Middleware.
func TestHostsOfPatterns(t *testing.T) {
	t.Parallel()
	patterns := []string{"POST pay.example/do", "POST refund.example/do", "POST pay.example/in/", "POST refund.example/in/"}
	for name, open := range map[string]func(e *idem.Engine, done *[]string) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error){
		"Router": func(e *idem.Engine, done *[]string) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			r := lambda.NewRouter(lambda.HTTPAPI)
			for _, pattern := range patterns {
				r.Keyed(pattern, e, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
					*done = append(*done, pattern)
					return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
				})
			}
			return r.Handle
		},
		"WrapHandler": func(e *idem.Engine, done *[]string) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			mux := http.NewServeMux()
			for _, pattern := range patterns {
				mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { *done = append(*done, pattern); w.WriteHeader(201) })
			}
			return lambda.WrapHandler(e, lambda.HTTPAPI, mux).Handle
		},
		"Middleware": func(e *idem.Engine, done *[]string) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			mux := http.NewServeMux()
			for _, pattern := range patterns {
				mux.Handle(pattern, e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { *done = append(*done, pattern); w.WriteHeader(201) })))
			}
			return lambda.WrapHandler(idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff }), lambda.HTTPAPI, mux).Handle
		},
	} {
		for _, path := range []string{"/do", "/in/1"} {
			var done []string
			send := open(anEngine(), &done)
			for i, host := range []string{"pay.example", "refund.example", "pay.example"} {
				ev := post("k", "{}")
				ev.RawPath, ev.Headers["host"] = path, host
				want := []int{201, 422, 201}[i]
				if re, err := send(t.Context(), ev); err != nil || re.StatusCode != want {
					t.Errorf("%s, %s%s: got %d, %v, want %d", name, host, path, re.StatusCode, err, want)
				}
			}
			if len(done) != 1 {
				t.Errorf("%s, %s: got %d runs, want 1", name, path, len(done))
			}
		}
	}
}
