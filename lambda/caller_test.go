package lambda_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
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

// Who is verified may come with a fresh token, or another key of a usage plan.
func TestVerifiedCallersMayRefreshTheirToken(t *testing.T) {
	t.Parallel()
	each(t, []source{httpAPI, rest, functionURL}, func(t *testing.T, s source) {
		h, runs := counted(created)
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}), h)
		for i, token := range []string{"Bearer 1", "Bearer 2"} {
			c := newCall("k")
			c.user = "ann"
			c.header.Set("Authorization", token)
			s.send(t, wrapped, c).accepted(t, 201, createdBody, i == 1)
		}
		ran(t, runs, 1)
	})
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

// An API key names a program, and the tokens behind it name people: the key is no
// caller unless the program says so.
func TestAPIKeysAreCallersByChoice(t *testing.T) {
	t.Parallel()
	keyed := func(id string) events.APIGatewayProxyRequest {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.Identity.APIKeyID, rc.Identity.APIKey = id, "secret of "+id
		})
	}
	behind := func(id, user string) events.APIGatewayProxyRequest {
		ev := keyed(id)
		ev.RequestContext.Authorizer = map[string]any{"principalId": user}
		return ev
	}
	send := answersOf()
	if status, body := send(t, keyed("a")); status != 500 || !strings.Contains(body, "scope_unknown") {
		t.Errorf("a key alone: %d %s, want 500 scope_unknown", status, body)
	}
	for i, ev := range []events.APIGatewayProxyRequest{behind("a", "ann"), behind("a", "bob"), behind("b", "ann")} {
		if status, body := send(t, ev); status != 201 || body != []string{"1", "2", "1"}[i] {
			t.Errorf("person %d: %d %s", i, status, body)
		}
	}
	send = answersOf(func(o *idem.Options) { o.Scope = lambda.APIKeyScope })
	for i, ev := range []events.APIGatewayProxyRequest{keyed("a"), keyed("b"), keyed("a")} {
		if status, body := send(t, ev); status != 201 || body != []string{"1", "2", "1"}[i] {
			t.Errorf("by choice %d: %d %s", i, status, body)
		}
	}
	if status, _ := send(t, keyed("")); status != 500 {
		t.Errorf("without a key: %d, want 500", status)
	}
	req, err := lambda.REST.Request(t.Context(), keyed("a"))
	if err != nil || strings.Contains(string(req.Snapshot), "secret") {
		t.Errorf("the snapshot has the key's value: %s, %v", req.Snapshot, err)
	}
}

// A certificate is a caller by choice, in both kinds of API, with its issuer.
func TestCertificatesAreCallersByChoice(t *testing.T) {
	t.Parallel()
	with := func(issuer, subject string) events.APIGatewayProxyRequest {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.Identity.ClientCert = &events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert{IssuerDN: issuer, SubjectDN: subject}
		})
	}
	if status, _ := answersOf()(t, with("CN=CA", "CN=ann")); status != 500 {
		t.Errorf("by default: %d, want 500", status)
	}
	send := answersOf(func(o *idem.Options) { o.Scope = lambda.CertificateScope })
	for i, ev := range []events.APIGatewayProxyRequest{with("CN=CA", "CN=ann"), with("CN=CA", "CN=bob"), with("CN=other", "CN=ann"), with("CN=CA|CN=ann", ""), with("CN=CA", "CN=ann")} {
		status, body := send(t, ev)
		if want := []string{"1", "2", "3", "", "1"}[i]; want == "" && status != 500 || want != "" && (status != 201 || body != want) {
			t.Errorf("%d: %d %s, want %s", i, status, body, want)
		}
	}
	if status, _ := send(t, restFrom(func(*events.APIGatewayProxyRequestContext) {})); status != 500 {
		t.Errorf("without a certificate: %d, want 500", status)
	}
	ev := post("k", "{}")
	ev.RequestContext.Authentication.ClientCert.IssuerDN, ev.RequestContext.Authentication.ClientCert.SubjectDN = "CN=CA", "CN=ann"
	v2, err := lambda.HTTPAPI.Request(t.Context(), ev)
	v1, err1 := lambda.REST.Request(t.Context(), with("CN=CA", "CN=ann"))
	if err = errors.Join(err, err1); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v2.Facts, v1.Facts) {
		t.Errorf("an HTTP API's certificate is %+v, a REST API's %+v", v2.Facts, v1.Facts)
	}
}

// A session of a role is nobody by default: the answer names no cure, the log both.
// An authorizer takes the place of a choice, in two releases: who comes without an API key
// now has no record under the former scope.
func TestAChoiceOfCallersComesToAnEnd(t *testing.T) {
	t.Parallel()
	for name, choice := range map[string]func(context.Context, *idem.Request) (string, error){
		"API keys": lambda.APIKeyScope, "certificates": lambda.CertificateScope, "roles": lambda.RoleScope, "sessions": lambda.SessionScope,
	} {
		send := answersOf(func(o *idem.Options) { o.Former = &idem.Former{Scope: choice} })
		jane := restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.Authorizer = map[string]any{"claims": map[string]any{"iss": "https://issuer", "sub": "jane"}}
		})
		if status, body := send(t, jane); status != 201 {
			t.Errorf("%s: %d %s, want 201", name, status, body)
		}
	}
}

func TestSessionsAreCallersByChoice(t *testing.T) {
	t.Parallel()
	by := func(arn string) events.APIGatewayProxyRequest {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) { rc.Identity.UserArn = arn })
	}
	role := "arn:aws:sts::111122223333:assumed-role/Checkout/"
	one, two := by(role+"task-1"), by(role+"task-2")
	var log strings.Builder
	if status, _ := answersOf(func(o *idem.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })(t, one); status != 500 {
		t.Errorf("by default: %d, want 500", status)
	}
	if s := log.String(); !strings.Contains(s, "lambda.RoleScope") || !strings.Contains(s, "lambda.SessionScope") {
		t.Errorf("the log names no cures: %s", s)
	}
	for name, tc := range map[string]struct {
		scope func(context.Context, *idem.Request) (string, error)
		same  bool
	}{"RoleScope": {lambda.RoleScope, true}, "SessionScope": {lambda.SessionScope, false}} {
		send := answersOf(func(o *idem.Options) { o.Scope = tc.scope })
		_, first := send(t, one)
		_, second := send(t, two)
		if (first == second) != tc.same {
			t.Errorf("%s: two sessions got %s and %s", name, first, second)
		}
		if _, again := send(t, one); again != first {
			t.Errorf("%s: a retry got %s, want %s", name, again, first)
		}
		if _, other := send(t, by("arn:aws:sts::111122223333:assumed-role/Other/task-1")); other == first {
			t.Errorf("%s: another role shares the answer", name)
		}
	}
	if status, _ := answersOf(func(o *idem.Options) { o.Scope = lambda.RoleScope })(t, by("arn:aws:sts::111122223333:federated-user/ann")); status != 500 {
		t.Errorf("RoleScope of a session without a role: %d, want 500", status)
	}
	for name, choice := range map[string]func(context.Context, *idem.Request) (string, error){"RoleScope": lambda.RoleScope, "SessionScope": lambda.SessionScope} {
		if status, _ := answersOf(func(o *idem.Options) { o.Scope = choice })(t, by(role+"CognitoIdentityCredentials")); status != 500 {
			t.Errorf("%s: all users of an identity pool are one caller: %d, want 500", name, status)
		}
	}
	for name, arn := range map[string]string{
		"a user": "arn:aws:iam::111122223333:user/ops/ann", "the root": "arn:aws:iam::111122223333:root",
		"a person of Identity Center": "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Admin_0a1b/ann@example.com",
	} {
		if status, body := answersOf()(t, by(arn)); status != 201 {
			t.Errorf("%s: %d %s, want 201", name, status, body)
		}
	}
	for name, arn := range map[string]string{
		"a federated user": "arn:aws:sts::111122223333:federated-user/ann", "an unnamed pool's user": role + "CognitoIdentityCredentials",
		"a role that only looks like Identity Center's": role + "AWSReservedSSO_Admin",
	} {
		if status, body := answersOf()(t, by(arn)); status != 500 {
			t.Errorf("%s: %d %s, want 500", name, status, body)
		}
	}
	pool := by(role + "CognitoIdentityCredentials")
	pool.RequestContext.Identity.CognitoIdentityPoolID, pool.RequestContext.Identity.CognitoIdentityID = "p", "i"
	if status, body := answersOf()(t, pool); status != 201 {
		t.Errorf("a pool's user: %d %s, want 201", status, body)
	}
}

// Two Lambda authorizers may give one name to two callers: it counts within its API.
func TestNamesOfAuthorizersCountWithinTheirAPI(t *testing.T) {
	t.Parallel()
	at := func(api string) events.APIGatewayProxyRequest {
		return restFrom(func(rc *events.APIGatewayProxyRequestContext) {
			rc.APIID, rc.Authorizer = api, map[string]any{"principalId": "user-1"}
		})
	}
	send := answersOf()
	for i, api := range []string{"api1", "api2", "api1"} {
		if _, body := send(t, at(api)); body != []string{"1", "2", "1"}[i] {
			t.Errorf("%s: got %s", api, body)
		}
	}
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
