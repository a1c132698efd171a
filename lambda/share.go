package lambda

import "time"

// The time of an event is shared out among its lanes, so that one record that hangs
// doesn't use up what its neighbours need. A lane that nobody waits behind gets all
// that is left; within a lane a record may use up the lane's time, since whoever
// follows in it would be held back by its failure all the same.
//
// All of these are parts of the engine's Reserve, which is kept back before the
// deadline for the last write and the answer.

// least is the shortest time to begin a record with: a handler that is cut off in
// the middle is worse than one that was never begun.
func least(reserve time.Duration) time.Duration { return reserve / 2 }

// grace is how long a handler is waited for after its context has ended: for what
// it returns, and for the write that stores it or frees its key.
func grace(reserve time.Duration) time.Duration { return reserve / 2 }

// turn is a lane's position when a worker takes it.
type turn struct {
	own     int // records of the lane
	behind  int // records of the lanes that no worker has taken yet
	longest int // of these lanes, in records
	workers int
}

// rounds is for how many records' times the workers are busy with what waits, at
// most: the longest lane may be the last to be taken.
func (t turn) rounds() int {
	return t.longest + (t.behind-t.longest+t.workers-1)/t.workers
}

// share is the part of the time that is left which the contexts of a lane's handlers
// have. It is in proportion to the lane's records, and leaves as much for each that
// waits. It has a floor: too many records for the time must not fail them all, so the
// last ones may find none left.
func share(left, reserve time.Duration, t turn) time.Duration {
	if t.behind == 0 {
		return left
	}
	fair := time.Duration(float64(left) * float64(t.own) / float64(t.own+t.rounds()))
	return min(left, max(fair, 2*reserve)-grace(reserve))
}
