package lambda

import (
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// The lanes of an event share its time, so that a record that hangs doesn't use up
// the time of other lanes. If no lane waits, a lane gets all the remaining time.
// Within a lane a record may use up the lane's time, since its failure would hold
// back the lane's later records anyway.
//
// All these times are parts of defaults.Reserve, the time before the deadline for the
// last write and the answer.

// least is the shortest remaining time in which a record begins: a handler that is
// cut off halfway is worse than a handler that never began.
const least = defaults.Reserve / 2

// grace is how long a handler may return after its context has ended, including the
// write that stores its result or frees its key.
const grace = defaults.Reserve / 2

// turn is a lane's position when a worker takes it.
type turn struct {
	own     int // records of the lane
	behind  int // records of the lanes that no worker has taken yet
	longest int // records of the longest of these lanes
	workers int
}

// rounds is the longest time, in times of a record, for which waiting lanes keep the
// workers busy: the longest lane may be taken last.
func (t turn) rounds() int {
	return t.longest + (t.behind-t.longest+t.workers-1)/t.workers
}

// share returns the part of the remaining time that the contexts of a lane's
// handlers get. It is proportional to the lane's records, and leaves the same time
// for each waiting record. It has a floor, so that too many records for the time
// don't all fail; the last records may then find no time left.
func share(left time.Duration, t turn) time.Duration {
	if t.behind == 0 {
		return left
	}
	fair := time.Duration(float64(left) * float64(t.own) / float64(t.own+t.rounds()))
	return min(left, max(fair, 2*defaults.Reserve)-grace)
}
