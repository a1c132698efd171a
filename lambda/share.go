package lambda

import (
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// A lane is a list of records that run one after the other. Each lane gets a part of the
// event's time, so that a record that hangs doesn't use up the time of other lanes. If no
// lane waits for a worker, a lane gets all the remaining time. A lane's time isn't divided
// among its records, because a record that hangs holds back the lane's later records
// anyway.
//
// The time of every lane ends defaults.Reserve before the deadline, because the last
// write and the answer need this reserve.

// least is the time that a lane must have left to begin its next record. With less
// time, the handler would be cut off halfway, which is worse than not to begin.
const least = defaults.Reserve / 2

// grace is how long a handler may still run after its context has ended. In this time the engine
// also stores the handler's result or frees the key.
const grace = defaults.Reserve / 2

// turn counts records and workers at the moment when a worker takes a lane.
type turn struct {
	own     int // records of this lane
	behind  int // records of the lanes that no worker has taken yet
	longest int // records of the longest lane that no worker has taken yet
	workers int
}

// turn.rounds returns how long the waiting lanes can keep the workers busy at most. The
// unit is the time of one record. The longest lane counts in full, because a worker may
// take it last.
func (t turn) rounds() int {
	return t.longest + (t.behind-t.longest+t.workers-1)/t.workers
}

// share returns the part of the remaining time that a lane's handlers get. Each record
// gets the same time, whether it is in this lane or in a waiting lane. But the share
// has a minimum, so that some records succeed even if the time isn't enough for all.
// The last records may then find no time left.
func share(left time.Duration, t turn) time.Duration {
	if t.behind == 0 {
		return left
	}
	fair := time.Duration(float64(left) * float64(t.own) / float64(t.own+t.rounds()))
	return min(left, max(fair, 2*defaults.Reserve)-grace)
}
