package stack

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/local/sam"
)

// The paths only: without functions behind the routes a front can't be made, so
// each API is a handler that says what it got.
func TestAPIsAreUnderTheirStages(t *testing.T) {
	t.Parallel()
	says := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(name + " " + r.URL.EscapedPath())
		})
	}
	fr := &gateway{mounts: []mount{
		{id: "Rest", path: "/v1", rest: true, handler: says("rest")},
		{id: "Http", path: "", handler: says("http")},
		{id: "Beta", path: "/v1beta", handler: says("beta")},
	}}
	if got := fr.main(); got != "" {
		t.Errorf("the main API is at %q", got)
	}
	for path, want := range map[string]string{
		"/":             "http /",
		"/rides/1":      "http /rides/1",
		"/v1":           "rest /",
		"/v1/":          "rest /",
		"/v1/a%2Fb/c":   "rest /a%2Fb/c",
		"/v1beta/rides": "beta /rides",
		"/v2/rides":     "http /v2/rides",
		"/v1/a%20b":     "rest /a%20b",
	} {
		rec := httptest.NewRecorder()
		fr.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		var got string
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || got != want {
			t.Errorf("%s went to %q, %v; want %q", path, got, err, want)
		}
	}
	rec := httptest.NewRecorder()
	(&gateway{}).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("without APIs: status %d", rec.Code)
	}
}

func TestPathsOfAPIs(t *testing.T) {
	t.Parallel()
	functions := map[string]*function{"Fn": {}}
	route := func(key string) []sam.Route { return []sam.Route{{Key: key, Function: "Fn"}} }
	fr, err := newGateway([]sam.API{
		{ID: "A", Stage: "$default", Routes: route("GET /a")},
		{ID: "B", Stage: "$default", Routes: route("GET /b")},
		{ID: "C", Stage: "v1", REST: true, Routes: route("GET /c")},
		{ID: "D", Stage: "v1", REST: true, Routes: route("GET /d")},
	}, functions, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"A": "", "B": "/B", "C": "/v1", "D": "/D"} {
		if got := fr.at(id); got != want {
			t.Errorf("%s is at %q, want %q", id, got, want)
		}
	}
}

func TestRoutesThatCannotBeServedAreRefused(t *testing.T) {
	t.Parallel()
	functions := map[string]*function{"Fn": {}}
	api := func(id, stage string, keys ...string) sam.API {
		a := sam.API{ID: id, Stage: stage}
		for _, key := range keys {
			a.Routes = append(a.Routes, sam.Route{Key: key, Function: "Fn"})
		}
		return a
	}
	for want, apis := range map[string][]sam.API{
		"collides with API Rest under /v1": {api("Http", "$default", "GET /v1/rides"), api("Rest", "v1", "GET /")},
		"appears twice":                    {api("Http", "$default", "GET /a", "GET /a")},
		"is neither":                       {api("Http", "$default", "GET a")},
	} {
		_, err := newGateway(apis, functions, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
