package metrics

import (
	"context"

	"github.com/samekey/samekey/dynamo/stream"
)

// The gauges of what waits for people. A worker writes each of them, 0 included, every
// time it counts, so an alarm on them lasts as long as something waits.
const (
	WaitingUnknown    = "WaitingUnknown"
	WaitingStuck      = "WaitingStuck"
	WaitingBlocked    = "WaitingBlocked"
	WaitingParked     = "WaitingParked"
	WaitingUnreadable = "WaitingUnreadable"
	WaitingAge        = "WaitingAge"
)

var waiting = map[stream.Why]string{
	stream.WhyUnknown: WaitingUnknown, stream.WhyStuck: WaitingStuck, stream.WhyBlocked: WaitingBlocked, stream.WhyParked: WaitingParked,
	stream.WhyUnreadable: WaitingUnreadable,
}

// counted writes the gauges.
func (m *Metrics) counted(_ context.Context, c *stream.Counted) {
	m.Count(Waiting, c.Count, nil)
	m.Count(WaitingAge, int(c.Oldest), nil)
	for _, why := range stream.WaitingWhys() {
		m.Count(waiting[why], c.ByWhy[why].Count, nil)
	}
}
