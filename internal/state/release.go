package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// GiveBack says how an attempt ended that has no answer to store.
type GiveBack struct {
	Calls   []string          // that this attempt may have made and has not recorded
	Sent    map[string]string // hashes of what they sent, where that is known
	Refused bool              // the handler itself refused the request, with a 4xx
	Renewed int64             // how often this attempt has renewed its lease
	Refusal error             // why the program refuses to go on with what is recorded; nil if it doesn't
	Why     string            // for people; "" leaves the record's
}

// Released returns held without a lease: free for a new request where that is
// safe, else as it is for the next attempt. Run is renewed, since from now on it
// is left to its client, however long the attempt took.
func Released(held *store.Record, now time.Time, b GiveBack) *store.Record {
	r := *held
	r.Lease, r.Run = time.Time{}, Millis(now)
	r.Blocked = b.Refusal != nil
	if b.Why != "" {
		r.LastErr = b.Why
	}
	// One whose commit landed after all is in no doubt: nobody will repeat it.
	recorded := func(call string) bool { return tells(held, call) }
	if calls := slices.DeleteFunc(slices.Clone(b.Calls), recorded); len(calls) > 0 {
		doubt(&r, With(held.Doubts, calls...), doubtSince(held))
		r.Sent = Sending(held.Sent, b.Sent)
	}
	r.Sent = inDoubt(r.Sent, r.Doubts) // what was to be sent, and was not, binds nobody
	if free(held, b) {
		// A minute ago, for hosts whose clocks are behind; not 0, since TTL ignores
		// what is over five years old.
		r.Keep, r.Expires, r.Input, r.Blocked = store.KeepNothing, Seconds(now).Add(-time.Minute), nil, false
	}
	return &r
}

// free reports whether a release may give the key up altogether: only this
// attempt's own claim, with nothing written since but renewals of its lease, and no
// derived key out.
// Anything else stays, because committed work and derived keys hang on the
// record. A request that was stored with its claim has been accepted: unless its
// handler refused it, it is completed, whatever stopped it.
func free(r *store.Record, b GiveBack) bool {
	return r.Ver == 1+b.Renewed && len(b.Calls) == 0 && len(r.Phases) == 0 && len(r.Jobs) == 0 && (r.Input == nil || b.Refused)
}

// FreedWithin bounds how far after Run a record expires whose key was given back.
// Any other record expires a retention after Run.
const FreedWithin = 30 * time.Minute

// Freed reports whether an attempt gave its key back. It then set an expiry
// before Run, where any other is a retention ahead of it, however long the attempt
// took. (Records of earlier programs have the begin of the attempt as their Run.)
func Freed(r *store.Record) bool {
	return r.State == store.Open && r.Lease.IsZero() && r.Keep == store.KeepNothing && r.Expires.Before(r.Run.Add(FreedWithin))
}
