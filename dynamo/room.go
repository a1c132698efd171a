package dynamo

import (
	"fmt"
	"net/http"

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
	n := state.Room/2 + inlined(r.Input) // names, times and texts with limits of their own
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result)
	}
	for id, j := range r.Jobs {
		n += len(id) + len(j.Kind) + len(j.Args) + len(j.Group) + len(j.Failed)
	}
	if in := r.Input; in != nil {
		n += len(in.Path) + len(in.Query) + len(in.Snapshot) + ofHeader(in.Header)
	}
	if re := r.Response; re != nil {
		n += ofHeader(re.Header)
		if r.Overflow == nil {
			n += len(re.Body)
		}
	}
	return n
}

func ofHeader(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}
