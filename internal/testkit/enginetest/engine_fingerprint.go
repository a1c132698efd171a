package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineFingerprint tests which requests count as the same request.
func engineFingerprint(s suite) {
	s.run("another body is a mismatch, in one call, and the first answer stays", func(t *testing.T, e *env) {
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
		s.run("a mismatch is refused in the shape of "+name+" and shows nothing of the stored answer", func(t *testing.T, e *env) {
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

	s.run("method, path and query count", func(t *testing.T, e *env) {
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

	s.run("a verified caller's credentials, tracing and other headers don't count", func(t *testing.T, e *env) {
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

	s.run("a header that was chosen counts", func(t *testing.T, e *env) {
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

	s.run("JSON counts by its bytes, or on demand without white space and order", func(t *testing.T, e *env) {
		var a app
		one, two := jsonOrder(`{"a":1,"b":{"c":[1,2],"d":null}}`), jsonOrder("{ \"b\": {\"d\":null, \"c\":[1, 2]},\n\"a\":1 }")
		do(t, e.engine(), one, a.run).first(t)
		do(t, e.engine(), two, a.run).refused(t, idem.ErrMismatch)

		eng := e.engine(canonical, func(o *idem.Options) { o.Namespace += ".canonical" })
		first := do(t, eng, one, a.run).first(t)
		do(t, eng, two, a.run).replays(t, first)
		a.ran(t, 2)
	})

	s.run("tampering deep in an object is seen", func(t *testing.T, e *env) {
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
		do(t, keyedWith("b"), order("k1", "1"), a.run).refused(t, idem.ErrIncomparable)
		a.ran(t, 2)
	})

	amount := func(r *idem.Request) ([]byte, error) {
		var body struct{ Amount int }
		err := json.Unmarshal(r.Body, &body)
		return fmt.Append(nil, body.Amount), err
	}
	for name, scheme := range map[string]idem.Fingerprint{
		"canonical JSON": {CanonicalJSON: true},
		"a header":       {Headers: []string{"X-Account"}},
		"a function":     {Func: amount, FuncName: "amount"},
	} {
		for change, of := range map[string]struct{ from, to idem.Fingerprint }{
			"the default becomes " + name: {idem.Fingerprint{}, scheme},
			name + " becomes the default": {scheme, idem.Fingerprint{}},
		} {
			s.run("a deploy that changes the fingerprint: "+change, func(t *testing.T, e *env) { changesScheme(t, e, of.from, of.to) })
		}
	}
}

// changesScheme simulates a deployment that changes the scheme of fingerprints. The
// newer program gets retries of requests that the older program has finished or begun.
func changesScheme(t *testing.T, e *env, from, to idem.Fingerprint) {
	t.Helper()
	var a app
	send := func(key, body string) idem.Request {
		r := order(key, body)
		r.Query, r.Header = "dry=0", http.Header{"Content-Type": {"application/json"}, "X-Account": {"7"}}
		return r
	}
	by := func(f idem.Fingerprint) func(*idem.Options) { return func(o *idem.Options) { o.Fingerprint = f } }
	first := do(t, e.engine(by(from)), send("done", `{"amount":1}`), a.run).first(t)
	e.abandon(t, send("open", `{"amount":1}`), by(from))

	// The newer program doesn't know the older scheme. It must not answer the retry with
	// a mismatch. A mismatch advises the client to use a new key, and the request with
	// the new key would charge the card again.
	for _, key := range []string{"done", "open"} {
		r := do(t, e.engine(by(to)), send(key, `{"amount":1}`), a.run).refused(t, idem.ErrIncomparable)
		if err, ok := errors.AsType[*idem.Error](r.err); !ok || err.RetryAfter < 5*time.Minute {
			t.Errorf("%s: %v, want a RetryAfter of 5 minutes", key, r)
		}
		r = serve(t, e.engine(by(to)), withKey(send(key, `{"amount":1}`)), a.run).status(t, http.StatusServiceUnavailable).header(t, "Retry-After", "300")
		if strings.Contains(string(r.Body), "new key") {
			t.Errorf("%s: the advice is %s", key, r.Body)
		}
	}
	a.ran(t, 1)

	known := to
	known.Known = []idem.Fingerprint{from}
	do(t, e.engine(by(known)), send("done", `{"amount":1}`), a.run).replays(t, first)
	do(t, e.engine(by(known)), send("open", `{"amount":1}`), a.run).refused(t, idem.ErrInFlight)
	for _, key := range []string{"done", "open"} {
		do(t, e.engine(by(known)), send(key, `{"amount":2}`), a.run).refused(t, idem.ErrMismatch)
	}
	e.clock.Advance(storetest.LeaseOver)
	do(t, e.engine(by(known)), send("open", `{"amount":2}`), a.run).refused(t, idem.ErrMismatch)
	again := do(t, e.engine(by(known)), send("open", `{"amount":1}`), a.run).first(t)
	a.ran(t, 2)

	// If the scheme is changed in two releases, the first release (between) uses the
	// older scheme and knows the newer scheme. The second release uses the newer scheme
	// and knows the older scheme. The first release may run beside the second release,
	// or again after a roll-back, so it must replay answers that the second release has
	// stored.
	between := from
	between.Known = []idem.Fingerprint{to}
	fresh := do(t, e.engine(by(known)), send("new", `{"amount":1}`), a.run).first(t)
	do(t, e.engine(by(between)), send("new", `{"amount":1}`), a.run).replays(t, fresh)
	do(t, e.engine(by(between)), send("new", `{"amount":2}`), a.run).refused(t, idem.ErrMismatch)
	do(t, e.engine(by(between)), send("open", `{"amount":1}`), a.run).replays(t, again)
	a.ran(t, 3)
}

// withKey returns a copy of r whose key is in the HTTP header only.
func withKey(r idem.Request) idem.Request {
	r.Header = r.Header.Clone()
	r.Header.Set(idem.KeyHeader, r.Key)
	r.Key = ""
	return r
}
