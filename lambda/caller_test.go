package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// Where no authorizer says who is calling, nothing that the request presents does: the
// same through each adapter.
func TestNobodyIsGuessed(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		store := &watched{}
		e := idem.New(store, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
		for name, header := range map[string]http.Header{
			"nothing": {}, "a token": {"Authorization": {"Bearer ann"}}, "an API key": {"X-Api-Key": {"live-1"}}, "a session": {"Cookie": {"sid=ann"}},
			"another token": {"X-Auth-Token": {"ann"}}, "a load balancer's OIDC": {"X-Amzn-Oidc-Identity": {"ann"}, "X-Amzn-Oidc-Data": {"e30.e30.e30"}},
		} {
			c := newCall("k")
			maps.Copy(c.header, header)
			a := s.send(t, s.wrap(e, h), c)
			if a.refused(t, 500, "scope_unknown"); strings.Contains(string(a.body), "ann") {
				t.Errorf("%s is in the answer: %s", name, a.body)
			}
		}
		store.untouched(t)
		ran(t, runs, 0)
	})
}

// Each verified caller has keys of its own, whatever its token is now, and is one caller through
// both kinds of API.
func TestCallersHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, ways := range [][]source{{httpAPI}, {rest}, {functionURL}, {httpAPI, httpAPI, rest, rest}} {
		runs := 0
		e := idem.New(&idem.MemoryStore{})
		for i, step := range []struct {
			user, token, want string
			replayed          bool
		}{{"ann", "1", "1", false}, {"bob", "1", "2", false}, {"ann", "2", "1", true}, {"bob", "3", "2", true}} {
			s := ways[i%len(ways)]
			c := newCall("k")
			c.user = step.user
			c.header.Set("Authorization", "Bearer "+step.token)
			s.send(t, s.wrap(e, func(context.Context, []byte) (idem.Response, error) {
				runs++
				return idem.Response{Status: 201, Body: fmt.Append(nil, runs)}, nil
			}), c).accepted(t, 201, step.want, step.replayed)
		}
	}
}

// restFrom is a REST API's event of what API Gateway has checked.
func restFrom(set func(*events.APIGatewayProxyRequestContext)) events.APIGatewayProxyRequest {
	ev := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/rides", Path: "/rides", Headers: map[string]string{"Idempotency-Key": "k"}}
	ev.RequestContext.APIID = "api1"
	set(&ev.RequestContext)
	return ev
}

// answers is a wrapped handler whose runs have different answers.
func answersOf(optFns ...func(*idem.Options)) func(*testing.T, events.APIGatewayProxyRequest) (status int, body string) {
	n := 0
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, optFns...), lambda.REST, func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		n++
		return events.APIGatewayProxyResponse{StatusCode: 201, Body: string(rune('0' + n))}, nil
	})
	return func(t *testing.T, ev events.APIGatewayProxyRequest) (int, string) {
		t.Helper()
		re, err := h.Handle(t.Context(), ev)
		if err != nil {
			t.Fatal(err)
		}
		return re.StatusCode, re.Body
	}
}

// Who is a caller by default, and who by choice: API keys name programs, certificates and sessions
// are facts. A name of a Lambda authorizer counts within its API.
func TestCallersByChoice(t *testing.T) {
	t.Parallel()
	type event = events.APIGatewayProxyRequest
	key := func(id string) event {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Identity.APIKeyID = id })
	}
	user := func(api, principal, key string) event {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.APIID, rc.Authorizer, rc.Identity.APIKeyID = api, map[string]any{"principalId": principal}, key
		})
	}
	cert := func(issuer, subject string) event {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.Identity.ClientCert = &events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert{IssuerDN: issuer, SubjectDN: subject}
		})
	}
	by := func(arn string) event {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Identity.UserArn = arn })
	}
	const sts, iam = "arn:aws:sts::111122223333:", "arn:aws:iam::111122223333:"
	one, two, other := by(sts+"assumed-role/Checkout/1"), by(sts+"assumed-role/Checkout/2"), by(sts+"assumed-role/Other/1")
	federated, poolSession := by(sts+"federated-user/a/b"), by(sts+"assumed-role/Checkout/CognitoIdentityCredentials")
	poolUser := poolSession
	poolUser.RequestContext.Identity.CognitoIdentityPoolID, poolUser.RequestContext.Identity.CognitoIdentityID = "p", "i"
	person, likePerson := by(sts+"assumed-role/AWSReservedSSO_Admin_0a1b/ann@example.com"), by(sts+"assumed-role/Checkout/AWSReservedSSO_Admin")
	for name, tc := range map[string]struct {
		scope  func(context.Context, *idem.Request) (string, error)
		events []event
		want   []string // an answer for each, "" if it is refused
	}{
		"facts are nobody":            {nil, []event{key("a"), cert("CN=CA", "CN=ann"), one, federated, poolSession, likePerson}, []string{"", "", "", "", "", ""}},
		"users are callers":           {nil, []event{by(iam + "user/ops/ann"), by(iam + "root"), person, poolUser, person}, []string{"1", "2", "3", "4", "3"}},
		"people behind API keys":      {nil, []event{user("x", "ann", "a"), user("x", "bob", "a"), user("x", "ann", "b")}, []string{"1", "2", "1"}},
		"names count within an API":   {nil, []event{user("x", "ann", ""), user("y", "ann", ""), user("x", "ann", "")}, []string{"1", "2", "1"}},
		"APIKeyScope":                 {lambda.APIKeyScope, []event{key("a"), key("b"), key("a"), key("")}, []string{"1", "2", "1", ""}},
		"CertificateScope":            {lambda.CertificateScope, []event{cert("CN=CA", "CN=ann"), cert("CN=CA", "CN=bob"), cert("CN=x", "CN=ann")}, []string{"1", "2", "3"}},
		"CertificateScope, no name":   {lambda.CertificateScope, []event{cert("CN=CA|CN=ann", ""), key("a")}, []string{"", ""}},
		"CertificateScope, separated": {lambda.CertificateScope, []event{cert("CN=a|b", "c"), cert("CN=a", "b|c")}, []string{"1", "2"}},
		"RoleScope":                   {lambda.RoleScope, []event{one, two, other, one, by(iam + "user/ann")}, []string{"1", "1", "2", "1", "3"}},
		"RoleScope, no role":          {lambda.RoleScope, []event{federated, poolSession, user("x", "ann", ""), by(sts + "assumed-role/1"), key("a")}, []string{"", "", "", "", ""}},
		"SessionScope":                {lambda.SessionScope, []event{one, two, one, by(iam + "user/ann")}, []string{"1", "2", "1", "3"}},
		"SessionScope, no session":    {lambda.SessionScope, []event{poolSession, user("x", "ann", ""), key("a")}, []string{"", "", ""}},
	} {
		send := answersOf(func(o *idem.Options) { o.Scope = tc.scope })
		for i, ev := range tc.events {
			status, body := send(t, ev)
			if want := tc.want[i]; want == "" && status != 500 || want != "" && (status != 201 || body != want) {
				t.Errorf("%s, event %d: got %d %s, want %q", name, i, status, body, want)
			}
		}
		// An authorizer takes the place of a choice: who comes without its fact has no record under it.
		if former := tc.scope; former != nil {
			if status, body := answersOf(func(o *idem.Options) { o.Former = &idem.Former{Scope: former} })(t, user("x", "jane", "")); status != 201 {
				t.Errorf("%s, formerly: got %d %s, want 201", name, status, body)
			}
		}
	}
	var log strings.Builder
	answersOf(func(o *idem.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })(t, one)
	if s := log.String(); !strings.Contains(s, "lambda.RoleScope") || !strings.Contains(s, "lambda.SessionScope") {
		t.Errorf("the log of a refused session names no cures: %s", s)
	}
	ev := post("k", "{}")
	ev.RequestContext.Authentication.ClientCert.IssuerDN, ev.RequestContext.Authentication.ClientCert.SubjectDN = "CN=CA", "CN=ann"
	v2, err2 := lambda.HTTPAPI.Request(t.Context(), ev)
	v1, err1 := lambda.REST.Request(t.Context(), cert("CN=CA", "CN=ann"))
	if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(v2.Facts, v1.Facts) {
		t.Errorf("an HTTP API's certificate is %+v, a REST API's %+v, %v", v2.Facts, v1.Facts, err)
	}
}

// An authorizer that names nobody must not let everybody into one scope.
func TestUnnamedCallerIsRefused(t *testing.T) {
	t.Parallel()
	store := &watched{}
	h, runs := counted(created)
	for _, authorizer := range []any{
		map[string]any{"jwt": map[string]any{"claims": map[string]any{"iss": "i"}}},
		map[string]any{"lambda": map[string]any{"plan": "gold"}},
		map[string]any{"lambda": nil},
	} {
		s := editedSource(httpAPI, func(ev map[string]any) { ev["requestContext"].(map[string]any)["authorizer"] = authorizer })
		s.send(t, s.wrap(idem.New(store, callertest.Anybody), h), newCall("k")).refused(t, 500, "scope_unknown")
	}
	store.untouched(t)
	ran(t, runs, 0)
}

// A user who acts for two organisations under one login is two callers by ClaimScope, in
// each kind of event.
func TestOrganisationsUnderOneLogin(t *testing.T) {
	t.Parallel()
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	type jwt = events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription
	v2 := func(by func(org any) *authorizer) func(any) (idem.Request, error) {
		return func(org any) (idem.Request, error) {
			ev := post("k", "{}")
			ev.RequestContext.Authorizer = by(org)
			return lambda.HTTPAPI.Request(t.Context(), ev)
		}
	}
	v1 := func(authorizer func(org any) map[string]any) func(any) (idem.Request, error) {
		return func(org any) (idem.Request, error) {
			return lambda.REST.Request(t.Context(), restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Authorizer = authorizer(org) }))
		}
	}
	for name, read := range map[string]func(org any) (idem.Request, error){
		"HTTP API, JWT": v2(func(org any) *authorizer {
			text, _ := org.(string)
			return &authorizer{JWT: &jwt{Claims: map[string]string{"iss": "i", "sub": "ann", "org": text}}}
		}),
		"HTTP API, Lambda": v2(func(org any) *authorizer { return &authorizer{Lambda: map[string]any{"sub": "ann", "org": org}} }),
		"REST, Cognito": v1(func(org any) map[string]any {
			return map[string]any{"claims": map[string]any{"iss": "i", "sub": "ann", "org": org}}
		}),
		"REST, Lambda": v1(func(org any) map[string]any { return map[string]any{"principalId": "ann", "org": org} }),
	} {
		runs := 0
		e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Scope = lambda.ClaimScope("org") })
		for i, tc := range []struct {
			org    any
			status int
			runs   int
		}{{"a", 201, 1}, {"b", 201, 2}, {"a", 201, 2}, {"", 500, 2}, {nil, 500, 2}, {true, 500, 2}} {
			req, err := read(tc.org)
			if err != nil {
				t.Fatal(err)
			}
			req.Key = "k"
			res, err := e.Serve(t.Context(), req, func(context.Context) (idem.Response, error) { runs++; return idem.Response{Status: 201}, nil })
			if err != nil || res.Status != tc.status || runs != tc.runs {
				t.Errorf("%s, %d: %d after %d runs, %v; want %d after %d", name, i, res.Status, runs, err, tc.status, tc.runs)
			}
		}
	}
	// Names don't run together.
	r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Facts: idem.Facts{Claims: map[string]any{"a": "x|y", "b": "z", "c": "x", "d": "y|z"}}}
	one, err1 := lambda.ClaimScope("a", "b")(t.Context(), &r)
	two, err2 := lambda.ClaimScope("c", "d")(t.Context(), &r)
	if one == two || err1 != nil || err2 != nil {
		t.Errorf("got %q and %q, %v, %v", one, two, err1, err2)
	}
}

// A subject may be a number, as long as it is exact.
func TestNumericSubject(t *testing.T) {
	t.Parallel()
	for sub, want := range map[any]string{float64(42): "42", "42": "42", float64(1<<53 - 1): "9007199254740991", float64(1 << 53): "", 1.5: "", float64(0): "", true: ""} {
		for name, authorizer := range map[string]map[string]any{"principalId": {"principalId": sub}, "sub": {"sub": sub}, "claims": {"claims": map[string]any{"sub": sub}}} {
			req, err := lambda.REST.Request(t.Context(), restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Authorizer = authorizer }))
			if got := req.Identity.Subject[strings.Index(req.Identity.Subject, "|")+1:]; err != nil || got != want {
				t.Errorf("%s %v: got the caller %q, %v, want %q", name, sub, got, err, want)
			}
		}
	}
}

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
