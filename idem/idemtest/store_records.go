package idemtest

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// A loaded record has every field as it was written. So has the record that a refused
// claim or commit returns, because the engine decides by this record.
func storeRecords(s suite) {
	for _, tt := range []struct {
		name   string
		change func(*store.Record)
	}{
		{"as claimed", func(*store.Record) {}},
		{"with every field", func(r *store.Record) { *r = *fullNext(r) }},
		{"released", func(r *store.Record) {
			r.Lease, r.Expires, r.LastErr = time.Time{}, r.Run.Truncate(time.Second).Add(-time.Second), "it failed: \"ünd\"\n"
		}},
		{"stuck", func(r *store.Record) {
			r.State, r.Keep, r.Expires, r.Tries, r.LastErr = store.Stuck, store.KeepOpen, time.Time{}, 17, "given up"
		}},
		{"blocked", func(r *store.Record) { r.Keep, r.Expires, r.Blocked = store.KeepOpen, time.Time{}, true }},
		{"settled", func(r *store.Record) {
			r.Keep, r.Expires = store.KeepOpen, time.Time{}
			r.Settled = []store.Decision{
				{By: "zoë@example.com", At: time.UnixMilli(1_800_000_000_123), What: "not made: charge_created", ID: "of this decision"},
				{At: time.UnixMilli(1_800_000_100_000), What: "try again", From: "stuck", To: "released"},
			}
		}},
		{"taken over and released", func(r *store.Record) {
			r.Keep, r.Expires = store.KeepOpen, time.Time{}
			r.Phases = []store.Phase{{Name: "without a time", Result: []byte(`1`)}, {Name: "timed", Result: []byte(`2`), At: 1234 * time.Millisecond}}
			r.Handovers = []store.Handover{
				{At: time.UnixMilli(1_800_000_000_123), Kind: "release", Err: "timeout"},
				{At: time.UnixMilli(1_800_000_100_000), Kind: "retry", Function: "rides-2"},
				{At: time.UnixMilli(1_800_000_200_000), Kind: "completer"},
			}
		}},
		{"open with phases and jobs", func(r *store.Record) {
			r.Keep, r.Expires = store.KeepOpen, time.Time{}
			r.Phases = []store.Phase{
				{Name: "ride_created", Result: []byte(`{"id":7,"from":[1.5,-2],"note":"é\u0000"}`)},
				{Name: "nothing to say", Result: []byte(`null`)},
				{Name: "leg/2", Result: []byte(`"` + strings.Repeat("x", 5000) + `"`)},
			}
			r.Jobs = map[string]idem.Job{
				"0.0": {Kind: "receipt", Args: []byte(`{"to":"zoë@example.com"}`)},
				"0.1": {Kind: "receipt", Args: []byte(`null`), Tries: 3},
				"2.0": {Kind: "push", Args: []byte(`[]`)},
			}
		}},
		{"open with calls", func(r *store.Record) {
			r.Keep, r.Expires = store.KeepOpen, time.Time{}
			r.Phases = []store.Phase{{Name: "charge", Result: []byte(`1`)}}
			r.Calls = map[string]int{"payments#": 2, "payments/refund%2F1": 1, "*": 1, "#": 1}
			r.Mark, r.Doubts, r.DoubtSince = "?zoë", []string{"?", "mail#1", "payments/zoë"}, r.Run
			r.Sent = map[string]string{"mail#1": "5f", "payments/zoë": "a0"}
			r.DoubtUntil = r.Run.Add(time.Minute)
			r.Asked = &store.Asked{Phase: "zoë", At: r.Run.Add(time.Hour), Times: 3, Said: "not made yet", Sent: r.DoubtUntil}
		}},
		{"open, looked up, and called again", func(r *store.Record) {
			r.Keep, r.Expires, r.Mark = store.KeepOpen, time.Time{}, "?zoë"
			r.Asked = &store.Asked{Phase: "zoë", At: r.Run, Times: 1, Said: "not made"}
		}},
		{"done", func(r *store.Record) {
			*r = *finishedNext(r, []byte(`{"message":"ride accepted"}`))
		}},
		{"done with jobs to deliver", func(r *store.Record) {
			*r = *finishedNext(r, []byte(`{}`))
			r.Keep, r.Until, r.Expires = store.KeepJobs, r.Expires, time.Time{}
			r.Phases = []store.Phase{{Name: "ride_created"}, {Name: "charge_created"}}
			r.Jobs = map[string]idem.Job{"1.0": {Kind: "receipt", Args: []byte(`{"n":1}`)}}
		}},
		{"done with an empty body", func(r *store.Record) {
			*r = *finishedNext(r, nil)
			r.Response = &idem.Response{Status: http.StatusNoContent}
		}},
		{"done with a binary body", func(r *store.Record) {
			*r = *finishedNext(r, []byte("\x00\xff\xfe\x80 no UTF-8 \xc3\x28 \r\n"))
		}},
		{"done with many header values", func(r *store.Record) {
			*r = *finishedNext(r, []byte("linked"))
			r.Response.Header = http.Header{
				"Link": {`</a>; rel="next"`, `</b>; rel="prev"`, ""}, "Vary": {"Accept", "Origin"}, "X-Ümlaut": {"ja, \"sehr\""},
			}
		}},
		{"done without its body", func(r *store.Record) {
			*r = *finishedNext(r, nil)
			r.Overflow = &store.Overflow{Length: 9 << 20, SHA256: sha256.Sum256([]byte("too large"))}
		}},
	} {
		s.run("a record comes back complete: "+tt.name, func(t *testing.T, e *env) {
			c := storetest.ClaimAt(e.clock.Now())
			want := storetest.MustClaim(t, e.inner, c)
			want = storetest.MustCommit(t, e.inner, want, storetest.Next(want, func(n *store.Record) {
				ver := n.Ver
				tt.change(n)
				n.Ver = ver
			}))
			storetest.SameRecord(t, storetest.Load(t, e.inner, want.PK), want)
			storetest.SameRecord(t, storetest.RefusedClaim(t, e.inner, storetest.Rival(c, e.clock.Now().Add(-time.Minute))), want)
			storetest.SameRecord(t, storetest.RefusedCommit(t, e.inner, storetest.Rival(c, e.clock.Now()).Next, want), want)
		})
	}
}

// finishedNext returns the record that follows r when the operation finishes with an
// answer that has the given body.
func finishedNext(r *store.Record, body []byte) *store.Record {
	return storetest.Next(r, func(n *store.Record) {
		n.State, n.Lease, n.Keep, n.Retention = store.Done, time.Time{}, store.KeepNothing, 0
		n.Expires = n.Run.Truncate(time.Second).Add(24 * time.Hour)
		n.Response = &idem.Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"text/plain"}}, Body: body}
	})
}

// fullNext returns a record that can follow r, and that has as many fields as one
// record can have.
func fullNext(r *store.Record) *store.Record {
	n := finishedNext(r, []byte("full"))
	n.Keep, n.Until, n.Expires = store.KeepJobs, n.Expires, time.Time{}
	n.Retention = 720 * time.Hour
	n.Phases = []store.Phase{{Name: "ride_created"}, {Name: "charge_created"}}
	n.Jobs = map[string]idem.Job{"1.0": {Kind: "receipt", Args: []byte(`{"n":1}`), Tries: 2}, "1.1": {Kind: "mail", Args: []byte(`2`)}}
	n.Response.Header.Add("Link", "</a>")
	n.Response.Header.Add("Link", "</b>")
	n.Handler, n.Tenant = store.HandlerID{Function: "bikes", Name: ""}, ""
	n.Tries, n.LastErr, n.Run = 4, "it failed before", n.Run.Add(7*time.Second+8*time.Millisecond)
	return n
}
