package apigateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRouteTable(t *testing.T) {
	t.Parallel()
	// In an order that helps nobody.
	keys := []string{
		"$default", "ANY /{proxy+}", "GET /pets/{proxy+}", "ANY /pets/dog", "GET /pets/{kind}/{id}",
		"GET /pets/dog/{id}", "GET /pets/dog/1", "POST /pets/{kind}", "ANY /pets/{kind}", "GET /",
	}
	table, err := newRouteTable(keys)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		method, path string
		wantKey      string
		wantParams   map[string]string
	}{
		{"GET", "/pets/dog/1", "GET /pets/dog/1", nil},
		{"GET", "/pets/dog/2", "GET /pets/dog/{id}", map[string]string{"id": "2"}},
		{"GET", "/pets/cat/1", "GET /pets/{kind}/{id}", map[string]string{"kind": "cat", "id": "1"}},
		{"GET", "/pets/cat/1/toys", "GET /pets/{proxy+}", map[string]string{"proxy": "cat/1/toys"}},
		{"GET", "/pets/dog", "ANY /pets/dog", nil},
		{"POST", "/pets/cat", "POST /pets/{kind}", map[string]string{"kind": "cat"}},
		{"DELETE", "/pets/cat", "ANY /pets/{kind}", map[string]string{"kind": "cat"}},
		{"POST", "/pets/dog/1", "ANY /{proxy+}", map[string]string{"proxy": "pets/dog/1"}},
		{"GET", "/pets/dog/1/", "GET /pets/{proxy+}", map[string]string{"proxy": "dog/1/"}},
		{"GET", "/pets/", "ANY /{proxy+}", map[string]string{"proxy": "pets/"}},
		{"GET", "/", "GET /", nil},
		{"POST", "/", "$default", nil},
	}
	for _, tt := range tests {
		key, params, ok := table.find(tt.method, tt.path)
		if key != tt.wantKey || !ok {
			t.Errorf("%s %s: route %q, %t; want %q", tt.method, tt.path, key, ok, tt.wantKey)
		}
		if diff := cmp.Diff(tt.wantParams, params); diff != "" {
			t.Errorf("%s %s: parameters (-want +got):\n%s", tt.method, tt.path, diff)
		}
	}

	strict, err := newRouteTable([]string{"POST /hello"})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range [][2]string{{"GET", "/hello"}, {"POST", "/hello/"}, {"POST", "/Hello"}, {"POST", "/"}} {
		if key, _, ok := strict.find(request[0], request[1]); ok {
			t.Errorf("%v: route %q", request, key)
		}
	}
}
