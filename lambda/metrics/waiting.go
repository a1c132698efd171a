package metrics

import (
	"context"

	"github.com/samekey/samekey/dynamo/stream"
)

// The gauges of what waits for people. A worker writes each of them, 0 included, every
// time it counts, so an alarm on them lasts as long as something waits.
const (
	Waiting           = "Waiting"
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
func (m *Metrics) counted(ctx context.Context, c *stream.Counted) {
	m.add(ctx, "", func(l *line) {
		l.measure(Waiting, float64(c.Count))
		l.measure(WaitingAge, float64(c.Oldest))
		for _, why := range stream.WaitingWhys() {
			l.measure(waiting[why], float64(c.ByWhy[why].Count))
		}
	})
}
