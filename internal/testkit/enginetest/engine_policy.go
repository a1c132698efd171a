package enginetest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/samekey/samekey/idem"
)

// enginePolicy tests which answers are stored.
func enginePolicy(s suite) {
	s.run("a declined card is the key's answer", func(t *testing.T, e *env) {
		a := app{status: http.StatusPaymentRequired}
		eng := e.engine()
		first := serve(t, eng, keyed("k", "1"), a.run).status(t, 402)
		serve(t, eng, keyed("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("a 500 is replayed by Stripe's v1 contract", func(t *testing.T, e *env) {
		a := app{status: http.StatusInternalServerError}
		eng := e.engine(idem.StripeV1)
		first := serve(t, eng, keyed("k", "1"), a.run).status(t, 500)
		serve(t, eng, keyed("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	for name, preset := range map[string]func(*idem.Options){"Stripe's v2": idem.Stripe, "the default": func(*idem.Options) {}} {
		s.run("a 500 runs again by "+name+" contract", func(t *testing.T, e *env) {
			a := app{status: http.StatusInternalServerError}
			eng := e.engine(preset)
			for i := range 2 {
				if r := serve(t, eng, keyed("k", "1"), a.run).status(t, 500); r.Replayed {
					t.Errorf("got %v, want it not replayed", r)
				}
				a.ran(t, i+1)
			}
			a.status = 201
			first := serve(t, eng, keyed("k", "1"), a.run).status(t, 201)
			serve(t, eng, keyed("k", "1"), a.run).replays(t, first)
			a.ran(t, 3)
		})
	}

	for _, status := range []int{400, 401, 403, 409, 422, 429, 503} {
		s.run("after a "+strconv.Itoa(status)+" the key takes a corrected request", func(t *testing.T, e *env) {
			refusing, good := app{status: status}, app{}
			eng := e.engine()
			e.costs(t, 2, func() { serve(t, eng, keyed("k", "wrong"), refusing.run).status(t, status) })
			e.costs(t, 3, func() { serve(t, eng, keyed("k", "right"), good.run).status(t, 201) }) // the refused claim, the claim that replaces the freed record, the finish
			serve(t, eng, keyed("k", "wrong"), refusing.run).status(t, 422)
			good.ran(t, 1)
			refusing.ran(t, 1)
		})
	}

	s.run("what is refused before the handler makes no record", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(func(o *idem.Options) {
			o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
				if r.Header.Get("Authorization") == "" {
					return "", errors.New("nobody")
				}
				return "somebody", nil
			}
			o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) {
				if len(r.Body) == 0 {
					return nil, errors.New("no body")
				}
				return r.Body, nil
			}
			o.Fingerprint.FuncName = "body"
		})
		good := keyed("k", "1")
		good.Header.Set("Authorization", "Bearer x")
		noBody := good
		noBody.Body = nil
		e.costs(t, 0, func() { serve(t, eng, keyed("k", "1"), a.run).status(t, 500) })
		e.costs(t, 1, func() { serve(t, eng, noBody, a.run).status(t, 400) })
		a.ran(t, 0)
		first := serve(t, eng, good, a.run).status(t, 201)
		serve(t, eng, good, a.run).replays(t, first)
		serve(t, eng, noBody, a.run).status(t, 503)
	})

	s.run("the policy can be the program's own", func(t *testing.T, e *env) {
		teapot, created := app{status: http.StatusTeapot}, app{}
		eng := e.engine(func(o *idem.Options) { o.Stored = func(r idem.Response) bool { return r.Status == http.StatusTeapot } })
		first := do(t, eng, order("k1", "1"), teapot.run).first(t)
		do(t, eng, order("k1", "1"), teapot.run).replays(t, first)
		do(t, eng, order("k2", "1"), created.run).first(t)
		do(t, eng, order("k2", "1"), created.run).first(t)
		teapot.ran(t, 1)
		created.ran(t, 2)
	})
}
