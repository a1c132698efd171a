package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/base/retrysign"
)

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// Every attempt has the same key: the caller's as it is, or a new one for the methods that
// package idem keys too.
func TestKeys(t *testing.T) {
	t.Parallel()
	engine := idem.New(new(idem.MemoryStore), idem.OneScope)
	quoted := func(o *client.Options) { o.QuoteKey = true }
	for name, tt := range map[string]struct {
		method string
		header http.Header
		opt    func(*client.Options)
		want   string // pattern of the key sent; "" = none
	}{
		"POST":                             {method: "POST", want: uuid4.String()},
		"PATCH":                            {method: "PATCH", want: uuid4.String()},
		"GET":                              {method: "GET"},
		"HEAD":                             {method: "HEAD"},
		"OPTIONS":                          {method: "OPTIONS"},
		"TRACE":                            {method: "TRACE"},
		"PUT":                              {method: "PUT"},
		"DELETE":                           {method: "DELETE"},
		"DELETE by option":                 {method: "DELETE", opt: keys("DELETE"), want: uuid4.String()},
		"the caller's":                     {method: "POST", header: http.Header{keyHeader: {"mine"}}, want: "^mine$"},
		"the caller's, in its spelling":    {method: "POST", header: http.Header{"idempotency-key": {"mine"}}, want: "^mine$"},
		"the caller's, on any method":      {method: "GET", header: http.Header{keyHeader: {"mine"}}, want: "^mine$"},
		"the caller's, quoted":             {method: "POST", header: http.Header{keyHeader: {`"mine"`}}, want: `^"mine"$`},
		"an entry without values":          {method: "POST", header: http.Header{keyHeader: {}}},
		"quoted by option":                 {method: "POST", opt: quoted, want: `^"[0-9a-f-]{36}"$`},
		"the caller's isn't quoted":        {method: "POST", header: http.Header{keyHeader: {"mine"}}, opt: quoted, want: "^mine$"},
		"every visible character":          {method: "POST", header: http.Header{keyHeader: {"a b!~"}}, want: "^a b!~$"},
		"255 characters":                   {method: "POST", header: http.Header{keyHeader: {strings.Repeat("k", 255)}}, want: "^k{255}$"},
		"255 characters and quotes around": {method: "POST", header: http.Header{keyHeader: {`"` + strings.Repeat("k", 255) + `"`}}, want: `^"k{255}"$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{answer(503), answer(200)}}
				req := request(t, tt.method, "x")
				req.Header = tt.header
				opts := []func(*client.Options){}
				if tt.opt != nil {
					opts = append(opts, tt.opt)
				}
				c := &counts{}
				status(t, client.New(s, append(opts, func(o *client.Options) { o.Hooks = c.hooks() })...), req)
				if made := tt.header == nil && tt.want != ""; (c.of("key") == 1) != made {
					t.Errorf("hooks %v, want a key made: %t", c.n, made)
				}
				if len(s.attempts()) != 2 {
					t.Fatalf("%d attempts, want 2", len(s.attempts()))
				}
				var sent []string
				for _, a := range s.attempts() {
					for header, values := range a.Header {
						if strings.EqualFold(header, keyHeader) {
							sent = append(sent, values...)
						}
					}
				}
				if tt.want == "" && sent != nil || tt.want != "" && (len(sent) != 2 || sent[0] != sent[1] || !regexp.MustCompile(tt.want).MatchString(sent[0])) {
					t.Errorf("keys %q, want two of %s", sent, tt.want)
				}
				if ours := engine.Acts(tt.method, http.Header{idem.KeyHeader: {"k"}}); tt.header == nil && tt.opt == nil && ours != (sent != nil) {
					t.Errorf("the engine keys it: %t, the client: %t", ours, sent != nil)
				}
			})
		})
	}
}

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
		s := &script{steps: []step{answer(200)}}
		for _, body := range []io.ReadCloser{http.NoBody, nil} {
			req := request(t, "POST", "x")
			req.Header[keyHeader], req.Body = values, body
			e := failure(t, client.New(s), req)
			key := strings.Trim(values[0], " \t")
			if !errors.Is(e, client.ErrKeyInvalid) || len(s.attempts()) != 0 || e.Key != key || e.Unknown != (key != "") || !strings.HasPrefix(e.Error(), "client: not sent: ") {
				t.Errorf("%s: %+v after %d attempts, want ErrKeyInvalid and nothing sent", name, e, len(s.attempts()))
			}
		}
	}
}

// stripe/stripe-php #637, stripe-ruby #598: the key was overwritten or reused.
func TestKeyLivesForOneRequest(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(200)}}
	tr := client.New(s)
	req := request(t, "POST", "x")
	snapshot := func() string {
		return fmt.Sprint(req.Method, req.URL, req.Header, req.ContentLength, req.Host, req.GetBody != nil, req.Trailer, req.Context() == t.Context())
	}
	before := snapshot()
	for range 3 {
		status(t, tr, req)
		req.Body, _ = req.GetBody()
	}
	if after := snapshot(); after != before {
		t.Errorf("the caller's request was changed from %s to %s", before, after)
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

// A retry under a key tells how many attempts came before, those of an earlier process
// too. A first attempt has what its caller has set.
func TestRetriesSaySo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, set string
		resumed     bool
		want        []string
	}{
		"a new request":          {method: "POST", want: []string{"", "1", "2"}},
		"the caller's own":       {method: "POST", set: "7", want: []string{"7", "1", "2"}},
		"an earlier process's":   {method: "POST", resumed: true, want: []string{"1", "2", "3"}},
		"a request without keys": {method: "GET", want: []string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := open(t, journalFile(t))
				if tt.resumed {
					_ = failure(t, client.New(&script{steps: []step{failing(errReset)}}, with(j), never), named(t, tt.method, "order", "x"))
				}
				req := named(t, tt.method, "order", "x")
				if tt.set != "" {
					req.Header.Set(retrysign.Client, tt.set)
				}
				s := &script{steps: []step{failing(errReset), answer(503), answer(200)}}
				status(t, client.New(s, with(j)), req)
				var got []string
				for _, a := range s.attempts() {
					got = append(got, a.Header.Get(retrysign.Client))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The same request elsewhere (307, 308) is the same operation, with one entry in the
// journal. The GET behind other redirects gets no key, unless http.Client copies the caller's.
func TestRedirectedOperationIsOne(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{301: "GET", 302: "GET", 303: "GET", 307: "POST", 308: "POST"} {
		for _, own := range []string{"", "mine"} {
			s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/new" {
					return answer(201)(req)
				}
				return answer(code, "Location", "https://elsewhere.test/new")(req)
			}}}
			j := open(t, journalFile(t))
			hc := &http.Client{Transport: client.New(s, with(j))}
			for _, name := range []string{"o", "o", "p"} { // the second time resumed
				req := named(t, "POST", name, "x")
				if own != "" {
					req.Header.Set(keyHeader, own)
				}
				resp, err := hc.Do(req)
				if err != nil {
					t.Fatalf("%d, key %q: %v", code, own, err)
				}
				_ = resp.Body.Close()
			}
			seen := s.attempts()
			if len(seen) != 6 || own == "" && seen[4].Key == seen[0].Key {
				t.Fatalf("%d: %d requests, keys %q and %q", code, len(seen), seen[0].Key, seen[4].Key)
			}
			for i := 0; i < 6; i += 2 {
				first, second := seen[i], seen[i+1]
				wantKey := first.Key
				if want == "GET" {
					wantKey = own
				}
				if second.Method != want || second.Key != wantKey || i == 2 && first.Key != seen[0].Key || own != "" && first.Key != own {
					t.Errorf("%d: %s with key %q, redirected to %s with key %q", code, first.Method, first.Key, second.Method, second.Key)
				}
			}
			settled := map[string]int{"GET": code, "POST": 201}[want]
			if e := j.Entries(); len(e) != 2 || e[0].Status != settled {
				t.Errorf("%d: entries %+v, want status %d", code, e, settled)
			}
		}
	}
}

// A redirect is no attempt of which nobody knows the outcome, and leads to no other operation.
func TestRedirects(t *testing.T) {
	t.Parallel()
	moved := answer(307, "Location", "/new")
	do := func(t *testing.T, s *script, req *http.Request) (*http.Response, error) {
		t.Helper()
		resp, err := (&http.Client{Transport: client.New(s, keys("POST", "DELETE"), with(open(t, journalFile(t))))}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return resp, err
	}
	s := &script{steps: []step{moved, answer(404)}}
	req := named(t, "DELETE", "o", "")
	req.Body = http.NoBody
	if resp, err := do(t, s, req); err != nil || resp.StatusCode != 404 || len(s.attempts()) != 2 {
		t.Errorf("%v, %v after %d requests; want the 404: there was nothing to delete", resp, err, len(s.attempts()))
	}
	for name, tt := range map[string]struct {
		steps    []step
		ends     bool // the context, with the second answer
		attempts int
	}{
		"to a server that is down": {[]step{failing(errReset), moved, failing(errRefused)}, false, 5},
		"when its context is over": {[]step{failing(errReset), moved}, true, 2},
		"after it was carried out": {[]step{answer(303, "Location", "/a"), answer(302, "Location", "/b"), failing(errRefused)}, false, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &script{steps: tt.steps}
			if tt.ends {
				s.steps = append(s.steps[:1], func(req *http.Request) (*http.Response, error) {
					cancel()
					return moved(req)
				})
			}
			_, err := do(t, s, request(t, "POST", "x").WithContext(ctx))
			if e, ok := errors.AsType[*client.Error](err); !ok || !e.Unknown || e.Key != s.attempts()[0].Key || len(s.attempts()) != tt.attempts {
				t.Errorf("%s: %+v after %d attempts, want unknown, with the key", name, e, len(s.attempts()))
			}
		})
	}
	s = &script{steps: []step{answer(200)}}
	tr := client.New(s, with(open(t, journalFile(t))))
	status(t, tr, named(t, "POST", "order-42", "x"))
	resp, _, _ := roundTrip(t, tr, named(t, "POST", "order-43", "y"))
	req = named(t, "POST", "order-42", "y")
	req.Response = resp
	if e := failure(t, tr, req); !errors.Is(e, client.ErrMismatch) || len(s.attempts()) != 2 {
		t.Errorf("%v after %d attempts, want it refused", e, len(s.attempts()))
	}
}
