package idem

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
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

// What a record keeps of a request is what a completer's run needs: no header that is not
// asked for, and a query whose bytes a text can hold.
func TestInputOfARequest(t *testing.T) {
	t.Parallel()
	r := &Request{
		Method: "POST", Path: "/a", Query: "a=\x80\xff&b=\u00fc~", Route: "POST /a", Body: []byte("1"), Snapshot: []byte("2"), Identity: Identity{Kind: "jwt", Subject: "ann"},
		Header: http.Header{"Content-Type": {"text/plain"}, "X-A": {"1", "2"}, "X-B": {"3"}, "Cookie": {"4"}},
	}
	want := &store.Input{
		Method: "POST", Path: "/a", Query: "a=%80%FF&b=%C3%BC~", Body: []byte("1"), Snapshot: []byte("2"), Identity: Identity{Kind: "jwt", Subject: "ann"},
		Header: http.Header{"Content-Type": {"text/plain"}, "X-A": {"1", "2"}},
	}
	if diff := cmp.Diff(want, inputOf(r, []string{"x-a", "X-None"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if in := inputOf(&Request{Query: "b=\u00fc"}, nil); in.Header != nil || in.Query != "b=\u00fc" {
		t.Errorf("of an empty request: %+v", in)
	}
	for n, fine := range map[int]bool{0: true, 1: false} {
		in := &store.Input{Path: strings.Repeat("x", 64<<10-3+n), Header: http.Header{"X-A": nil, "A": {"1", ""}}}
		if err := storable(in, 0); (err == nil) != fine || !fine && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes over the limit: %v", n, err)
		}
	}
}

// A stored query has no credentials, and a router finds the host of its route again.
func TestStoredRequestHasNoToken(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"a=1&access_token=s&b=2": "a=1&b=2", "X-Amz-Signature=s&a=1": "a=1", "api%5Fkey=s": "", "q=Bearer+s": "", "next=eyJh.e30.s": "", "a=1&&b": "a=1&&b", "": "",
	} {
		if got := inputOf(&Request{Query: query}, nil).Query; got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	in := inputOf(&Request{Path: "/do", Route: "POST pay.example/do"}, nil)
	if got := in.Header.Get("Host"); got != "pay.example" {
		t.Errorf("the host is %q, want pay.example", got)
	}
}
