package enginetest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// engineReplay tests that each later request with a key gets the first answer.
func engineReplay(s suite) {
	s.run("a first request runs and its answer is stored for the retention", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		var first result
		e.costs(t, 2, func() { first = do(t, eng, order("k", "1"), a.run).first(t) })
		a.ran(t, 1)

		r := e.record(t, order("k", "1"))
		if r == nil || r.State != store.Done || r.Ver != 2 || !r.Lease.IsZero() || r.Keep != store.KeepNothing {
			t.Fatalf("stored is %+v, want a finished record of version 2 without a lease", r)
		}
		if want := e.clock.Now().Add(defaults.Retention); !r.Expires.Equal(want) || !first.Expires.Equal(want) {
			t.Errorf("record expires at %v, the answer says %v, want %v", r.Expires, first.Expires, want)
		}
		if string(r.Response.Body) != string(first.Body) || r.Response.Status != first.Status {
			t.Errorf("stored response is %+v, want %v", r.Response, first)
		}
	})

	s.run("the same request again gets the same answer, marked, in one call", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := serve(t, eng, keyed("k", "1"), a.run).status(t, 201)
		first.header(t, idem.ReplayedHeader, "")
		for range 3 {
			e.costs(t, 1, func() {
				again := serve(t, eng, keyed("k", "1"), a.run).replays(t, first)
				again.header(t, idem.ReplayedHeader, "true")
				again.header(t, "Content-Type", first.Header.Get("Content-Type"))
				again.header(t, idem.KeyHeader, "k")
				again.header(t, "Idempotency-Expires", first.Header.Get("Idempotency-Expires"))
			})
		}
		a.ran(t, 1)
	})

	s.run("another process replays it too", func(t *testing.T, e *env) {
		var a app
		first := do(t, e.engine(), order("k", "1"), a.run).first(t)
		do(t, e.engineOn(idemtest.Faulty(e.inner, nil)), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("a retry that comes after the answer's own deadline replays", func(t *testing.T, e *env) {
		var a app
		first := do(t, e.engine(), order("k", "1"), a.run).first(t)
		e.clock.Advance(storetest.LeaseOver)
		do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})

	s.run("Set-Cookie, credentials and unlisted headers are given once and never stored", func(t *testing.T, e *env) {
		eng := e.engine(func(o *idem.Options) { o.StoreHeaders = []string{"x-ride-id"} })
		secrets := []string{"Set-Cookie", "Authorization", "Www-Authenticate", "X-Internal"}
		fn := func(context.Context) (idem.Response, error) {
			h := http.Header{
				"Content-Type": {"text/csv"}, "Location": {"/rides/7"}, "X-Ride-Id": {"7"}, "Link": {"</a>", "</b>"},
			}
			for _, name := range secrets {
				h.Set(name, "secret")
			}
			return idem.Response{Status: 201, Header: h, Body: []byte("7")}, nil
		}
		first := serve(t, eng, keyed("k", "1"), fn).status(t, 201)
		again := serve(t, eng, keyed("k", "1"), fn).replays(t, first)
		for _, name := range secrets {
			first.header(t, name, "secret")
			again.header(t, name, "")
			if v := e.record(t, keyedDo("k", "1")).Response.Header.Values(name); v != nil {
				t.Errorf("header %s is stored: %q", name, v)
			}
		}
		for _, name := range []string{"Content-Type", "Location", "X-Ride-Id"} {
			again.header(t, name, first.Header.Get(name))
		}
		if got := again.Header.Values("Link"); len(got) != 2 {
			t.Errorf("header Link is %q, want both values", got)
		}
	})

	s.run("a header that would split the answer reaches neither the first nor the second", func(t *testing.T, e *env) {
		eng := e.engine(func(o *idem.Options) { o.StoreHeaders = []string{"X-Note"} })
		fn := func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 201, Header: http.Header{"X-Note": {"a\r\nSet-Cookie: b"}}}, nil
		}
		first := serve(t, eng, keyed("k", "1"), fn).status(t, 201)
		first.header(t, "X-Note", "")
		serve(t, eng, keyed("k", "1"), fn).replays(t, first).header(t, "X-Note", "")
	})

	for name, resp := range map[string]idem.Response{
		"204 without a body": {Status: http.StatusNoContent},
		"200 without a body": {Status: http.StatusOK},
		"the zero response":  {},
		"an empty body":      {Status: 200, Body: []byte{}},
		"null":               {Status: 200, Body: []byte("null")},
	} {
		s.run(""+name+" is an answer and replays", func(t *testing.T, e *env) {
			var a app
			eng := e.engine()
			fn := func(ctx context.Context) (idem.Response, error) {
				_, _ = a.run(ctx)
				return resp, nil
			}
			first := do(t, eng, order("k", "1"), fn).first(t)
			do(t, eng, order("k", "1"), fn).replays(t, first)
			a.ran(t, 1)
		})
	}

	s.run("changing an answer afterwards changes no later one", func(t *testing.T, e *env) {
		var a app
		eng := e.engine()
		first := do(t, eng, order("k", "1"), a.run).first(t)
		was := result{Result: idem.Result{Response: idem.Response{Status: first.Status, Body: append([]byte(nil), first.Body...)}}}
		for range 3 {
			clear(first.Body)
			first.Header.Set("Content-Type", "changed")
			first = do(t, eng, order("k", "1"), a.run).replays(t, was)
			first.header(t, "Content-Type", "application/json")
		}
	})

	s.run("a write of a finished request that arrives again changes nothing", func(t *testing.T, e *env) {
		var sent []idemtest.Call
		e.store.Reset(func(_ context.Context, c idemtest.Call) idemtest.Fault {
			c.Claim.Next, c.Commit.Prev, c.Commit.Next = c.Claim.Next.Clone(), c.Commit.Prev.Clone(), c.Commit.Next.Clone()
			sent = append(sent, c)
			return idemtest.Fault{}
		})
		var a app
		first := do(t, e.engine(), order("k", "1"), a.run).first(t)
		if len(sent) != 2 {
			t.Fatalf("%d calls, want a claim and a commit", len(sent))
		}
		want := e.record(t, order("k", "1"))
		for _, c := range sent {
			resend(t, e.inner, c)
			storetest.SameRecord(t, e.record(t, order("k", "1")), want)
		}
		e.clock.Advance(time.Hour)
		e.store.Reset(nil)
		do(t, e.engine(), order("k", "1"), a.run).replays(t, first)
		a.ran(t, 1)
	})
}

// resend repeats a call, and fails t unless the store refuses it.
func resend(t testing.TB, s store.Store, c idemtest.Call) {
	t.Helper()
	if c.Verb == "Claim" {
		storetest.RefusedClaim(t, s, c.Claim)
	} else {
		storetest.RefusedCommit(t, s, c.Commit.Prev, c.Commit.Next)
	}
}

// keyedDo returns the same request as the function keyed, but the key is also in the
// field Key. Serve sets Key in the same way.
func keyedDo(key, body string) idem.Request {
	r := keyed(key, body)
	r.Key = key
	return r
}
