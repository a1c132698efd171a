package idemtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strconv"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// Bodies of any size up to 6 MiB are returned byte for byte, wherever the store puts them.
func storeBodies(s suite) {
	for _, size := range []int{0, 1, 149, 151, 1 << 10, 4 << 10, 5 << 10, 300 << 10, 900 << 10, defaults.MaxMaxBody} {
		for name, body := range map[string]func(int) []byte{"incompressible": storetest.Noise, "compressible": storetest.Prose} {
			s.run("a body of "+strconv.Itoa(size)+" bytes comes back, "+name, func(t *testing.T, e *env) {
				c := storetest.ClaimAt(e.clock.Now())
				prev := storetest.MustClaim(t, e.inner, c)
				want := storetest.MustCommit(t, e.inner, prev, finishedNext(prev, body(size)))
				sameBody(t, storetest.Load(t, e.inner, want.PK), want)
				sameBody(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now())), want)
			})
		}
	}

	// The keys of companions contain the nonce of the attempt that wrote them. So a
	// fenced attempt can't replace the companions of the attempt that took over.
	s.run("a refused commit does not touch the winner's body", func(t *testing.T, e *env) {
		old := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		taken := storetest.MustCommit(t, e.inner, old, storetest.TakenOver(old))
		want := storetest.MustCommit(t, e.inner, taken, finishedNext(taken, storetest.Noise(500<<10)))
		sameBody(t, storetest.RefusedCommit(t, e.inner, old, finishedNext(old, storetest.Noise(600<<10))), want)
		sameBody(t, storetest.Load(t, e.inner, want.PK), want)
	})

	for name, size := range map[string]int{"inside": 100, "beside": 300 << 10} {
		s.run("an answer goes from a finished record, but for its status: "+name, func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			prev := storetest.MustClaim(t, e.inner, c)
			done := storetest.MustCommit(t, e.inner, prev, finishedNext(prev, storetest.Noise(size)))
			next, err := state.Erased(done, e.clock.Now(), "jane")
			if err != nil {
				t.Fatal(err)
			}
			state.Stamp(next, done, "operator")
			want := storetest.MustCommit(t, e.inner, done, next)
			r := storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now()))
			if r.Scope != "" || r.Response == nil || r.Response.Status != done.Response.Status || len(r.Response.Body)+len(r.Response.Header) > 0 || r.Overflow == nil || r.Overflow.Count != 0 {
				t.Errorf("got %+v", r)
			}
			storetest.RefusedCommit(t, e.inner, done, finishedNext(prev, nil)) // an attempt that read the record before the erasure can't store the answer again
			storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
		})
	}

	for name, spoil := range map[string]func(*store.Overflow){
		"isn't what was stored": func(o *store.Overflow) { o.SHA256[0] ^= 1 },
		"has another length":    func(o *store.Overflow) { o.Length-- },
		"is missing":            func(o *store.Overflow) { o.Owner += "X" },
	} {
		s.run("a body that "+name+" is reported as not kept", func(t *testing.T, e *env) {
			prev := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
			storetest.MustCommit(t, e.inner, prev, finishedNext(prev, storetest.Noise(900<<10)))
			r, err := e.inner.Load(storetest.Limited(t), prev.PK)
			if err != nil {
				t.Fatal(err)
			}
			loader, ok := e.inner.(store.BodyLoader)
			if !ok || r.Overflow == nil {
				sameBody(t, r, finishedNext(prev, storetest.Noise(900<<10))) // this store keeps the body in the record, so the body can't be lost
				return
			}
			spoil(r.Overflow)
			if err := loader.LoadBody(storetest.Limited(t), r); !errors.Is(err, idem.ErrNotKept) {
				t.Errorf("LoadBody returned %v, want idem.ErrNotKept", err)
			}
		})
	}
}

// sameBody does what storetest.SameRecord does, but reports a wrong body briefly.
func sameBody(t testing.TB, got, want *store.Record) {
	t.Helper()
	if got.Response == nil || !bytes.Equal(got.Response.Body, want.Response.Body) {
		t.Fatalf("the body came back as %s, want %s", summary(got.Response), summary(want.Response))
	}
	storetest.SameRecord(t, got, want)
}

func summary(r *idem.Response) string {
	if r == nil {
		return "no response"
	}
	sum := sha256.Sum256(r.Body)
	return strconv.Itoa(len(r.Body)) + " bytes, SHA-256 " + strconv.QuoteToASCII(string(sum[:4]))
}
