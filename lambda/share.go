package lambda

import (
	"time"

	"github.com/samekey/samekey/internal/base/defaults"
)

// The lanes of an event share the event's time, so that a hanging record doesn't use up the time of
// other lanes. If no lane waits, a lane gets all the remaining time. Within a lane, a record may
// use up all the lane's time, since the record's failure would hold back the lane's later records
// anyway.
//
// All these times end when defaults.Reserve is left until the deadline: the reserve is for the last
// write and the answer.

// least is how much time must remain for a further record to begin: a handler that is cut off
// halfway is worse than a handler that never began.
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

// rounds returns the longest time for which the waiting lanes can keep the workers busy. The unit
// is the time of one record. The worst case is that a worker takes the longest lane last.
func (t turn) rounds() int {
	return t.longest + (t.behind-t.longest+t.workers-1)/t.workers
}

// share returns the part of the remaining time that a lane's handlers get. The share allows the
// same time for each record, whether of this lane or of a waiting lane. The share has a minimum: if
// there are too many records for the time, some still succeed, and the last ones may find no time
// left.
func share(left time.Duration, t turn) time.Duration {
	if t.behind == 0 {
		return left
	}
	fair := time.Duration(float64(left) * float64(t.own) / float64(t.own+t.rounds()))
	return min(left, max(fair, 2*defaults.Reserve)-grace)
}
