package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Verdict is an attempt's decision about the record that is stored under the key. The zero Verdict
// means that the attempt could not decide.
type Verdict int

// The verdicts.
const (
	Claimable Verdict = 1 + iota // the record is gone, or was freed: the key can be claimed
	Own                          // this attempt's claim was applied; its acknowledgement may be lost
	Mismatch                     // the key was used with another request
	Replay                       // finished: give the stored answer
	Stuck                        // waiting for an operator
	InFlight                     // held by another attempt
	TooSoon                      // open, and no attempt holds the record, but the next attempt must still wait (see Withheld)
	TakeOver                     // open, and no attempt holds the record
)

// Judge decides about found, the record of the key. The parameter me is the nonce of the
// attempt that asks. The parameter same tells whether the record was claimed with an
// equal request. The order matters:
//
//   - Own comes before InFlight. If the acknowledgement of an attempt's claim was lost,
//     the attempt holds the lease, and must not wait for the lease to end.
//   - Mismatch comes before InFlight and TakeOver. Another request under the key is
//     refused at once, and never takes the record over.
//   - TooSoon comes after InFlight. If an attempt holds the record, other attempts wait
//     for the end of the lease.
//
// A record without Expires never expires.
func Judge(found *store.Record, me string, same bool, now time.Time) Verdict {
	switch {
	case found == nil || found.State == store.None:
		return Claimable
	case found.Owner == me && found.Ver == 1 && found.State != store.Stuck:
		return Own
	case Free(found, now):
		return Claimable
	case !same:
		return Mismatch
	case found.State == store.Done:
		return Replay
	case found.State == store.Stuck:
		return Stuck
	case found.Lease.After(now):
		return InFlight
	case now.Before(Withheld(found)):
		return TooSoon
	}
	return TakeOver
}

// Corrupt reports whether a record has an unknown state, or is finished without a
// response.
func Corrupt(r *store.Record) bool {
	known := r.State == store.Open || r.State == store.Done || r.State == store.Stuck
	return !known || r.State == store.Done && r.Response == nil
}

// Over reports whether t has passed. It compares whole seconds, like the table's TTL
// attribute. The zero time never passes.
func Over(t, now time.Time) bool { return !t.IsZero() && t.Unix() < now.Unix() }
