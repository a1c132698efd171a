package dynamo

import (
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// nothing is an empty record. It stands for prev in a claim, because a claim has no
// earlier record.
var nothing store.Record

// headers is how many bytes are kept free for the headers of an answer.
const headers = 4 << 10

var _ store.Sizer = (*Store)(nil)

// Fits implements [store.Sizer]. Unlike leavesRoom, Fits also demands room for an
// answer.
func (s *Store) Fits(prev, next *store.Record) error {
	return leaves(prev, next, item.NewBox(item.SealOf(next).Key(), next), nil, state.Room+s.inline+headers)
}

// leavesRoom returns an error if a write of phases or jobs leaves fewer than state.Room
// bytes of the item free. A later take-over, or the reason of a parked job, needs this
// room. The parameter answer is the encoded answer of the record next.
func leavesRoom(prev, next *store.Record, box *item.Box, answer item.Value) error {
	return leaves(prev, next, box, answer, state.Room)
}

// leaves returns an error if a write of phases or jobs leaves fewer than room bytes of
// the item free.
func leaves(prev, next *store.Record, box *item.Box, answer item.Value, room int) error {
	if next.State != store.Open && len(next.Jobs) == 0 || !writesContents(prev, next) || atMost(next) <= maxItem-room {
		return nil
	}
	v := item.Values{Box: box} // contents are stored compressed, so the item must be encoded to measure it
	it := v.Encode(next, answer)
	if in := next.Input; in != nil {
		it[item.AttrRequest] = v.Input(in, in.Overflow, nil, false)
	}
	if n := itemsize.Of(it) + inlined(next.Input); n > maxItem-room {
		return fmt.Errorf("dynamo: %w: an item of %d bytes: phases and jobs have %d; return and stage less",
			store.ErrTooLarge, n, maxItem-room)
	}
	return nil
}

// inlined returns the most bytes that a stored request's body can take in the record.
func inlined(in *store.Input) int {
	if in == nil || in.Overflow != nil {
		return 0
	}
	return min(len(in.Body), maxInline)
}

// atMost returns the size that a record's item would have if nothing in it were compressed.
func atMost(r *store.Record) int {
	n := state.Room/2 + inlined(r.Input) + state.SizeOf(r) // Room/2 is for names, times and short texts
	if r.Response != nil && r.Overflow == nil {
		n += len(r.Response.Body)
	}
	return n
}
