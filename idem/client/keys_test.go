package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method string
		set    []string // values of the header; nil = not set
		opt    func(*client.Options)
		want   string // pattern of the key sent; "" = none
	}{
		"POST gets one":                    {method: "POST", want: uuid4.String()},
		"PATCH gets one":                   {method: "PATCH", want: uuid4.String()},
		"GET doesn't":                      {method: "GET"},
		"HEAD doesn't":                     {method: "HEAD"},
		"OPTIONS doesn't":                  {method: "OPTIONS"},
		"TRACE doesn't":                    {method: "TRACE"},
		"PUT doesn't":                      {method: "PUT"},
		"DELETE doesn't":                   {method: "DELETE"},
		"DELETE does by option":            {method: "DELETE", opt: idemStripe, want: uuid4.String()},
		"PATCH doesn't by option":          {method: "PATCH", opt: idemStripe},
		"the caller's wins":                {method: "POST", set: []string{"mine"}, want: "^mine$"},
		"the caller's, on any method":      {method: "GET", set: []string{"mine"}, want: "^mine$"},
		"the caller's, quoted":             {method: "POST", set: []string{`"mine"`}, want: `^"mine"$`},
		"an entry without values: none":    {method: "POST", set: []string{}},
		"quoted by option":                 {method: "POST", opt: func(o *client.Options) { o.QuoteKey = true }, want: `^"[0-9a-f-]{36}"$`},
		"the caller's isn't quoted":        {method: "POST", set: []string{"mine"}, opt: func(o *client.Options) { o.QuoteKey = true }, want: "^mine$"},
		"every visible character":          {method: "POST", set: []string{"a b!~"}, want: "^a b!~$"},
		"255 characters":                   {method: "POST", set: []string{strings.Repeat("k", 255)}, want: "^k{255}$"},
		"255 characters and quotes around": {method: "POST", set: []string{`"` + strings.Repeat("k", 255) + `"`}, want: `^"k{255}"$`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{answer(503), answer(200)}}
				req := request(t, tt.method, "x")
				if tt.set != nil {
					req.Header[keyHeader] = tt.set
				}
				if tt.opt == nil {
					tt.opt = func(*client.Options) {}
				}
				c := &counts{}
				status(t, client.New(s, tt.opt, func(o *client.Options) { o.Hooks = c.hooks() }), req)
				seen := s.attempts()
				if made := tt.set == nil && tt.want != ""; (c.of("key") == 1) != made {
					t.Errorf("hooks %v, want a key made: %t", c.n, made)
				}
				if tt.want == "" && tt.method == "PATCH" {
					if len(seen) != 1 {
						t.Errorf("%d attempts without a key, want 1", len(seen))
					}
				} else if len(seen) != 2 {
					t.Fatalf("%d attempts, want 2", len(seen))
				}
				for _, a := range seen {
					if tt.want == "" && len(a.Header[keyHeader]) > 0 {
						t.Errorf("headers %v, want no key, not an empty one either", a.Header)
					}
					if a.Key != seen[0].Key || !regexp.MustCompile(tt.want).MatchString(a.Key) || tt.want == "" && a.Key != "" {
						t.Errorf("key %q, want %s", a.Key, tt.want)
					}
				}
			})
		})
	}
}

func idemStripe(o *client.Options) { o.Methods = []string{"POST", "DELETE"} }

func TestCallersKeyIsChecked(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"empty":      {""},
		"blank":      {" \t"},
		"two":        {"a", "b"},
		"256":        {strings.Repeat("k", 256)},
		"non-ASCII":  {"schlüssel"},
		"a tab":      {"a\tb"},
		"only quote": {`""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{steps: []step{answer(200)}}
			req := request(t, "POST", "x")
			req.Header[keyHeader] = values
			e := failure(t, client.New(s), req)
			if !errors.Is(e, client.ErrKeyInvalid) || len(s.attempts()) != 0 || e.Attempts != 0 || e.Unknown {
				t.Errorf("%v after %d attempts, want ErrKeyInvalid and nothing sent", e, len(s.attempts()))
			}
			req.Body = nil // nothing to close
			if e := failure(t, client.New(s), req); !errors.Is(e, client.ErrKeyInvalid) {
				t.Errorf("%v without a body", e)
			}
		})
	}
}

func TestRequestWithoutAHeader(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(200)}}
	req := request(t, "POST", "x")
	req.Header = nil
	if status(t, client.New(s), req); !uuid4.MatchString(s.attempts()[0].Key) || req.Header != nil {
		t.Errorf("key %q, the caller's header %v", s.attempts()[0].Key, req.Header)
	}
}

func TestCallersKeyInAnySpelling(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(200)}}
	req := request(t, "POST", "x")
	req.Header[strings.ToLower(keyHeader)] = []string{"mine"}
	status(t, client.New(s), req)
	h := s.attempts()[0].Header
	if diff := cmp.Diff([]string{"mine"}, h[strings.ToLower(keyHeader)]); diff != "" || h.Get(keyHeader) != "" {
		t.Errorf("headers %v, want the caller's only", h)
	}
}

// stripe/stripe-php #637, stripe-ruby #598: the key was overwritten or reused.
func TestKeyLivesForOneRequest(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(200)}}
	tr := client.New(s)
	req := request(t, "POST", "x")
	before := snapshot(req)
	for range 3 {
		status(t, tr, req)
		req.Body, _ = req.GetBody()
	}
	if diff := cmp.Diff(before, snapshot(req)); diff != "" {
		t.Errorf("the caller's request was changed (-before +after):\n%s", diff)
	}
	req.Header.Set(keyHeader, "mine")
	status(t, tr, req)
	req.Header.Del(keyHeader)
	status(t, tr, req)

	keys := map[string]bool{}
	for _, a := range s.attempts() {
		keys[a.Key] = true
	}
	if len(keys) != 5 || !keys["mine"] {
		t.Errorf("keys %v, want five different ones", keys)
	}
}

// snapshot returns the parts of a request that a RoundTripper must not change.
func snapshot(r *http.Request) map[string]any {
	return map[string]any{
		"method": r.Method, "url": r.URL.String(), "header": r.Header.Clone(), "length": r.ContentLength, "host": r.Host,
		"body": fmt.Sprintf("%T", r.Body), "getbody": r.GetBody != nil, "ctx": fmt.Sprintf("%p", r.Context()), "trailer": r.Trailer.Clone(),
	}
}
