package idem

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A field that would split the answer is dropped, and named; names get their canonical form.
func TestClean(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in, want http.Header
		dropped  []string
	}{
		"canonical":       {http.Header{"X-A": {"1", "2"}}, http.Header{"X-A": {"1", "2"}}, nil},
		"lower case":      {http.Header{"x-a": {"1"}}, http.Header{"X-A": {"1"}}, nil},
		"two spellings":   {http.Header{"x-a": {"3"}, "X-A": {"1"}, "X-a": {"2"}}, http.Header{"X-A": {"1", "2", "3"}}, nil},
		"any token":       {http.Header{"!#$%&'*+-.^_`|~09az": {"1"}}, http.Header{"!#$%&'*+-.^_`|~09az": {"1"}}, nil},
		"a return":        {http.Header{"X-A": {"1", "\rX-B: 1"}, "X-B": {"2"}}, http.Header{"X-B": {"2"}}, []string{"X-A"}},
		"a line":          {http.Header{"X-A": {"\nX-B: 1"}}, http.Header{}, []string{"X-A"}},
		"a zero":          {http.Header{"X-A": {"\x00"}}, http.Header{}, []string{"X-A"}},
		"a zero later":    {http.Header{"X-A": {"1\x00"}}, http.Header{}, []string{"X-A"}},
		"an empty value":  {http.Header{"X-A": {""}}, http.Header{"X-A": {""}}, nil},
		"without a name":  {http.Header{"": {"1"}}, http.Header{}, []string{""}},
		"not to be shown": {http.Header{"X\x1b\x7fé\nA": {"1"}}, http.Header{}, []string{"X????A"}},
	} {
		r := Response{Header: tt.in}
		dropped := clean(&r)
		if diff := cmp.Diff(tt.want, r.Header); diff != "" || !cmp.Equal(tt.dropped, dropped) || r.Status != http.StatusOK {
			t.Errorf("%s: status %d, dropped %q (-want +got):\n%s", name, r.Status, dropped, diff)
		}
	}
	for c := range 256 {
		name := "X" + string([]byte{byte(c)})
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		mark := false
		for _, m := range []byte("!#$%&'*+-.^_`|~") { // tokens: RFC 9110, section 5.6.2
			mark = mark || byte(c) == m
		}
		if validName(name) != (letter || mark) {
			t.Errorf("the name %q is valid: %t", name, validName(name))
		}
	}
}

// A record keeps the headers of the list and those that the program adds, and never one of
// a secret, a connection or a gateway.
func TestStoredPart(t *testing.T) {
	t.Parallel()
	allowed := allowList([]string{"x-mine", "x-amz-mine"})
	all := http.Header{"Content-Type": {"text/plain"}, "X-Mine": {"1"}}
	kept := storedPart(Response{Header: all}, allowed)
	if diff := cmp.Diff(all, kept.Header); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	all["X-Amz-Mine"], all["X-Other"] = []string{"2"}, []string{"3"}
	some := storedPart(Response{Header: all}, allowed)
	if diff := cmp.Diff(http.Header{"Content-Type": {"text/plain"}, "X-Mine": {"1"}}, some.Header); diff != "" || len(all) != 4 {
		t.Errorf("of %v (-want +got):\n%s", all, diff)
	}
	if none := storedPart(Response{Header: http.Header{"X-Other": {"3"}}}, allowed); none.Header != nil {
		t.Errorf("kept %v", none.Header)
	}
	r := Response{Header: http.Header{"x-amz-id": {"1"}, "set-cookie": {"2"}, "Authorization": {"3"}, "X-Mine": {"4"}}}
	replayable(&r)
	if diff := cmp.Diff(http.Header{"X-Mine": {"4"}}, r.Header); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
}
