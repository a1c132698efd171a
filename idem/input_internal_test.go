package idem

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// What a record keeps of a request is what a completer's run needs: no header that is not
// asked for, and a query whose bytes a text can hold.
func TestInputOfARequest(t *testing.T) {
	t.Parallel()
	r := &Request{
		Method: "POST", Path: "/a", Query: "a=\x80\xff&b=\u00fc~", Route: "POST /a", Body: []byte("1"), Snapshot: []byte("2"), Identity: Identity{Kind: "jwt", Subject: "ann"},
		Header: http.Header{"Content-Type": {"text/plain"}, "X-A": {"1", "2"}, "X-B": {"3"}, "Cookie": {"4"}},
	}
	want := &store.Input{
		Method: "POST", Path: "/a", Query: "a=%80%FF&b=%C3%BC~", Route: "POST /a", Body: []byte("1"), Snapshot: []byte("2"), Identity: Identity{Kind: "jwt", Subject: "ann"},
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
