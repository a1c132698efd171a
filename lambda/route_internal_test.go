package lambda

import (
	"context"
	"net/http"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A pattern has a method, a host and a path.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a/{id}": "PUT /a/{id}", "POST /a": "POST /a", "POST  \t/a": "POST /a", "POST shop.example/a/{id}": "POST shop.example/a/{id}", "shop.example/": "PUT shop.example/",
		"s/a": "PUT s/a",
	} {
		p := parsePattern(text)
		if got := p.route("PUT"); got != want {
			t.Errorf("%q: the route is %q, want %q", text, got, want)
		}
	}
	p := parsePattern("POST shop.example/a/{id}")
	ctx, err := p.values(t.Context(), &idem.Request{Method: "POST", Path: "/a/7"})
	if err != nil || PathValue(ctx, "id") != "7" {
		t.Errorf("the value is %q, %v", PathValue(ctx, "id"), err)
	}
	if ctx, err := p.values(t.Context(), &idem.Request{Method: "POST", Path: "/b/7"}); ctx != nil || err == nil {
		t.Errorf("another path has a value: %v", err)
	}
	plain := parsePattern("POST /a")
	if ctx, err := plain.values(t.Context(), &idem.Request{Method: "POST", Path: "/b"}); ctx != t.Context() || err != nil {
		t.Errorf("a pattern without values: %v", err)
	}
	if PathValue(context.Background(), "id") != "" {
		t.Error("there is a value outside of a router")
	}
}

// A path with an escape that is none is a path like any other.
func TestMatchOfABadEscape(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("GET /files/{name}", &target{})
	m := match(mux, &idem.Request{Method: http.MethodGet, Path: "/files/%zz"})
	if m.target == nil || m.request.PathValue("name") != "%zz" {
		t.Errorf("matched %+v", m)
	}
}

// The answer without a route is the program's own, and isn't written to.
func TestRefusalLeavesTheHeaderAlone(t *testing.T) {
	t.Parallel()
	shared := http.Header{"A": {"b"}}
	m := &matched{status: http.StatusMethodNotAllowed, header: http.Header{"Allow": {"GET"}}}
	got := m.refusal(func(p idem.Problem) idem.Response { return idem.Response{Status: p.Status, Header: shared} })
	if got.Header.Get("Allow") != "GET" || got.Header.Get("A") != "b" || len(shared) != 1 {
		t.Errorf("answered %v; the program's own is %v now", got.Header, shared)
	}
}
