package state

import (
	"slices"

	"github.com/samekey/samekey/idem/store"
)

// Landing is the outcome of an attempt's conditional write. The zero Landing means that the outcome
// is unknown.
type Landing int

// The landings.
const (
	Overtaken Landing = 1 + iota // another attempt holds the record, or the record is gone: stop, write nothing
	Landed                       // the record shows exactly this write
	NotYet                       // the record is unchanged
	Crossed                      // the attempt holds the record, but has also applied a later write: decide from the record
)

// Land decides from the current record whether the write from prev to next was applied.
func Land(current, prev, next *store.Record, me string) Landing {
	switch {
	case current == nil || current.State == store.None || current.Owner != me:
		// A take-over that was not applied leaves the record with its former owner.
		if current != nil && current.State != store.None && current.Owner == prev.Owner && current.Ver == prev.Ver {
			return NotYet
		}
		return Overtaken
	case current.Ver == prev.Ver+1 && SameShape(current, next):
		return Landed
	case current.Ver == prev.Ver && prev.Owner == me:
		return NotYet
	case current.Ver > prev.Ver:
		return Crossed
	default:
		return Overtaken
	}
}

// SameShape reports whether a and b are equal except for contents and times. An earlier
// write may have been applied although it was reported as failed. The next write then
// has the same version, and the shape shows which of the two writes was applied.
// Contents may differ, because a repeated Atomic can make other contents. The stored
// contents are then the valid ones.
func SameShape(a, b *store.Record) bool {
	same := a.State == b.State && a.Lease.IsZero() == b.Lease.IsZero() && len(a.Phases) == len(b.Phases) &&
		Kept(a) == Kept(b) && a.Mark == b.Mark && // Calling changes these, a renewal doesn't
		slices.Equal(a.Doubts, b.Doubts) && LookedUpInVain(a) == LookedUpInVain(b) // CallingOnce changes these, a renewal doesn't
	for i := 0; same && i < len(a.Phases); i++ {
		same = a.Phases[i].Name == b.Phases[i].Name && a.Phases[i].Intent == b.Phases[i].Intent
	}
	return same
}

// Renewal reports whether a single write, a renewal, turned the record prev into the
// record now: the lease ends later, and the owner and the shape ([SameShape]) are the
// same.
func Renewal(now, prev *store.Record) bool {
	return now.Owner == prev.Owner && now.Ver == prev.Ver+1 && now.Lease.After(prev.Lease) && SameShape(now, prev)
}
