package idemtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
)

// Helpers of the scenarios that speak to a store directly.

// claimAt is the claim of a new record, by a new owner, as an engine makes it.
func claimAt(now time.Time) idem.Claim {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:])
	now = now.Truncate(time.Second)
	return idem.Claim{Now: now, Next: &idem.Record{
		PK:    "v1#idemtest#" + base64.RawURLEncoding.EncodeToString(random[:]),
		State: idem.Open, Owner: rand.Text(), Ver: 1,
		Lease: now.Add(limit + 123*time.Millisecond), Expires: now.Add(24 * time.Hour), // in ms and s, as an item holds them
		Fingerprint: hex.EncodeToString(random[:]), Cred: hex.EncodeToString(random[1:]), Secret: "2026-11", ID: rand.Text(),
		Created: now.Add(7 * time.Millisecond), Run: now.Add(7 * time.Millisecond), Route: "/rides/{id}", Scope: "jwt:zoë#1",
		Calls: map[string]int{}, DeliveryKey: true,
		Handler: idem.HandlerID{Function: "rides", Name: "POST /rides/{id}"}, Tenant: "zoë",
	}}
}

// rival is a claim of the same key by another attempt, at another time.
func rival(c idem.Claim, now time.Time) idem.Claim {
	r := claimAt(now)
	r.Next.PK = c.Next.PK
	return r
}

// next is what follows r, changed by f: with its version raised.
func next(r *idem.Record, f func(*idem.Record)) *idem.Record {
	n := clone(r)
	n.Ver++
	f(n)
	return n
}

// takenOver is r in the hands of a new owner.
func takenOver(r *idem.Record) *idem.Record {
	return next(r, func(n *idem.Record) { n.Owner = rand.Text() })
}

// mustClaim makes a claim that nothing stands against, and returns its record.
func mustClaim(t testing.TB, s idem.Store, c idem.Claim) *idem.Record {
	t.Helper()
	want := clone(c.Next)
	held, err := s.Claim(limited(t), c)
	if held != nil || err != nil {
		t.Fatalf("Claim returned %+v, %v; want it granted", held, err)
	}
	return want
}

// refusedClaim makes a claim that must be refused, and returns what is in the way.
func refusedClaim(t testing.TB, s idem.Store, c idem.Claim) *idem.Record {
	t.Helper()
	held, err := s.Claim(limited(t), c)
	if held == nil || err != nil {
		t.Fatalf("Claim returned %+v, %v; want the record in the way", held, err)
	}
	return whole(t, s, held)
}

// mustCommit makes a commit that must land, and returns next.
func mustCommit(t testing.TB, s idem.Store, prev, next *idem.Record) *idem.Record {
	t.Helper()
	want := clone(next)
	held, err := s.Commit(limited(t), idem.Commit{Prev: clone(prev), Next: next})
	if held != nil || err != nil {
		t.Fatalf("Commit returned %+v, %v; want it done", held, err)
	}
	return want
}

// refusedCommit makes a commit that must be refused, and returns what is there.
func refusedCommit(t testing.TB, s idem.Store, prev, next *idem.Record) *idem.Record {
	t.Helper()
	held, err := s.Commit(limited(t), idem.Commit{Prev: prev, Next: next})
	if held == nil || err != nil {
		t.Fatalf("Commit returned %+v, %v; want the record in the way", held, err)
	}
	return whole(t, s, held)
}

// load returns the stored record with its body, or nil.
func load(t testing.TB, s idem.Store, pk string) *idem.Record {
	t.Helper()
	r, err := s.Load(limited(t), pk)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return whole(t, s, r)
}

// whole fetches the body of a record that the store has put elsewhere. Where
// that is, is the store's own business.
func whole(t testing.TB, s idem.Store, r *idem.Record) *idem.Record {
	t.Helper()
	body := r != nil && r.Overflow != nil && r.Overflow.Count > 0
	input := r != nil && r.Input != nil && r.Input.Overflow != nil
	if !body && !input {
		return r
	}
	loader, ok := s.(idem.BodyLoader)
	if !ok {
		t.Fatalf("the record says its body is elsewhere, and %T is no idem.BodyLoader", s)
	}
	if body && (r.Response == nil || len(r.Response.Body) != 0) {
		t.Fatalf("a record with Overflow has response %+v, want one without a body", r.Response)
	}
	if err := loader.LoadBody(limited(t), r); err != nil {
		t.Fatalf("LoadBody: %v", err)
	}
	r = clone(r)
	r.Overflow = nil
	if input {
		r.Input.Overflow = nil
	}
	return r
}

// clone shares nothing with r.
func clone(r *idem.Record) *idem.Record { return r.Clone() }
