package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Verdict is an attempt's decision about the record in its way.
type Verdict int

// The verdicts.
const (
	Again       Verdict = iota // no record is in the way any more: claim again
	Own                        // this attempt's own claim, whose acknowledgement was lost
	OtherCaller                // the key was used with other credentials
	Mismatch                   // the key was used with another request
	Replay                     // finished: give the stored answer
	Expired                    // finished, and its lifetime is over
	Stuck                      // waiting for an operator
	InFlight                   // held by another attempt
	TakeOver                   // open, and no attempt holds the record
)

// Same reports which parts of a request equal those of the request that claimed
// the record.
type Same struct{ Caller, Request bool }

// Judge decides about the record that refused a claim, for the claim, the
// take-over and the read-first path. The order matters:
//
//   - Own comes first, or a lost acknowledgement would lock the caller out;
//   - OtherCaller comes before any verdict that reveals the record or changes it;
//   - Mismatch comes before InFlight, so that a wrong retry of a running request is
//     reported (R23) and never takes a record over;
//   - a record without Expires never expires: it is kept.
func Judge(held *store.Record, me string, same Same, now time.Time) Verdict {
	switch {
	case held == nil || held.State == store.None:
		return Again
	case held.Owner == me && held.Ver == 1 && held.State != store.Stuck:
		return Own
	case Over(held.Expires, now):
		return Again
	case !same.Caller:
		return OtherCaller
	case !same.Request:
		return Mismatch
	case held.State == store.Done && !held.Expires.IsZero() && Over(held.Until, now):
		return Expired
	case held.State == store.Done:
		return Replay
	case held.State == store.Stuck:
		return Stuck
	case held.Lease.After(now):
		return InFlight
	default:
		return TakeOver
	}
}

// Corrupt reports whether a record has an unknown state, or is finished without a
// response.
func Corrupt(r *store.Record) bool {
	known := r.State == store.Open || r.State == store.Done || r.State == store.Stuck
	return !known || r.State == store.Done && r.Response == nil
}

// Over reports whether t, in whole seconds as the table's TTL attribute, has
// passed. The zero time never passes.
func Over(t, now time.Time) bool { return !t.IsZero() && t.Unix() < now.Unix() }

// Lifetime returns the end of the key's answers; zero while that end is open.
func Lifetime(r *store.Record) time.Time {
	if !r.Until.IsZero() {
		return r.Until
	}
	return r.Expires
}
