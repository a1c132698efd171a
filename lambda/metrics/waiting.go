package metrics

import (
	"context"

	"github.com/samekey/samekey/dynamo/stream"
)

var waiting = map[stream.Why]string{
	stream.WhyUnknown: "WaitingUnknown", stream.WhyStuck: "WaitingStuck", stream.WhyBlocked: "WaitingBlocked", stream.WhyParked: "WaitingParked",
	stream.WhyUnreadable: "WaitingUnreadable",
}

// counted writes the gauges.
func (m *Metrics) counted(ctx context.Context, c *stream.Counted) {
	m.add(ctx, "", func(l *line) {
		l.measure("Waiting", float64(c.Count))
		l.measure("WaitingAge", float64(c.Oldest))
		for _, why := range stream.WaitingWhys() {
			l.measure(waiting[why], float64(c.ByWhy[why].Count))
		}
	})
}
