package apigateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// serveRaw serves h on a real server that keeps the case of headers, and
// returns its address.
func serveRaw(t *testing.T, h http.Handler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	listener := KeepHeaderCase(srv, ln)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return ln.Addr().String()
}

// exchange sends bytes as they are and reads one response.
func exchange(t *testing.T, conn net.Conn, raw string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// The events that package lambda is tested with are AWS's own in shape and
// values. Each is turned back into the request it came from; the event that is
// made of that has to be the same.
func TestRESTEventIsAsFromAPIGateway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rest_none", "rest_lambda", "rest_multivalue_binary"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("../../../lambda/testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got := replayREST(t, data)

			// Made up by us, and of no use to anybody.
			ignore := cmpopts.IgnoreMapEntries(func(key string, _ any) bool {
				return key == "resourceId" || key == "deploymentId" || key == "integrationLatency"
			})
			if diff := cmp.Diff(want, got, ignore); diff != "" {
				t.Errorf("event (-AWS +ours):\n%s", diff)
			}
		})
	}
}

// replayREST makes the request that led to an event, sends it to a REST API and
// returns the event that its function got.
func replayREST(t *testing.T, event []byte) map[string]any {
	t.Helper()
	var ev events.APIGatewayProxyRequest
	if err := json.Unmarshal(event, &ev); err != nil {
		t.Fatal(err)
	}
	query := make(url.Values)
	maps.Copy(query, ev.MultiValueQueryStringParameters)
	body := ev.Body
	if ev.IsBase64Encoded {
		b, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(b)
	}
	var raw strings.Builder
	fmt.Fprintf(&raw, "%s %s?%s HTTP/1.1\r\n", ev.HTTPMethod, ev.Path, query.Encode())
	for name, values := range ev.MultiValueHeaders {
		if !strings.HasPrefix(name, "X-Forwarded-") {
			for _, v := range values {
				fmt.Fprintf(&raw, "%s: %s\r\n", name, v)
			}
		}
	}
	fmt.Fprintf(&raw, "Content-Length: %d\r\n\r\n%s", len(body), body)

	var got map[string]any
	route := RESTRoute{Function: lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
		return []byte(`{"statusCode":204}`), json.Unmarshal(payload, &got)
	})}
	if authorizer := ev.RequestContext.Authorizer; authorizer != nil {
		answer := map[string]any{"principalId": authorizer["principalId"], "policyDocument": allowAll, "context": map[string]any{}}
		for name, v := range authorizer {
			if name != "principalId" && name != "integrationLatency" {
				answer["context"].(map[string]any)[name] = v
			}
		}
		route.Authorizer = &RESTAuthorizer{Function: answers(answer)}
	}
	api := RESTAPI(map[string]RESTRoute{ev.HTTPMethod + " " + ev.Resource: route}, func(o *RESTAPIOptions) {
		o.APIID, o.Stage, o.DomainName = ev.RequestContext.APIID, ev.RequestContext.Stage, ev.RequestContext.DomainName
		o.BinaryMediaTypes = []string{"image/*"}
	}).(*restAPI)
	api.now = func() time.Time { return time.UnixMilli(ev.RequestContext.RequestTimeEpoch) }
	api.newID = func() string { return ev.RequestContext.RequestID }
	api.newExtendedID = func() string { return ev.RequestContext.ExtendedRequestID }
	addr := serveRaw(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = ev.RequestContext.Identity.SourceIP + ":51234"
		r.TLS = &tls.ConnectionState{}
		api.ServeHTTP(w, r)
	}))
	if status, body := exchange(t, dial(t, addr), raw.String()); status != http.StatusNoContent {
		t.Fatalf("status %d: %s", status, body)
	}
	return got
}

var allowAll = map[string]any{
	"Version":   "2012-10-17",
	"Statement": []map[string]any{{"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": "*"}},
}

// answers is a function that always returns v.
func answers(v any) lambdarun.InvokerFunc {
	return func(context.Context, []byte) ([]byte, error) { return json.Marshal(v) }
}

// echoHeaders returns the names of the headers as a REST function sees them.
var echoHeaders = lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
	var ev events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, err
	}
	var names []string
	for _, name := range []string{"x-odd", "X-ODD", "X-Odd", "x-second", "X-Second"} {
		if _, ok := ev.Headers[name]; ok {
			names = append(names, name)
		}
	}
	return json.Marshal(map[string]any{"body": strings.Join(names, " ") + "|" + ev.Body})
})

func TestHeaderCaseIsKeptOnEachRequestOfAConnection(t *testing.T) {
	t.Parallel()
	addr := serveRaw(t, RESTAPI(map[string]RESTRoute{"ANY /": {Function: echoHeaders}}))
	conn := dial(t, addr)
	for _, tt := range []struct{ head, body, want string }{
		{"x-odd: 1\r\n", "", "x-odd|"},
		{"X-ODD: 1\r\nX-Second: 2\r\n", "x-odd: not a header\r\n\r\n", "X-ODD X-Second|x-odd: not a header\r\n\r\n"},
		{"X-Odd: 1\r\nx-second: 2\r\n", "x", "X-Odd x-second|x"},
	} {
		raw := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", tt.head, len(tt.body), tt.body)
		if status, got := exchange(t, conn, raw); status != http.StatusOK || got != tt.want {
			t.Errorf("%q: status %d, %q; want %q", tt.head, status, got, tt.want)
		}
	}
}

func TestHeadersHaveGosCaseOnOtherServers(t *testing.T) {
	t.Parallel()
	req := newRequest(t, http.MethodPost, nil)
	req.Header.Set("x-odd", "1")
	if _, got := serve(t, RESTAPI(map[string]RESTRoute{"ANY /": {Function: echoHeaders}}), req); got != "X-Odd|" {
		t.Errorf("headers are %q", got)
	}
}

func TestRESTResponse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		payload string
		accept  string
		status  int
		header  map[string][]string
		body    string
	}{
		"plain": {
			payload: `{"statusCode":201,"headers":{"location":"/rides/1"},"body":"{}"}`,
			status:  201, header: map[string][]string{"Location": {"/rides/1"}, "Content-Type": {"application/json"}}, body: "{}",
		},
		"several values replace one": {
			payload: `{"statusCode":200,"headers":{"X-Tag":"a","x-n":1,"x-b":true},"multiValueHeaders":{"x-tag":["b","c"]},"body":null}`,
			status:  200, header: map[string][]string{"X-Tag": {"b", "c"}, "X-N": {"1"}, "X-B": {"true"}},
		},
		"no status":                  {payload: `{"body":"x"}`, status: 200, body: "x"},
		"status as text":             {payload: `{"statusCode":"202"}`, status: 202},
		"headers that are renamed":   {payload: `{"headers":{"WWW-Authenticate":"Basic","Server":"me"}}`, status: 200, header: map[string][]string{"X-Amzn-Remapped-Www-Authenticate": {"Basic"}, "X-Amzn-Remapped-Server": {"me"}, "Server": nil}},
		"base64 for who wants it":    {payload: `{"body":"AP8=","isBase64Encoded":true}`, accept: "image/png, text/html", status: 200, body: "\x00\xff"},
		"base64 for who doesn't":     {payload: `{"body":"AP8=","isBase64Encoded":true}`, accept: "text/html, image/png", status: 200, body: "AP8="},
		"base64 that is none":        {payload: `{"body":"?","isBase64Encoded":true}`, accept: "image/png", status: 502, body: `{"message": "Internal server error"}`},
		"other members":              {payload: `{"message":"hi"}`, status: 502, body: `{"message": "Internal server error"}`},
		"body that is an object":     {payload: `{"statusCode":200,"body":{"a":1}}`, status: 502, body: `{"message": "Internal server error"}`},
		"a list":                     {payload: `[]`, status: 502, body: `{"message": "Internal server error"}`},
		"null":                       {payload: `null`, status: 502, body: `{"message": "Internal server error"}`},
		"a text":                     {payload: `"x"`, status: 502, body: `{"message": "Internal server error"}`},
		"no JSON":                    {payload: `{`, status: 502, body: `{"message": "Internal server error"}`},
		"a status that is none":      {payload: `{"statusCode":42}`, status: 502, body: `{"message": "Internal server error"}`},
		"a header that is an object": {payload: `{"headers":{"a":{}}}`, status: 502, body: `{"message": "Internal server error"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := RESTAPI(map[string]RESTRoute{
				"ANY /": {Function: lambdarun.InvokerFunc(func(context.Context, []byte) ([]byte, error) { return []byte(tt.payload), nil })},
			}, func(o *RESTAPIOptions) { o.BinaryMediaTypes = []string{"image/*"} })
			req := newRequest(t, http.MethodGet, nil)
			req.Header.Set("Accept", tt.accept)
			rec := httptest.NewRecorder()
			api.ServeHTTP(rec, req)
			if rec.Code != tt.status || rec.Body.String() != tt.body {
				t.Errorf("status %d, body %q; want %d, %q", rec.Code, rec.Body, tt.status, tt.body)
			}
			for header, want := range tt.header {
				if diff := cmp.Diff(want, rec.Header()[header]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", header, diff)
				}
			}
		})
	}
}

func TestRESTGatewaysOwnAnswers(t *testing.T) {
	t.Parallel()
	fails := func(err error) RESTRoute {
		return RESTRoute{Function: lambdarun.InvokerFunc(func(context.Context, []byte) ([]byte, error) { return nil, err })}
	}
	hangs := RESTRoute{Timeout: time.Nanosecond, Function: lambdarun.InvokerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})}
	tests := map[string]struct {
		route     RESTRoute
		path      string
		body      io.Reader
		status    int
		errorType string
		want      string
	}{
		"no route":           {route: fails(errors.New("not reached")), path: "/nowhere", status: 403, errorType: "MissingAuthenticationTokenException", want: `{"message":"Missing Authentication Token"}`},
		"function failed":    {route: fails(&lambdarun.FunctionError{}), path: "/", status: 502, errorType: "InternalServerErrorException", want: `{"message": "Internal server error"}`},
		"throttled":          {route: fails(lambdarun.ErrThrottled), path: "/", status: 500, errorType: "InternalServerErrorException", want: `{"message": "Internal server error"}`},
		"event too large":    {route: fails(lambdarun.ErrRequestTooLarge), path: "/", status: 413, errorType: "RequestTooLargeException", want: `{"message":"Request Too Long"}`},
		"body too large":     {route: fails(errors.New("not reached")), path: "/", body: strings.NewReader(strings.Repeat("x", maxBodyBytes+1)), status: 413, errorType: "RequestTooLargeException", want: `{"message":"Request Too Long"}`},
		"integration's time": {route: hangs, path: "/", status: 504, errorType: "InternalServerErrorException", want: `{"message": "Endpoint request timed out"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, tt.body)
			rec := httptest.NewRecorder()
			RESTAPI(map[string]RESTRoute{"POST /": tt.route}).ServeHTTP(rec, req)
			if rec.Code != tt.status || rec.Body.String() != tt.want {
				t.Errorf("status %d, body %q; want %d, %q", rec.Code, rec.Body, tt.status, tt.want)
			}
			if got := asSpelt(rec.Header(), "x-amzn-ErrorType"); len(got) != 1 || got[0] != tt.errorType {
				t.Errorf("error type %q, want %q", got, tt.errorType)
			}
		})
	}
}

// asSpelt looks a header up as a REST API spells it.
func asSpelt(h http.Header, name string) []string { return h[name] }

func TestEscapedSlashDividesNoSegments(t *testing.T) {
	t.Parallel()
	var ev events.APIGatewayProxyRequest
	api := RESTAPI(map[string]RESTRoute{"GET /a/{x}": {Function: lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
		return []byte(`{}`), json.Unmarshal(payload, &ev)
	})}})
	rec := httptest.NewRecorder()
	api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a/b%2Fc?n=1&n=2&e=", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	if ev.Path != "/a/b%2Fc" || ev.PathParameters["x"] != "b/c" || ev.RequestContext.Path != "/Prod/a/b%2Fc" {
		t.Errorf("path %q, %q, parameters %v", ev.Path, ev.RequestContext.Path, ev.PathParameters)
	}
	if diff := cmp.Diff(map[string][]string{"n": {"1", "2"}, "e": {""}}, ev.MultiValueQueryStringParameters); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"n": "2", "e": ""}, ev.QueryStringParameters); diff != "" {
		t.Errorf("last values (-want +got):\n%s", diff)
	}
}

func TestRESTAPIRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	fn := answers(nil)
	for name, make := range map[string]func(){
		"bad route":   func() { RESTAPI(map[string]RESTRoute{"GET rides": {Function: fn}}) },
		"$default":    func() { RESTAPI(map[string]RESTRoute{"$default": {Function: fn}}) },
		"no function": func() { RESTAPI(map[string]RESTRoute{"GET /": {}}) },
		"no time": func() {
			RESTAPI(map[string]RESTRoute{"GET /": {Function: fn}}, func(o *RESTAPIOptions) { o.IntegrationTimeout = -1 })
		},
		"no function behind an HTTP API's route": func() { HTTPAPIRoutes(map[string]HTTPRoute{"GET /": {}}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			make()
		})
	}
}
