package idem_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A page of another origin can read the refusal, and distinguishes a retry from a
// new request by its code.
func ExampleCORS() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}, Credentials: true}
	})
	handler := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}")) // without a key
	r.Header.Set("Origin", "https://shop.example")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Vary"} {
		fmt.Println(name+":", w.Header().Get(name))
	}
	// Output:
	// 400
	// Access-Control-Allow-Origin: https://shop.example
	// Access-Control-Allow-Credentials: true
	// Vary: Origin
}

// The zero CORS adds nothing to any answer; headers of a middleware outside of
// the engine stay.
func TestCORSOfAnOuterMiddleware(t *testing.T) {
	t.Parallel()
	ask := func(cors idem.CORS, own string) http.Header {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.CORS = cors })
		keyed := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Vary", own)
		}))
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Vary"] = []string{"Accept-Encoding, Origin"}
			w.Header().Set("Access-Control-Allow-Origin", "https://outer.example")
			keyed.ServeHTTP(w, r)
		})
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Origin", "https://shop.example")
		if own != "" {
			r.Header.Set("Idempotency-Key", "k")
		}
		w := httptest.NewRecorder()
		outer.ServeHTTP(w, r)
		return w.Header()
	}
	if h := ask(idem.CORS{}, ""); h.Get("Access-Control-Allow-Origin") != "https://outer.example" || h.Get("Vary") != "Accept-Encoding, Origin" {
		t.Errorf("without the option: %v", h)
	}
	shop := idem.CORS{Origins: []string{"https://shop.example"}}
	if h := ask(shop, ""); h.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("with it: %v", h)
	} else if d := cmp.Diff([]string{"Origin", "Accept-Encoding"}, h["Vary"]); d != "" {
		t.Errorf("Vary of a refusal (-want +got):\n%s", d)
	}
	if h := ask(shop, "Cookie"); h.Get("Access-Control-Allow-Origin") != "https://outer.example" {
		t.Errorf("the handler's answer: %v", h)
	} else if d := cmp.Diff([]string{"Cookie", "Accept-Encoding", "Origin"}, h["Vary"]); d != "" {
		t.Errorf("Vary of the handler's answer (-want +got):\n%s", d)
	}
}

// Allow replaces the answer's own values of these headers, except Vary.
func TestCORSAllow(t *testing.T) {
	t.Parallel()
	cors := idem.CORS{Origins: []string{"https://a.example"}, Expose: []string{"X-Trace"}}
	for name, tc := range map[string]struct {
		cors    idem.CORS
		has     http.Header
		request http.Header
		want    http.Header
	}{
		"nothing to do":      {idem.CORS{}, http.Header{"Vary": {"*"}}, http.Header{"Origin": {"https://a.example"}}, http.Header{"Vary": {"*"}}},
		"no header":          {cors, nil, nil, http.Header{"Vary": {"Origin"}}},
		"varies already":     {cors, http.Header{"Vary": {"accept, ORIGIN"}}, nil, http.Header{"Vary": {"accept, ORIGIN"}}},
		"varies with all":    {cors, http.Header{"Vary": {"*"}}, nil, http.Header{"Vary": {"*"}}},
		"another's headers":  {cors, http.Header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"A"}}, nil, http.Header{"Vary": {"Origin"}}},
		"two origins":        {cors, nil, http.Header{"Origin": {"https://a.example", "https://a.example"}}, http.Header{"Vary": {"Origin"}}},
		"another case":       {cors, nil, http.Header{"Origin": {"https://A.example"}}, http.Header{"Vary": {"Origin"}}},
		"a name that begins": {cors, nil, http.Header{"Origin": {"https://a.example.evil"}}, http.Header{"Vary": {"Origin"}}},
		"listed, in any case of the header's name": {cors, http.Header{"X": {"1"}}, http.Header{"origin": {"https://a.example"}}, http.Header{
			"X": {"1"}, "Vary": {"Origin"}, "Access-Control-Allow-Origin": {"https://a.example"},
			"Access-Control-Expose-Headers": {"Idempotency-Expires, Idempotency-Key, Idempotency-Status, Idempotent-Replayed, Location, Retry-After, X-Trace"},
		}},
	} {
		shared := tc.has.Clone()
		resp := idem.Response{Header: shared}
		tc.cors.Allow(&resp, tc.request)
		if d := cmp.Diff(tc.want, resp.Header); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(tc.has, shared); d != "" {
			t.Errorf("%s: a header that others hold was changed:\n%s", name, d)
		}
	}
}

// Stripe's clients in a browser obey Stripe-Should-Retry, so they must see it.
func TestCORSExposesStripesHeaders(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, idem.Stripe, func(o *idem.Options) { o.CORS.Origins = []string{"*"} })
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	w := httptest.NewRecorder()
	e.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
	if got := w.Header().Get("Access-Control-Expose-Headers"); !strings.HasSuffix(got, ", Stripe-Should-Retry, Request-Id") || w.Code != 400 {
		t.Errorf("%d exposes %q", w.Code, got)
	}
}
