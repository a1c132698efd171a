package enginetest

import (
	"context"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
)

// engineNesting tests operations within operations, and handlers that change their
// arguments.
func engineNesting(s suite) {
	s.run("an operation inside another keeps its own record", func(t *testing.T, e *env) {
		var outer, inner app
		eng := e.engine()
		var within result
		nested := func(ctx context.Context) (idem.Response, error) {
			res, err := eng.Do(ctx, order("inner", "1"), inner.run)
			within = result{res, err}
			return outer.run(ctx)
		}
		var first result
		e.costs(t, 4, func() { first = do(t, eng, order("outer", "1"), nested).first(t) })
		do(t, eng, order("outer", "1"), nested).replays(t, first)
		do(t, eng, order("inner", "1"), inner.run).replays(t, within.first(t))
		outer.ran(t, 1)
		inner.ran(t, 1)
	})

	s.run("the inner answer survives the outer one's failure", func(t *testing.T, e *env) {
		var outer, inner app
		eng := e.engine()
		nested := func(end handler) handler {
			return func(ctx context.Context) (idem.Response, error) {
				if _, err := eng.Do(ctx, order("inner", "1"), inner.run); err != nil {
					t.Error(err)
				}
				return end(ctx)
			}
		}
		do(t, eng, order("outer", "1"), nested(outer.fail(errDown))).refused(t, errDown)
		do(t, eng, order("outer", "1"), nested(outer.run)).first(t)
		outer.ran(t, 2)
		inner.ran(t, 1)
	})

	s.run("a wrapper inside a wrapper of the same key is transparent", func(t *testing.T, e *env) {
		var a app
		eng, twin := e.engine(), e.engine()
		nested := func(ctx context.Context) (idem.Response, error) {
			res, err := eng.Do(ctx, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
				res, err := twin.Do(ctx, order("k", "1"), a.run)
				return res.Response, err
			})
			if !res.Passed {
				t.Errorf("inside got %v, want it passed", result{res, err})
			}
			return res.Response, err
		}
		var first result
		e.costs(t, 2, func() { first = do(t, eng, order("k", "1"), nested).first(t) })
		e.costs(t, 1, func() { do(t, eng, order("k", "1"), nested).replays(t, first) })
		a.ran(t, 1)
	})

	s.run("also with another operation in between", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		nested := func(ctx context.Context) (idem.Response, error) {
			res, err := eng.Do(ctx, order("between", "1"), func(ctx context.Context) (idem.Response, error) {
				res, err := eng.Do(ctx, order("k", "1"), a.run)
				return res.Response, err
			})
			return res.Response, err
		}
		first := do(t, eng, order("k", "1"), nested).first(t)
		do(t, eng, order("k", "1"), nested).replays(t, first)
		a.ran(t, 1)
	})

	s.run("the same key in another namespace is another operation", func(t *testing.T, e *env) {
		var a, b app
		eng := e.engine()
		other := e.engine(func(o *idem.Options) { o.Namespace += ".other" })
		do(t, eng, order("k", "1"), func(ctx context.Context) (idem.Response, error) {
			res, err := other.Do(ctx, order("k", "1"), b.run)
			if err != nil || res.Passed {
				t.Errorf("inside got %v, want its own operation", result{res, err})
			}
			return a.run(ctx)
		}).first(t)
		if e.record(t, order("k", "1"), func(o *idem.Options) { o.Namespace += ".other" }) == nil {
			t.Error("the inner operation has no record")
		}
	})

	s.run("a handler that changes its request finishes the same record", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		r := keyedDo("k", `{"n":1}`)
		want := keyedDo("k", `{"n":1}`)
		first := do(t, eng, r, func(ctx context.Context) (idem.Response, error) {
			for i := range r.Body {
				r.Body[i] = 'x'
			}
			r.Header.Set(idem.KeyHeader, "another")
			return a.run(ctx)
		}).first(t)
		do(t, eng, want, a.run).replays(t, first)
		do(t, eng, r, a.run).refused(t, idem.ErrMismatch)
		a.ran(t, 1)
	})

	s.run("a handler that goes on writing into its answer changes no replay", func(t *testing.T, e *env) {
		eng := e.engine()
		body := []byte("as answered")
		fn := func(context.Context) (idem.Response, error) { return idem.Response{Status: 201, Body: body}, nil }
		do(t, eng, order("k", "1"), fn).first(t)
		was := result{Result: idem.Result{Response: idem.Response{Status: 201, Body: slices.Clone(body)}}}
		clear(body)
		do(t, eng, order("k", "1"), fn).replays(t, was)
	})
}
