// Package storetest has helpers that the conformance suite of stores and the tests of
// the engine share.
package storetest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/trace"
)

// ClaimAt returns a claim of a new key by a new owner, like those that engines make.
// The time of the claim is now, in whole seconds.
func ClaimAt(now time.Time) store.Claim {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:])
	now = now.Truncate(time.Second)
	return store.Claim{Now: now, Next: &store.Record{
		PK:    "v1#idemtest#" + base64.RawURLEncoding.EncodeToString(random[:]),
		State: store.Open, Owner: rand.Text(), Ver: 1,
		Lease: now.Add(Limit + 123*time.Millisecond), Expires: now.Add(24 * time.Hour), Retention: 24 * time.Hour, // an item has Lease in milliseconds, and Expires in seconds
		Fingerprint: hex.EncodeToString(random[:]), Secret: "2026-11", Scheme: "-query json", ID: rand.Text(),
		Created: now.Add(7 * time.Millisecond), Run: now.Add(7 * time.Millisecond), Route: "/rides/{id}", Region: "eu-central-1", Scope: "jwt:zoë#1",
		Calls: map[string]int{}, DeliveryKey: true,
		Handler: store.HandlerID{Function: "rides", Name: "POST /rides/{id}"}, Tenant: "zoë",
		Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}}
}

// Rival returns another attempt's claim of the same key as c. The time of the claim is
// now.
func Rival(c store.Claim, now time.Time) store.Claim {
	r := ClaimAt(now)
	r.Next.PK = c.Next.PK
	return r
}

// Next copies r, makes the copy's version one higher, and applies f to the copy. It
// returns the copy.
func Next(r *store.Record, f func(*store.Record)) *store.Record {
	n := r.Clone()
	n.Ver++
	f(n)
	return n
}

// TakenOver returns the record after another attempt has taken r over.
func TakenOver(r *store.Record) *store.Record {
	return Next(r, func(n *store.Record) { n.Owner = rand.Text() })
}

// MustClaim makes the claim c, and returns the claimed record. It fails the test unless
// the claim succeeds.
func MustClaim(t testing.TB, s store.Store, c store.Claim) *store.Record {
	t.Helper()
	want := c.Next.Clone()
	held, err := s.Claim(Limited(t), c)
	if held != nil || err != nil {
		t.Fatalf("Claim returned %+v, %v; want it granted", held, err)
	}
	want.Seal = c.Next.Seal
	return want
}

// RefusedClaim makes the claim c, and returns the stored record. It fails the test
// unless the store refuses the claim.
func RefusedClaim(t testing.TB, s store.Store, c store.Claim) *store.Record {
	t.Helper()
	held, err := s.Claim(Limited(t), c)
	if held == nil || err != nil {
		t.Fatalf("Claim returned %+v, %v; want the record in the way", held, err)
	}
	return Whole(t, s, held)
}

// MustCommit commits next after prev, and returns a copy of next. It fails the test
// unless the commit succeeds.
func MustCommit(t testing.TB, s store.Store, prev, next *store.Record) *store.Record {
	t.Helper()
	want := next.Clone()
	held, err := s.Commit(Limited(t), store.Commit{Prev: prev.Clone(), Next: next})
	if held != nil || err != nil {
		t.Fatalf("Commit returned %+v, %v; want it done", held, err)
	}
	want.Seal = next.Seal
	return want
}

// RefusedCommit commits next after prev, and returns the stored record. It fails the
// test unless the store refuses the commit.
func RefusedCommit(t testing.TB, s store.Store, prev, next *store.Record) *store.Record {
	t.Helper()
	held, err := s.Commit(Limited(t), store.Commit{Prev: prev, Next: next})
	if held == nil || err != nil {
		t.Fatalf("Commit returned %+v, %v; want the record in the way", held, err)
	}
	return Whole(t, s, held)
}

// Load returns the record stored under pk, with its bodies. It returns nil if there is
// none.
func Load(t testing.TB, s store.Store, pk string) *store.Record {
	t.Helper()
	r, err := s.Load(Limited(t), pk)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return Whole(t, s, r)
}

// Whole returns r with the bodies of its request and its answer. It loads the bodies
// that the store keeps outside of the record.
func Whole(t testing.TB, s store.Store, r *store.Record) *store.Record {
	t.Helper()
	body := r != nil && r.Overflow != nil && r.Overflow.Count > 0
	input := r != nil && r.Input != nil && r.Input.Overflow != nil
	if !body && !input {
		return r
	}
	loader, ok := s.(store.BodyLoader)
	if !ok {
		t.Fatalf("the record says its body is elsewhere, and %T is no idem.BodyLoader", s)
	}
	if body && (r.Response == nil || len(r.Response.Body) != 0) {
		t.Fatalf("a record with Overflow has response %+v, want one without a body", r.Response)
	}
	if err := loader.LoadBody(Limited(t), r); err != nil {
		t.Fatalf("LoadBody: %v", err)
	}
	r = r.Clone()
	r.Overflow = nil
	if input {
		r.Input.Overflow = nil
	}
	return r
}

// SameRecord fails t if the records differ. It ignores the field Seal. An absent value
// counts as equal to an empty one, because some stores don't distinguish them.
func SameRecord(t testing.TB, got, want *store.Record) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Record{}, "Seal"), wholeBytes); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// wholeBytes makes go-cmp compare two bodies without a search for the bytes that
// differ.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))
