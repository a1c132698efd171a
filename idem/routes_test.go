package idem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// said answers with the path that the client sent and the path that was left over.
func said(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI, " as ", r.URL.Path) }

// mounted hands a router the rest of the path, as routers do that know no prefix of
// their own (chi, echo): by a copy of the request, without a pattern.
func mounted(prefix string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = strings.TrimPrefix(r.URL.Path, prefix), strings.TrimPrefix(r.URL.RawPath, prefix)
		inner.Pattern = prefix + "/*"
		h.ServeHTTP(w, inner)
	})
}

// mounts serve POST /charges/new and POST /refunds/new, each in a way of its own, and
// with Middleware where the rest of the path is the same.
func mounts(e *idem.Engine) map[string]http.Handler {
	strip := http.NewServeMux()
	inner := http.NewServeMux()
	inner.Handle("POST /new", e.Middleware(http.HandlerFunc(said)))
	below := http.NewServeMux()
	below.Handle("POST /{what}", e.Middleware(http.HandlerFunc(said)))
	around, chi := http.NewServeMux(), http.NewServeMux()
	deep, deeper := http.NewServeMux(), http.NewServeMux()
	for _, prefix := range []string{"/charges", "/refunds"} {
		strip.Handle(prefix+"/", http.StripPrefix(prefix, inner))
		around.Handle(prefix+"/", http.StripPrefix(prefix, e.Middleware(http.HandlerFunc(said))))
		chi.Handle(prefix+"/", mounted(prefix, e.Middleware(http.HandlerFunc(said))))
		deeper.Handle(prefix+"/", http.StripPrefix(prefix, below))
	}
	deep.Handle("/", deeper)
	whole := http.NewServeMux()
	for _, path := range []string{"/charges/new", "/refunds/new"} {
		whole.Handle("POST "+path, e.Middleware(http.HandlerFunc(said)))
	}
	return map[string]http.Handler{
		"StripPrefix around a mux": strip, "StripPrefix around the middleware": around, "mounted without a pattern": chi, "a mux in a mux": deep,
		"no mux at all": e.Middleware(http.HandlerFunc(said)), "the middleware around a mux": e.Middleware(whole), "a mux": whole,
	}
}

// Two operations are two, however a router has cut their paths. The same key on
// another path is a mismatch, and an operation of its own under ScopeRoute, also if
// neither method nor path are in the fingerprint.
func TestThePathIsTheOneThatWasSent(t *testing.T) {
	t.Parallel()
	byRoute := func(o *idem.Options) { o.ScopeRoute = true }
	skips := func(o *idem.Options) { o.Fingerprint.SkipMethod, o.Fingerprint.SkipPath = true, true }
	for name, tc := range map[string]struct {
		opt  []func(*idem.Options)
		want string // of the refund
	}{
		"by the fingerprint":       {nil, "422 "},
		"by fingerprint and route": {[]func(*idem.Options){byRoute}, "200 /refunds/new"},
		"by the route alone":       {[]func(*idem.Options){byRoute, skips}, "200 /refunds/new"},
	} {
		e := idem.New(new(idem.MemoryStore), append(tc.opt, callertest.Anybody)...)
		for how, h := range mounts(e) {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(h)
				defer server.Close()
				key := strings.ReplaceAll(how, " ", "-")
				if got := sent(t, server.URL+"/charges/new", key); !strings.HasPrefix(got, "200 /charges/new") {
					t.Fatalf("charge: %s", got)
				}
				if got := sent(t, server.URL+"/refunds/new", key); !strings.HasPrefix(got, tc.want) {
					t.Errorf("refund: got %s, want %s", got, tc.want)
				}
				if got := sent(t, server.URL+"/charges/new", key); !strings.HasPrefix(got, "replay 200 /charges/new") {
					t.Errorf("charge again: got %s, want the replay", got)
				}
			})
		}
	}
}

// sent sends a POST over a connection, and returns status and body.
func sent(t *testing.T, url, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(idem.KeyHeader, key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(resp.StatusCode, " ", string(body))
	if resp.Header.Get(idem.ReplayedHeader) != "" {
		got = "replay " + got
	}
	return got
}

// Requests that a program makes have no RequestURI; those through a proxy have the
// whole URL.
func TestPathOfRequestsOfOtherForms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ uri, path string }{
		"made by a program": {"", "/charges/a%2Fb"},
		"as it was sent":    {"/charges/a%2Fb?x=/y", "/b"},
		"through a proxy":   {"http://shop.example/charges/a%2Fb?x=1", "/b"},
		"not a path":        {"*", "/charges/a%2Fb"},
		"no path":           {"http://shop.example", "/charges/a%2Fb"},
		"an authority":      {"shop.example:443", "/charges/a%2Fb"},
		"two slashes":       {"//charges/a%2Fb", "//charges/a%2Fb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ""
			e := idem.New(new(idem.MemoryStore), func(o *idem.Options) {
				o.Scope = func(_ context.Context, r *idem.Request) (string, error) { path = r.Path; return "one", nil }
			})
			r := httptest.NewRequestWithContext(t.Context(), "POST", tc.path, http.NoBody)
			r.RequestURI = tc.uri
			r.Header.Set(idem.KeyHeader, "k")
			e.Middleware(http.HandlerFunc(said)).ServeHTTP(httptest.NewRecorder(), r)
			want := "/charges/a%2Fb"
			if name == "two slashes" {
				want = "//charges/a%2Fb"
			}
			if path != want {
				t.Errorf("path %q, want %q", path, want)
			}
		})
	}
}

// The route of an operation is its method and pattern, or method and path where the
// pattern stands for more than one operation, or for a part of the path.
func TestOperationsByRoute(t *testing.T) {
	t.Parallel()
	type request struct{ method, route, path string }
	for name, tc := range map[string]struct {
		one, other request
		skip       bool // method and path are not in the fingerprint
		want       int  // runs
	}{
		"no pattern":              {request{"POST", "", "/charges"}, request{"POST", "", "/refunds"}, true, 2},
		"no pattern, the same":    {request{"POST", "", "/charges"}, request{"POST", "", "/charges"}, true, 1},
		"another method":          {request{"POST", "", "/charges"}, request{"PATCH", "", "/charges"}, true, 2},
		"another method, pattern": {request{"POST", "/charges", "/charges"}, request{"PATCH", "/charges", "/charges"}, true, 2},
		"the same pattern":        {request{"POST", "POST /charges", "/charges"}, request{"POST", "/charges", "/charges"}, true, 1},
		"other spelling":          {request{"POST", "POST /a b", "/a%20b"}, request{"POST", "POST /a b", "/a b"}, true, 1},
		"an HTTP API's proxy":     {request{"POST", "POST /{proxy+}", "/charges"}, request{"POST", "POST /{proxy+}", "/refunds"}, true, 2},
		"a REST API's proxy":      {request{"POST", "POST /v1/{proxy+}", "/v1/charges"}, request{"POST", "POST /v1/{proxy+}", "/v1/refunds"}, true, 2},
		"$default":                {request{"POST", "$default", "/charges"}, request{"POST", "$default", "/refunds"}, true, 2},
		"the root":                {request{"POST", "/", "/charges"}, request{"POST", "/", "/refunds"}, true, 2},
		"below a path":            {request{"POST", "POST /v1/", "/v1/charges"}, request{"POST", "POST /v1/", "/v1/refunds"}, true, 2},
		"whatever is left":        {request{"POST", "/v1/{rest...}", "/v1/charges"}, request{"POST", "/v1/{rest...}", "/v1/refunds"}, true, 2},
		"chi's":                   {request{"POST", "/v1/*", "/v1/charges"}, request{"POST", "/v1/*", "/v1/refunds"}, true, 2},
		"a base path":             {request{"POST", "POST /new", "/charges/new"}, request{"POST", "POST /new", "/refunds/new"}, true, 2},
		"another end":             {request{"POST", "POST /new", "/charges"}, request{"POST", "POST /new", "/refunds"}, true, 2},
		"more of a path":          {request{"POST", "POST /u", "/u/1"}, request{"POST", "POST /u", "/u/2"}, true, 2},
		"wildcards":               {request{"POST", "POST /u/{id}/c", "/u/1/c"}, request{"POST", "POST /u/{id}/c", "/u/1/c"}, false, 1},
		"the end of a path":       {request{"POST", "POST /u/{$}", "/u/"}, request{"POST", "POST /u/{$}", "/u/"}, true, 1},
		"the end of another":      {request{"POST", "POST /u/{$}", "/u/1"}, request{"POST", "POST /u/{$}", "/u/2"}, true, 2},
		"a host":                  {request{"POST", "POST a.example/c", "/c"}, request{"POST", "POST b.example/c", "/c"}, true, 2},
		"no HTTP":                 {request{"", "SQS orders", ""}, request{"", "SQS orders", ""}, true, 1},
		"no HTTP, another":        {request{"", "SQS orders", ""}, request{"", "SQS refunds", ""}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := idem.New(new(idem.MemoryStore), func(o *idem.Options) {
				o.ScopeRoute, o.Fingerprint.SkipMethod, o.Fingerprint.SkipPath = true, tc.skip, tc.skip
			})
			runs := 0
			for _, r := range []request{tc.one, tc.other} {
				if _, err := e.Do(t.Context(), idem.Request{Key: "k", Scope: "one", Method: r.method, Route: r.route, Path: r.path}, func(context.Context) (idem.Response, error) {
					runs++
					return idem.Response{Status: 201}, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if runs != tc.want {
				t.Errorf("%d operations, want %d", runs, tc.want)
			}
		})
	}
}

// With SkipPath nothing tells the values of wildcards apart: cancelling B would
// replay the answer for A.
func TestWildcardsThatAreSkippedAreRefused(t *testing.T) {
	t.Parallel()
	for name, byRoute := range map[string]bool{"the route in the scope": true, "no route in the scope": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Fingerprint.SkipPath, o.ScopeRoute = true, byRoute })
			patterns := []string{"POST /orders/{id}/cancel"}
			if !byRoute { // as the scope, the path tells them apart
				patterns = append(patterns, "POST /orders/", "POST /", "/orders/{rest...}", "")
			}
			for _, pattern := range patterns {
				h := e.Middleware(http.HandlerFunc(said))
				if pattern != "" {
					mux := http.NewServeMux()
					mux.Handle(pattern, h)
					h = mux
				}
				for _, id := range []string{"a", "b"} {
					r := httptest.NewRequestWithContext(t.Context(), "POST", "/orders/"+id+"/cancel", http.NoBody)
					r.Header.Set(idem.KeyHeader, "k")
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != 500 || !strings.Contains(w.Body.String(), "scope_unknown") {
						t.Errorf("%q: %s: %d %s, want a refusal", pattern, id, w.Code, w.Body)
					}
				}
			}
		})
	}
}
