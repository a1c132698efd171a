package lambda

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
)

// A body is text unless its bytes aren't, or so many of them are control characters, in a body
// that may be too large, that base64 is shorter.
func TestTextBody(t *testing.T) {
	t.Parallel()
	const small = 128 << 10
	controls := func(all, n int, c string) string { return strings.Repeat(c, n) + strings.Repeat("x", all-n) }
	for name, tt := range map[string]struct {
		body   string
		base64 bool
	}{
		"nothing":                      {"", false},
		"text":                         {"Zürich", false},
		"no UTF-8":                     {"\xff", true},
		"no UTF-8, large":              {strings.Repeat("\xff", small+1), true},
		"small, of control characters": {controls(small, small, "\x01"), false},
		"larger, of them":              {controls(small+1, small+1, "\x01"), true},
		"larger, a fifteenth":          {controls(15*10_000, 10_000, "\x01"), false},
		"larger, more than that":       {controls(15*10_000, 10_001, "\x01"), true},
		"larger, of the last of them":  {controls(15*10_000, 10_001, "\x1f"), true},
		"larger, of spaces":            {controls(15*10_000, 100_000, " "), false},
		"larger, of lines":             {controls(15*10_000, 100_000, "\n"), false},
		"larger, of returns":           {controls(15*10_000, 100_000, "\r"), false},
		"larger, of tabs":              {controls(15*10_000, 100_000, "\t"), false},
		"larger, of vertical tabs":     {controls(15*10_000, 100_000, "\v"), true},
		"larger, of backspaces":        {controls(15*10_000, 100_000, "\b"), true},
		"larger, of form feeds":        {controls(15*10_000, 100_000, "\f"), true},
		"larger, of shift outs":        {controls(15*10_000, 100_000, "\x0e"), true},
	} {
		got, isBase64 := textBody([]byte(tt.body))
		want := tt.body
		if tt.base64 {
			want = base64.StdEncoding.EncodeToString([]byte(want))
		}
		if isBase64 != tt.base64 || got != want {
			t.Errorf("%s: in base64 %v, want %v", name, isBase64, tt.base64)
		}
	}
	for name, tt := range map[string]struct {
		body string
		was  bool
		want bool
	}{"text": {"a", false, false}, "text in base64": {"a", true, true}, "no UTF-8": {"\xff", false, true}} {
		if got, isBase64 := eventBody([]byte(tt.body), tt.was); isBase64 != tt.want || (got == tt.body) == tt.want {
			t.Errorf("the event's %s: %q, in base64 %v", name, got, isBase64)
		}
	}
}

// Nothing stays nothing, in whatever form an event has it.
func TestNothingStaysNothing(t *testing.T) {
	t.Parallel()
	if b, err := decoded("", true); b != nil || err != nil {
		t.Errorf("a body: %q, %v", b, err)
	}
	if q := joinedParameters(""); q != nil {
		t.Errorf("a query: %v", q)
	}
	if m := lastOf(http.Header{}); m != nil {
		t.Errorf("headers: %v", m)
	}
	if m := lastOf(http.Header{"A": {}, "B": {"1", "2"}}); !cmp.Equal(m, map[string]string{"B": "2"}) {
		t.Errorf("a header without values: %v", m)
	}
	if q := encodedQuery(nil, nil); q != "" {
		t.Errorf("parameters: %q", q)
	}
}

// A query is read as the client sent it, also where it can't be decoded.
func TestQueries(t *testing.T) {
	t.Parallel()
	const raw = "a=%zz&b=1%202&&b=+&c"
	if got, want := decodedQuery(raw), (url.Values{"a": {"%zz"}, "b": {"1 2", " "}, "c": {""}}); !cmp.Equal(got, want) {
		t.Errorf("decoded %v, want %v", got, want)
	}
	if got, want := splitQuery(raw), (url.Values{"a": {"%zz"}, "b": {"1%202", "+"}, "c": {""}}); !cmp.Equal(got, want) {
		t.Errorf("split %v, want %v", got, want)
	}
	if got := joinedParameters(raw)["b"]; got != "1 2, " {
		t.Errorf("joined %q", got)
	}
	multi := map[string][]string{"b": {"2", "1"}, "a": {"x y"}}
	if got := rawQuery(map[string]string{"c": "z"}, multi); got != "a=x y&b=2&b=1" {
		t.Errorf("raw %q", got)
	}
	if got := rawQuery(map[string]string{"c": "z"}, nil); got != "c=z" {
		t.Errorf("raw, of single values %q", got)
	}
	if got := withCookies(http.Header{}, []string{"a=1"}).Get("Cookie"); got != "a=1" {
		t.Errorf("one cookie is %q", got)
	}
	if got := withCookies(http.Header{}, nil); len(got) != 0 {
		t.Errorf("no cookie is %q", got)
	}
}

// What every adapter for HTTP does with events that are none, with bodies that can't be decoded,
// and with requests that are never stored.
func TestRequestsOfAdapters(t *testing.T) {
	t.Parallel()
	type read func(ctx context.Context, method, body string) (idem.Request, error)
	for name, request := range map[string]read{
		"HTTPAPI": func(ctx context.Context, method, body string) (idem.Request, error) {
			var ev events.APIGatewayV2HTTPRequest
			ev.RequestContext.HTTP.Method, ev.RawPath, ev.Body, ev.IsBase64Encoded, ev.RouteKey = method, "/", body, body != "", "$default"
			ev.RequestContext.APIID = "api"
			return HTTPAPI.Request(ctx, ev)
		},
		"REST": func(ctx context.Context, method, body string) (idem.Request, error) {
			return REST.Request(ctx, events.APIGatewayProxyRequest{HTTPMethod: method, Resource: "/", Path: "/", Body: body, IsBase64Encoded: body != ""})
		},
		"FunctionURL": func(ctx context.Context, method, body string) (idem.Request, error) {
			var ev events.LambdaFunctionURLRequest
			ev.RequestContext.HTTP.Method, ev.RawPath, ev.Body, ev.IsBase64Encoded = method, "/", body, body != ""
			ev.RequestContext.HTTP.SourceIP = "203.0.113.9"
			return FunctionURL.Request(ctx, ev)
		},
		"ALB": func(ctx context.Context, method, body string) (idem.Request, error) {
			ev := events.ALBTargetGroupRequest{HTTPMethod: method, Path: "/", Body: body, IsBase64Encoded: body != ""}
			ev.RequestContext.ELB.TargetGroupArn = "arn"
			return ALB.Request(ctx, ev)
		},
	} {
		if _, err := request(t.Context(), "", ""); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: without a method: %v, want ErrEvent", name, err)
		}
		if _, err := request(t.Context(), http.MethodPost, "?"); !errors.Is(err, idem.ErrRequest) {
			t.Errorf("%s: a body that is none: %v, want ErrRequest", name, err)
		}
		req, err := request(t.Context(), http.MethodPost, "e30=")
		if err != nil || len(req.Snapshot) == 0 || string(req.Body) != "{}" {
			t.Errorf("%s: a POST: %+v, %v", name, req, err)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if req, err := request(t.Context(), method, ""); err != nil || req.Snapshot != nil {
				t.Errorf("%s: a %s has the snapshot %s, %v", name, method, req.Snapshot, err)
			}
		}
		if req, err := request(context.WithValue(t.Context(), unstoredKey{}, struct{}{}), http.MethodPost, "e30="); err != nil || req.Snapshot != nil {
			t.Errorf("%s: with an engine that stores none: %s, %v", name, req.Snapshot, err)
		}
	}
}

// A snapshot of nothing is none, and of what has no JSON form it is an error.
func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	if b, err := take(v2Snapshot{}); b != nil || err != nil {
		t.Errorf("of nothing: %s, %v", b, err)
	}
	ev := events.APIGatewayProxyRequest{HTTPMethod: http.MethodPost, Resource: "/", Path: "/"}
	ev.RequestContext.Authorizer = map[string]any{"principalId": "u", "f": func() {}}
	if _, err := REST.Request(t.Context(), ev); !errors.Is(err, idem.ErrRequest) {
		t.Errorf("of a function: %v", err)
	}
	if got := (v2Cognito{AMR: []string{}}).IsZero() || (v2Cognito{IdentityID: "i"}).IsZero() || (v2Cognito{IdentityPoolID: "p"}).IsZero() || !(v2Cognito{}).IsZero(); got {
		t.Error("what is something is taken for nothing")
	}
	for stage, want := range map[string]string{"": "/a", "live": "/live/a"} {
		if got := stagePath(stage, "/a"); got != want {
			t.Errorf("on %q the path is %s, want %s", stage, got, want)
		}
	}
}
