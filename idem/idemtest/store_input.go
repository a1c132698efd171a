package idemtest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// The store keeps a record's request, whatever its size, until the record is done. Until
// then, each take-over can read the request.
func storeInput(s suite) {
	random := make([]byte, 700<<10)
	_, _ = rand.Read(random)
	for _, body := range [][]byte{nil, []byte(`{"amount":5}`), []byte(strings.Repeat("text ", 2000)), random[:5000], random} {
		s.run(fmt.Sprintf("a stored request of %d bytes", len(body)), func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			c.Next.Keep, c.Next.Expires = store.KeepOpen, time.Time{}
			c.Next.Input = &store.Input{
				Method: "POST", Path: "/rides/%2F", Query: "a=1&b=%20", Body: body,
				Header:   http.Header{"Content-Type": {"application/json"}, "X-Many": {"a", "b\xff"}},
				Identity: idem.Identity{Kind: "jwt", Subject: "https://issuer|zoë"}, Snapshot: []byte(`{"claims":{"sub":"zoë"}}`),
			}
			want := storetest.MustClaim(t, e.inner, c)
			storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
			storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now())), want)

			taken := storetest.MustCommit(t, e.inner, storetest.Load(t, e.inner, want.PK), storetest.TakenOver(want))
			storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), taken)

			done := finishedNext(taken, []byte("done"))
			done.Input = nil
			want = storetest.MustCommit(t, e.inner, taken, done)
			storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
		})
	}
}

// The store keeps parked jobs. It also keeps the intent of a phase, which says that the
// phase's call must not be repeated.
func storeMarks(s suite) {
	s.run("a record comes back complete: intents and parked jobs", func(t *testing.T, e *env) {
		want := storetest.MustClaim(t, e.inner, storetest.ClaimAt(e.clock.Now()))
		want = storetest.MustCommit(t, e.inner, want, storetest.Next(want, func(n *store.Record) {
			n.Keep, n.Expires = store.KeepOpen, time.Time{}
			n.Phases = []store.Phase{{Name: "one", Result: []byte("1")}, {Name: "fax", Intent: true, Shape: `{"page":0}`}}
			n.Jobs = map[string]idem.Job{"0.0": {Kind: "mail", Args: []byte("1"), Group: "g", Tries: 9, Failed: "no such address"}}
		}))
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
		want = storetest.MustCommit(t, e.inner, want, storetest.Next(want, func(n *store.Record) {
			n.Phases = []store.Phase{{Name: "one", Result: []byte("1")}, {Name: "fax", Result: []byte(`{"page":1}`), Shape: `{"page":0}`}}
		}))
		storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
	})
}
