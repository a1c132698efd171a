package idemtest

import (
	"testing"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

func storeLoad(s suite) {
	s.run("a load of nothing is nil without an error", func(t *testing.T, e *env) {
		if r, err := e.inner.Load(storetest.Limited(t), storetest.ClaimAt(e.clock.Now()).Next.PK); r != nil || err != nil {
			t.Errorf("Load returned %+v, %v; want nil, nil", r, err)
		}
	})

	s.run("a load sees the write before it", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		for range 20 {
			r = storetest.MustCommit(t, e.inner, r, storetest.TakenOver(r))
			storetest.SameRecord(t, storetest.Load(t, e.inner, r.PK), r)
		}
	})

	s.run("a load in a cancelled context fails", func(t *testing.T, e *env) {
		r := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		if got, err := e.inner.Load(cancelled(t), r.PK); got != nil || err == nil {
			t.Errorf("Load returned %+v, %v; want an error", got, err)
		}
	})

	s.run("changing what was handed in changes nothing", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		claim := storetest.MustClaim(t, e.inner, c)
		scribble(c.Next)
		storetest.SameRecord(t, storetest.Load(t, e.inner, claim.PK), claim)

		handed := fullNext(claim)
		want := storetest.MustCommit(t, e.inner, claim, handed)
		scribble(handed)
		storetest.SameRecord(t, storetest.Load(t, e.inner, claim.PK), want)
	})

	s.run("changing what was handed out changes nothing", func(t *testing.T, e *env) {
		c := storetest.ClaimAt(e.clock.Now())
		claim := storetest.MustClaim(t, e.inner, c)
		want := storetest.MustCommit(t, e.inner, claim, fullNext(claim))

		scribble(storetest.Load(t, e.inner, claim.PK))
		scribble(storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now())))
		scribble(storetest.RefusedCommit(t, e.inner, claim, fullNext(claim)))
		storetest.SameRecord(t, storetest.Load(t, e.inner, claim.PK), want)
	})
}

// scribble overwrites all data that r refers to.
func scribble(r *store.Record) {
	for i := range r.Phases {
		for j := range r.Phases[i].Result {
			r.Phases[i].Result[j] = '!'
		}
		r.Phases[i].Name = "scribbled"
	}
	for id, j := range r.Jobs {
		for i := range j.Args {
			j.Args[i] = '!'
		}
		delete(r.Jobs, id)
	}
	if r.Response != nil {
		for i := range r.Response.Body {
			r.Response.Body[i] = '!'
		}
		for _, values := range r.Response.Header {
			for i := range values {
				values[i] = "scribbled"
			}
		}
		r.Response.Header.Set("X-Scribbled", "true")
		r.Response.Status = 599
	}
	if r.Overflow != nil {
		r.Overflow.Count++
	}
	r.Owner, r.Ver, r.State = "scribbled", 99, store.Stuck
}
