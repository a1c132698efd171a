package enginetest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

// Whose key it is.
func engineScope(s suite) {
	by := func(r idem.Request, kind, subject string) idem.Request {
		r.Identity = idem.Identity{Kind: kind, Subject: subject}
		return r
	}

	s.run("A8, P38: another user's equal key is another operation", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		ann := by(order("k", "1"), "jwt", "ann")
		first := do(t, eng, ann, a.run).first(t)
		for i, other := range []idem.Request{
			by(order("k", "1"), "jwt", "bob"), by(order("k", "1"), "iam", "ann"), by(order("k", "1"), "jwt", "an"), order("k", "1"),
		} {
			theirs := do(t, eng, other, a.run).first(t)
			do(t, eng, other, a.run).replays(t, theirs)
			a.ran(t, i+2)
		}
		do(t, eng, ann, a.run).replays(t, first)
	})

	s.run("where nobody is verified, other credentials are refused at once", func(t *testing.T, e *env) {
		var a app
		with := func(token, body string) idem.Request {
			r := order("k", body)
			r.Header = http.Header{"Authorization": {token}}
			return r
		}
		eng := e.engine()
		first := do(t, eng, with("ann", "1"), a.run).first(t)
		e.costs(t, 1, func() { do(t, eng, with("bob", "1"), a.run).refused(t, idem.ErrCredentials) })
		e.costs(t, 1, func() { do(t, eng, with("bob", "2"), a.run).refused(t, idem.ErrCredentials) })
		e.costs(t, 1, func() { do(t, eng, order("k", "1"), a.run).refused(t, idem.ErrCredentials) })
		do(t, eng, with("ann", "1"), a.run).replays(t, first)
		do(t, e.engine(idem.OneScope), with("bob", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("A8: no key reaches into another scope", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		for _, p := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a#b", "c"}, {"a", "b#c"}, {"abc", "x"}, {"v1#a", "bc"}} {
			r := order(p[1], "1")
			r.Scope = p[0]
			do(t, eng, r, a.run).first(t)
		}
		a.ran(t, 6)
	})

	s.run("P22: a request whose scope is incomplete is refused and never shared", func(t *testing.T, e *env) {
		var a app
		reason := errors.New("no tenant")
		eng := e.engine(func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
				if r.Identity.Subject == "" {
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

	s.run("A4: the same key on another route is a mismatch, with the route in the scope a new operation", func(t *testing.T, e *env) {
		var a app
		here, there := order("k", "1"), order("k", "1")
		there.Path, there.Route = "/refunds", "/refunds"

		eng := e.engine()
		first := do(t, eng, here, a.run).first(t)
		do(t, eng, there, a.run).refused(t, idem.ErrMismatch)
		do(t, eng, here, a.run).replays(t, first)
		a.ran(t, 1)

		eng = e.engine(func(o *idem.Options) { o.ScopeRoute = true })
		first = do(t, eng, here, a.run).first(t)
		second := do(t, eng, there, a.run).first(t)
		do(t, eng, here, a.run).replays(t, first)
		do(t, eng, there, a.run).replays(t, second)
		a.ran(t, 3)
	})

	s.run("P36: namespaces don't collide, and an engine made anew finds its records", func(t *testing.T, e *env) {
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

	s.run("P37: two configurations on one store both hold", func(t *testing.T, e *env) {
		var short, long app
		short.status = 500
		v1 := e.engine(idem.StripeV1, func(o *idem.Options) { o.Namespace += ".v1" })
		v2 := e.engine(idem.Stripe, func(o *idem.Options) { o.Namespace += ".v2" })
		first := do(t, v1, order("k", "1"), short.run).first(t)
		second := do(t, v2, order("k", "1"), long.run).first(t)
		do(t, v1, order("k", "1"), short.run).replays(t, first)
		do(t, v2, order("k", "1"), long.run).replays(t, second)

		e.clock.Advance(25 * time.Hour) // v1 keeps for 24 hours, v2 for 30 days
		do(t, v1, order("k", "1"), short.run).first(t)
		do(t, v2, order("k", "1"), long.run).replays(t, second)
		short.ran(t, 2)
		long.ran(t, 1)
	})
}
