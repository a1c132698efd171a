package dynamo

import (
	"fmt"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/state"
)

// nothing is the record before a claim.
var nothing store.Record

// leavesRoom refuses a write of phases or jobs after which a take-over may not fit, or why
// a job is parked (state.Room). answer is next's, encoded.
func leavesRoom(prev, next *store.Record, box *item.Box, answer item.Value) error {
	if next.State != store.Open && len(next.Jobs) == 0 || !hasContents(prev, next) || atMost(next) <= maxItem-state.Room {
		return nil
	}
	v := item.Values{Box: box} // contents are stored compressed: only the item tells its size
	it := v.Encode(next, answer)
	if in := next.Input; in != nil {
		it[item.AttrRequest] = v.Input(in, in.Overflow, nil, false)
	}
	if n := itemsize.Of(it) + inlined(next.Input); n > maxItem-state.Room {
		return fmt.Errorf("dynamo: %w: an item of %d bytes: phases and jobs have %d; return and stage less",
			store.ErrTooLarge, n, maxItem-state.Room)
	}
	return nil
}

// inlined returns the size of a stored request's body in the record, at most.
func inlined(in *store.Input) int {
	if in == nil || in.Overflow != nil {
		return 0
	}
	return min(len(in.Body), maxInline)
}

// atMost returns the size of a record's item if nothing in it is compressed.
func atMost(r *store.Record) int {
	n := state.Room/2 + inlined(r.Input) + state.SizeOf(r) // Room/2: names, times and texts with limits of their own
	if r.Response != nil && r.Overflow == nil {
		n += len(r.Response.Body)
	}
	return n
}
