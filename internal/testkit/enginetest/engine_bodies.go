package enginetest

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineBodies tests answers of any size.
func engineBodies(s suite) {
	all := func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody }
	large := func(a *app, body []byte) handler {
		return func(ctx context.Context) (idem.Response, error) {
			_, _ = a.run(ctx)
			return idem.Response{Status: 201, Header: http.Header{"Content-Type": {"application/octet-stream"}}, Body: body}, nil
		}
	}

	for _, c := range []struct {
		id   string
		size int
		body func(int) []byte
	}{
		{"P31", 399 << 10, storetest.Noise},
		{"P31", 401 << 10, storetest.Noise},
		{"A33", 900 << 10, storetest.Noise},
		{"P31", 1 << 20, storetest.Noise},
		{"P31", defaults.MaxMaxBody, storetest.Prose}, // idemtest.TestStore already tests Noise of this size
	} {
		s.run(c.id+": an answer of "+strconv.Itoa(c.size)+" bytes replays as it was", func(t *testing.T, e *env) {
			var a app
			eng := e.engine(all)
			fn := large(&a, c.body(c.size))
			first := serve(t, eng, keyed("k", "1"), fn).status(t, 201)
			serve(t, eng, keyed("k", "1"), fn).replays(t, first).header(t, "Content-Type", "application/octet-stream")
			a.ran(t, 1)
		})
	}

	s.run("an answer over the limit is given once, then said to be lost, and never runs again", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		fn := large(&a, storetest.Prose(defaults.MaxBody+1))
		if first := do(t, eng, order("k", "1"), fn).first(t); len(first.Body) != defaults.MaxBody+1 {
			t.Errorf("the first answer has %d bytes", len(first.Body))
		}
		e.costs(t, 1, func() { do(t, eng, order("k", "1"), fn).refused(t, idem.ErrNotKept) })
		serve(t, eng, keyed("k", "1"), fn).status(t, http.StatusGone)
		e.clock.Advance(storetest.LeaseOver)
		do(t, eng, order("k", "1"), fn).refused(t, idem.ErrNotKept)
		a.ran(t, 1)
	})

	s.run("an answer at the limit is kept", func(t *testing.T, e *env) {
		var a app
		fn := large(&a, storetest.Noise(defaults.MaxBody))
		first := do(t, e.engine(), order("k", "1"), fn).first(t)
		do(t, e.engine(), order("k", "1"), fn).replays(t, first)
	})

	s.run("a stored body that can't be read is 503 or 410, and runs nothing", func(t *testing.T, e *env) {
		var a app
		eng := e.engine(all)
		first := do(t, eng, order("k", "1"), large(&a, storetest.Noise(900<<10))).first(t)
		for fault, want := range map[error]error{errDown: idem.ErrUnavailable, idem.ErrNotKept: idem.ErrNotKept} {
			e.store.Reset(idemtest.At("LoadBody", 1, idemtest.Fault{Err: fault}))
			r := do(t, eng, order("k", "1"), a.run)
			if e.store.Calls("LoadBody") == 0 {
				r.replays(t, first) // this store keeps the body in the record, so the engine has no body to load
			} else {
				r.refused(t, want)
			}
			do(t, eng, order("k", "1"), a.run).replays(t, first)
		}
		a.ran(t, 1)
	})
}
