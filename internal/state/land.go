package state

import "github.com/samekey/samekey/idem/store"

// Stamp makes next the write of owner that follows prev, or the claim where prev is
// nil. Nothing else sets Owner and Ver: they fence every write.
func Stamp(next, prev *store.Record, owner string) {
	next.Owner, next.Ver = owner, 1
	if prev != nil {
		next.Ver = prev.Ver + 1
	}
}

// Landing is what became of an attempt's conditional write.
type Landing int

// The landings.
const (
	Fenced  Landing = iota // another attempt holds the record, or it is gone: stop, write nothing
	Landed                 // the record shows this very write
	NotYet                 // the record is as it was before
	Crossed                // ours, but further than this write: decide from the record
)

// Land decides what became of a write that was to turn prev into next, from the
// record as it is now.
func Land(now, prev, next *store.Record, me string) Landing {
	switch {
	case now == nil || now.State == store.None || now.Owner != me:
		// A take-over is judged before its nonce is in the record.
		if now != nil && now.State != store.None && now.Owner == prev.Owner && now.Ver == prev.Ver {
			return NotYet
		}
		return Fenced
	case now.Ver == prev.Ver+1 && SameShape(now, next):
		return Landed
	case now.Ver == prev.Ver && prev.Owner == me:
		return NotYet
	case now.Ver > prev.Ver:
		return Crossed
	default:
		return Fenced
	}
}

// SameShape tells one write of an attempt from an earlier one of the same
// version that it was told had failed, and that landed after all. Contents may
// differ: an Atomic that ran again made others, and then those stored count.
func SameShape(a, b *store.Record) bool {
	same := a.State == b.State && a.Lease.IsZero() == b.Lease.IsZero() && len(a.Phases) == len(b.Phases)
	for i := 0; same && i < len(a.Phases); i++ {
		same = a.Phases[i].Name == b.Phases[i].Name && a.Phases[i].Intent == b.Phases[i].Intent
	}
	return same
}

// Renewal reports whether now is prev after a renewal, and nothing else: no other
// write of a holder moves the end of its lease and leaves the phases.
func Renewal(now, prev *store.Record) bool {
	return now.Owner == prev.Owner && now.Ver == prev.Ver+1 && now.Lease.After(prev.Lease) && SameShape(now, prev)
}
