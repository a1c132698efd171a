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

// Two operations are two, however a router has cut their paths: the same key on another
// path is a mismatch.
func TestThePathIsTheOneThatWasSent(t *testing.T) {
	t.Parallel()
	e := idem.New(new(idem.MemoryStore), callertest.Anybody)
	for how, h := range mounts(e) {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(h)
			defer server.Close()
			key := strings.ReplaceAll(how, " ", "-")
			for _, step := range []struct{ path, want string }{
				{"/charges/new", "200 /charges/new"}, {"/refunds/new", "422 "}, {"/charges/new", "replay 200 /charges/new"},
			} {
				if got := sent(t, server.URL+step.path, key); !strings.HasPrefix(got, step.want) {
					t.Fatalf("%s: got %s, want %s", step.path, got, step.want)
				}
			}
		})
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
