package enginetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/storetest"
)

// What makes two requests the same request.
func engineFingerprint(s suite) {
	s.run("A3, P16: another body is a mismatch, in one call, and the first answer stays", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", `{"lat":1}`), a.run).first(t)
		want := e.record(t, order("k", `{"lat":1}`))
		e.costs(t, 1, func() { do(t, eng, order("k", `{"lat":2}`), a.run).refused(t, idem.ErrMismatch) })
		storetest.SameRecord(t, e.record(t, order("k", `{"lat":1}`)), want)
		do(t, eng, order("k", `{"lat":1}`), a.run).replays(t, first)
		a.ran(t, 1)
	})

	for name, preset := range map[string]struct {
		use         func(*idem.Options)
		status      int
		contentType string
		contains    string
	}{
		"IETF":   {idem.IETF, 422, "application/problem+json", `"code":"idempotency_key_mismatch"`},
		"Stripe": {idem.Stripe, 400, "application/json", `"type":"idempotency_error"`},
	} {
		s.run("A3: a mismatch is refused in the shape of "+name+" and shows nothing of the stored answer", func(t *testing.T, e *env) {
			var a app
			eng := e.engine(preset.use)
			first := serve(t, eng, keyed(`"k"`, "1"), a.run).status(t, 201)
			r := serve(t, eng, keyed(`"k"`, "2"), a.run).status(t, preset.status)
			r.header(t, "Content-Type", preset.contentType)
			r.header(t, idem.ReplayedHeader, "")
			if body := string(r.Body); !strings.Contains(body, preset.contains) || strings.Contains(body, string(first.Body)) {
				t.Errorf("body is %s, want %s in it", body, preset.contains)
			}
			a.ran(t, 1)
		})
	}

	s.run("A4: method, path and query count", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		do(t, eng, order("k", "1"), a.run).first(t)
		for _, change := range []func(*idem.Request){
			func(r *idem.Request) { r.Method = http.MethodPut },
			func(r *idem.Request) { r.Path = "/rides/" },
			func(r *idem.Request) { r.Query = "dry=1" },
			func(r *idem.Request) { r.Body = nil },
			func(r *idem.Request) { r.Path, r.Query, r.Body = "/ride", "", []byte("s1") },
		} {
			r := order("k", "1")
			change(&r)
			do(t, eng, r, a.run).refused(t, idem.ErrMismatch)
		}
		a.ran(t, 1)
	})

	s.run("A15: a verified caller's credentials, tracing and other headers don't count", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		var first result
		for i, token := range []string{"one", "two", "three"} {
			r := keyed("k", "1")
			r.Identity = idem.Identity{Kind: "jwt", Subject: "ann"}
			for _, name := range []string{"Authorization", "Cookie", "Traceparent", "X-Request-Id", "X-Amzn-Trace-Id", "User-Agent"} {
				r.Header.Set(name, token)
			}
			if i == 0 {
				first = serve(t, eng, r, a.run).status(t, 201)
			} else {
				serve(t, eng, r, a.run).replays(t, first)
			}
		}
		a.ran(t, 1)
	})

	s.run("A15: a header that was chosen counts", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) { o.Fingerprint.Headers = []string{"stripe-account"} })
		r := keyed("k", "1")
		r.Header.Set("Stripe-Account", "acct_1")
		first := serve(t, eng, r, a.run).status(t, 201)
		serve(t, eng, r, a.run).replays(t, first)
		r.Header.Set("Stripe-Account", "acct_2")
		serve(t, eng, r, a.run).status(t, 422)
		a.ran(t, 1)
	})

	canonical := func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }
	jsonOrder := func(body string) idem.Request {
		r := order("k", body)
		r.Header = http.Header{"Content-Type": {"application/json; charset=utf-8"}}
		return r
	}

	s.run("P24: JSON counts by its bytes, or on demand without white space and order", func(t *testing.T, e *env) {
		var a app
		one, two := jsonOrder(`{"a":1,"b":{"c":[1,2],"d":null}}`), jsonOrder("{ \"b\": {\"d\":null, \"c\":[1, 2]},\n\"a\":1 }")
		do(t, e.engine(), one, a.run).first(t)
		do(t, e.engine(), two, a.run).refused(t, idem.ErrMismatch)

		eng := e.engine(canonical, func(o *idem.Options) { o.Namespace += ".canonical" })
		first := do(t, eng, one, a.run).first(t)
		do(t, eng, two, a.run).replays(t, first)
		a.ran(t, 2)
	})

	s.run("P19: tampering deep in an object is seen", func(t *testing.T, e *env) {
		for _, mode := range []func(*idem.Options){func(*idem.Options) {}, canonical} {
			var a app
			eng := e.engine(mode, func(o *idem.Options) { o.Namespace += e.clock.Now().Format(".150405") })
			do(t, eng, jsonOrder(`{"a":{"b":[{"c":12345678901234567890}]}}`), a.run).first(t)
			for _, tampered := range []string{
				`{"a":{"b":[{"c":12345678901234567891}]}}`, `{"a":{"b":[{"c":"12345678901234567890"}]}}`,
				`{"a":{"b":{"c":12345678901234567890}}}`, `{"a":{"b":[{"c":12345678901234567890,"d":1}]}}`,
			} {
				do(t, eng, jsonOrder(tampered), a.run).refused(t, idem.ErrMismatch)
			}
			a.ran(t, 1)
			e.clock.Advance(1e9)
		}
	})

	s.run("a rotated fingerprint secret still knows the records it keyed", func(t *testing.T, e *env) {
		var a app
		keyedWith := func(ids ...string) *idem.Engine {
			return e.engine(func(o *idem.Options) {
				for _, id := range ids {
					o.Fingerprint.Secrets = append(o.Fingerprint.Secrets, idem.Secret{ID: id, Key: []byte(id + " with sixteen bytes")})
				}
			})
		}
		bare := do(t, e.engine(), order("k0", "1"), a.run).first(t)
		old := do(t, keyedWith("a"), order("k1", "1"), a.run).first(t)
		do(t, keyedWith("b", "a"), order("k0", "1"), a.run).replays(t, bare)
		do(t, keyedWith("b", "a"), order("k1", "1"), a.run).replays(t, old)
		do(t, keyedWith("b", "a"), order("k1", "2"), a.run).refused(t, idem.ErrMismatch)
		do(t, keyedWith("b"), order("k1", "1"), a.run).refused(t, idem.ErrSecret)
		a.ran(t, 2)
	})
}
