package state

import (
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/redact"
)

// GiveBack describes the end of an attempt without an answer to store.
type GiveBack struct {
	Calls   []string          // calls that this attempt may have made and has not recorded
	Sent    map[string]string // hashes of the data that Calls sent, if known
	Refused bool              // the handler itself refused the request, with a 4xx
	Renewed int64             // number of lease renewals by this attempt
	Refusal error             // why the program refuses to continue with the record; nil if it doesn't refuse
	Why     string            // reason for people; "" keeps the record's reason
}

// Released returns held without a lease: free for a new request if that is safe,
// otherwise ready for the next attempt. Run is set to now, since the operation is
// left to its client from now on, however long the attempt took.
func Released(held *store.Record, now time.Time, b GiveBack) *store.Record {
	r := *held
	r.Lease, r.Run = time.Time{}, Millis(now)
	r.Blocked = b.Refusal != nil
	if b.Why != "" {
		r.LastErr = b.Why
	}
	// A call whose commit landed after all is not in doubt: no attempt will repeat
	// the call.
	recorded := func(call string) bool { return tells(held, call) }
	if calls := slices.DeleteFunc(slices.Clone(b.Calls), recorded); len(calls) > 0 {
		doubt(&r, With(held.Doubts, calls...), doubtSince(held))
		r.Sent = Sending(held.Sent, b.Sent)
	}
	r.Sent = inDoubt(r.Sent, r.Doubts) // data that was not sent imposes nothing
	if free(held, b) {
		// A minute ago, for hosts whose clocks are behind; not 0, since TTL ignores
		// times over five years ago.
		r.Keep, r.Expires, r.Input, r.Blocked = store.KeepNothing, Seconds(now).Add(-time.Minute), nil, false
	} else {
		r.Handovers = handed(held, store.Handover{At: r.Run, Kind: store.HandoverRelease, Err: redact.Cut(b.Why)})
	}
	WaitFrom(&r, now)
	return &r
}

// free reports whether a release may free the key: only after this attempt's own
// claim, if nothing was written since but renewals of its lease, and no derived
// key was handed out. Otherwise the record stays, because committed work and
// derived keys depend on it. A request that was stored with its claim is
// accepted: unless its handler refused it, it must be completed.
func free(r *store.Record, b GiveBack) bool {
	return r.Ver == 1+b.Renewed && len(b.Calls) == 0 && len(r.Phases) == 0 && len(r.Jobs) == 0 && (r.Input == nil || b.Refused)
}

// FreedWithin is how far after Run a record with a freed key expires at most. Any
// other record expires a retention after Run.
const FreedWithin = 30 * time.Minute

// Freed reports whether an attempt freed its key. The release then set an expiry
// before Run; in other records Expires is a retention after Run, however long the
// attempt took. (In records of earlier programs, Run is the begin of the
// attempt.)
func Freed(r *store.Record) bool {
	return r.State == store.Open && r.Lease.IsZero() && r.Keep == store.KeepNothing && r.Expires.Before(r.Run.Add(FreedWithin))
}
