package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

// engineScope tests the scopes of keys.
func engineScope(s suite) {
	by := func(r idem.Request, kind, subject string) idem.Request {
		r.Identity = idem.Identity{Kind: kind, Subject: subject}
		return r
	}

	s.run("another user's equal key is another operation", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		ann := by(order("k", "1"), "jwt", "ann")
		first := do(t, eng, ann, a.run).first(t)
		for i, other := range []idem.Request{
			by(order("k", "1"), "jwt", "bob"), by(order("k", "1"), "iam", "ann"), by(order("k", "1"), "jwt", "an"), by(order("k", "1"), "jwt", "ann:x"),
		} {
			theirs := do(t, eng, other, a.run).first(t)
			do(t, eng, other, a.run).replays(t, theirs)
			a.ran(t, i+2)
		}
		do(t, eng, ann, a.run).replays(t, first)
	})

	s.run("where nobody names the caller, a keyed request is refused before the claim", func(t *testing.T, e *env) {
		var a app
		for _, presented := range []http.Header{
			nil, {"Authorization": {"Bearer ann"}}, {"Cookie": {"sid=ann"}}, {"X-Api-Key": {"ann"}}, {"X-Auth-Token": {"ann"}}, {"X-Amzn-Oidc-Identity": {"ann"}},
		} {
			r := by(order("k", "1"), "", "")
			r.Header = presented
			e.costs(t, 0, func() { do(t, e.engine(), r, a.run).refused(t, idem.ErrScope) })
		}
		a.ran(t, 0)
		if got := e.log.count("level=ERROR"); got != 6 {
			t.Errorf("%d lines tell operators, want 6", got)
		}
	})

	s.run("where all callers are one, they share random keys only", func(t *testing.T, e *env) {
		var a app
		key := rand.Text()
		eng := e.engine(idem.OneScope)
		first := do(t, eng, by(order(key, "1"), "", ""), a.run).first(t)
		other := by(order(key, "1"), "", "")
		other.Header = http.Header{"Authorization": {"Bearer bob"}}
		do(t, eng, other, a.run).replays(t, first)
		a.ran(t, 1)
		e.costs(t, 1, func() { do(t, eng, by(order(key[:21], "1"), "", ""), a.run).refused(t, idem.ErrKeyInvalid) })
		do(t, eng, by(order(key, "1"), "jwt", "ann"), a.run).first(t)
		do(t, eng, by(order("k", "1"), "jwt", "ann"), a.run).first(t)
	})

	s.run("no caller looks like another: program, source, identity, tenant and operation", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		for i, set := range []func(*idem.Request){
			func(r *idem.Request) { r.Identity = idem.Identity{Kind: "jwt", Subject: "ann"} },
			func(r *idem.Request) { r.Scope = "jwt:ann" },
			func(r *idem.Request) { r.Scope = "ann" },
			func(r *idem.Request) { r.Source = "ann" },
			func(r *idem.Request) { r.Source = "program:ann" },
			func(r *idem.Request) { r.Scope = "tenant:blue|program:ann" },
			func(r *idem.Request) { r.Scope, r.Tenant = "ann", "blue" },
			func(r *idem.Request) { r.Source, r.Tenant = "ann", "blue" },
			func(r *idem.Request) { r.Identity, r.Tenant = idem.Identity{Kind: "jwt", Subject: "ann"}, "blue" },
			func(r *idem.Request) { r.Scope, r.Operation = "ann", "blue" },
		} {
			r := by(order("k", "1"), "", "")
			set(&r)
			first := do(t, eng, r, a.run).first(t)
			do(t, eng, r, a.run).replays(t, first)
			a.ran(t, i+1)
		}
		for _, kind := range []string{"program", "source", "one", "tenant", "operation", "jwt:ann"} {
			do(t, eng, by(order("k", "1"), kind, "ann"), a.run).refused(t, idem.ErrScope)
		}
	})

	s.run("tenants have keys of their own under Options.Scope", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return "acct_7", nil }
		})
		for i, tenant := range []string{"", "blue", "red"} {
			r := order("k", "1")
			r.Tenant = tenant
			first := do(t, eng, r, a.run).first(t)
			do(t, eng, r, a.run).replays(t, first)
			a.ran(t, i+1)
		}
	})

	s.run("no key reaches into another scope", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		for _, p := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a#b", "c"}, {"a", "b#c"}, {"abc", "x"}, {"v1#a", "bc"}} {
			r := order(p[1], "1")
			r.Scope = p[0]
			do(t, eng, r, a.run).first(t)
		}
		a.ran(t, 6)
	})

	s.run("a request whose scope is incomplete is refused and never shared", func(t *testing.T, e *env) {
		var a app
		reason := errors.New("no tenant")
		eng := e.engine(func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
				if r.Identity.Subject == theCaller {
					return "", reason
				}
				return r.Identity.Subject, nil
			}
		})
		e.costs(t, 0, func() {
			do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrScope, reason)
			nobody := func(context.Context, *idem.Request) (string, error) { return "", nil }
			do(t, e.engine(func(o *idem.Options) { o.Scope = nobody }), order("k", "1"), a.run).refused(t, idem.ErrScope)
			do(t, e.engine(), by(order("k", "1"), "lambda", ""), a.run).refused(t, idem.ErrScope)
		})
		a.ran(t, 0)
	})

	s.run("the same key on another route is a mismatch, with the route in the scope a new operation", func(t *testing.T, e *env) {
		var a app
		here, there := order("k", "1"), order("k", "1")
		there.Path, there.Route = "/refunds", "/refunds"

		eng := e.engine()
		first := do(t, eng, here, a.run).first(t)
		do(t, eng, there, a.run).refused(t, idem.ErrMismatch)
		do(t, eng, here, a.run).replays(t, first)
		a.ran(t, 1)

		eng = e.engine(func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
				return r.Identity.Subject + " " + r.Route, nil
			}
		})
		first = do(t, eng, here, a.run).first(t)
		second := do(t, eng, there, a.run).first(t)
		do(t, eng, here, a.run).replays(t, first)
		do(t, eng, there, a.run).replays(t, second)
		a.ran(t, 3)
	})

	s.run("namespaces don't collide, and an engine made anew finds its records", func(t *testing.T, e *env) {
		var a app
		named := func(suffix string) *idem.Engine {
			return e.engine(func(o *idem.Options) { o.Namespace += suffix })
		}
		one := do(t, named(".a"), order("k", "1"), a.run).first(t)
		two := do(t, named(".b"), order("k", "1"), a.run).first(t)
		do(t, named(".a"), order("k", "1"), a.run).replays(t, one)
		do(t, named(".b"), order("k", "1"), a.run).replays(t, two)
		a.ran(t, 2)
	})

	s.run("two configurations on one store both hold", func(t *testing.T, e *env) {
		var short, long app
		short.status = 500
		v1 := e.engine(idem.StripeV1, func(o *idem.Options) { o.Namespace += ".v1" })
		v2 := e.engine(idem.Stripe, func(o *idem.Options) { o.Namespace += ".v2" })
		first := do(t, v1, order("k", "1"), short.run).first(t)
		second := do(t, v2, order("k", "1"), long.run).first(t)
		do(t, v1, order("k", "1"), short.run).replays(t, first)
		do(t, v2, order("k", "1"), long.run).replays(t, second)

		e.clock.Advance(25 * time.Hour) // v1 keeps a key for 24 hours, and v2 keeps it for 30 days
		do(t, v1, order("k", "1"), short.run).first(t)
		do(t, v2, order("k", "1"), long.run).replays(t, second)
		short.ran(t, 2)
		long.ran(t, 1)
	})
}
