package simulation

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// progress notes that something has happened.
func (w *world) progress() { w.moved = time.Now() }

// The schedules.
const (
	sweepEvery = 30 * time.Minute
	ttlEvery   = 10 * time.Minute
)

// schedules begins what happens by the clock.
func (w *world) schedules() {
	var sweep, ttl func()
	sweep = func() {
		w.fleet.invoke(workerFunction, payload{json: []byte(`{"source":"aws.scheduler"}`)}, func([]byte, error) {})
		w.after(sweepEvery, sweep)
	}
	ttl = func() {
		w.expire()
		w.after(ttlEvery, ttl)
	}
	w.after(w.between(time.Minute, sweepEvery), sweep)
	w.after(w.between(time.Minute, ttlEvery), ttl)
}

// expire deletes expired records, as TTL does: soon or late.
func (w *world) expire() {
	for _, it := range w.db.Items(records) {
		at := seconds(it["exp_s"])
		over := time.Since(at)
		if at.IsZero() || over < 0 || !w.likely(0.3) {
			continue
		}
		switch {
		case over < ttlEvery && !w.off[ttlEarly]:
			w.counts[ttlEarly]++
		case over >= time.Hour && !w.off[ttlLate]:
			w.counts[ttlLate]++
		case over < ttlEvery:
			continue
		}
		w.note("ttl", "deletes %s, expired since %s", w.name(pkOf(it)), over.Truncate(time.Second))
		w.byTTL = true
		w.db.Expire(records, pkOf(it))
		w.byTTL = false
	}
}

// seconds reads a time in seconds; zero if there is none.
func seconds(v types.AttributeValue) time.Time {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return time.Time{}
	}
	s, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(s, 0)
}
