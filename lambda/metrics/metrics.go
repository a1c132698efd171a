package metrics

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
)

// Metrics writes metrics as log lines. It is safe for concurrent use.
type Metrics struct {
	app string

	mu  sync.Mutex
	out *json.Encoder
}

// New returns metrics of an application that go to w: in Lambda, standard output.
// app is the value of the dimension App. New panics if w is nil or app is empty:
// mistakes in the program, best found at cold start. A line that can't be written
// is dropped.
func New(w io.Writer, app string) *Metrics {
	if w == nil || app == "" {
		panic("metrics: New: w is nil or app is empty") //nolint:forbidigo // a mistake in the program
	}
	return &Metrics{app: app, out: json.NewEncoder(w)}
}

// Hooks returns the hooks of an engine.
func (m *Metrics) Hooks() idem.Hooks {
	count := func(name string) func(context.Context, idem.Event) {
		return func(_ context.Context, ev idem.Event) {
			m.Count(name, 1, map[string]any{"record": ev.Record, "operation": ev.ID, "route": ev.Route})
		}
	}
	return idem.Hooks{
		Claimed:   count(Claimed),
		TakenOver: count(TakenOver),
		Replayed:  count(Replayed),
		InFlight:  count(InFlight),
		Mismatch:  count(Mismatch),
		LeaseLost: count(LeaseLost),
		Stuck:     count(Stuck),
		Blocked:   count(Blocked),
		Failed:    count(Failed),
	}
}

// StreamHooks returns the hooks of drain, completer and sweep.
func (m *Metrics) StreamHooks() stream.Hooks {
	entry := func(name string) func(context.Context, stream.Entry) {
		return func(_ context.Context, e stream.Entry) {
			m.Count(name, 1, map[string]any{"record": e.Record, "operation": e.ID, "route": e.Route, "phase": e.Phase})
		}
	}
	return stream.Hooks{
		Tried: func(_ context.Context, t stream.Try) {
			if t.Outcome == "not_mine" {
				m.NotMine(t.Ticket, t.Reason)
			}
		},
		Swept: func(_ context.Context, r *stream.Report, _ error) { m.Swept(r) },
		Delivered: func(_ context.Context, d jobs.Delivery) {
			m.Count(Delivered, 1, map[string]any{"operation": d.Operation, "job": d.JobID})
		},
		Aside: func(_ context.Context, t jobs.Ticket) {
			m.Count(SetAside, 1, map[string]any{"record": t.Record(), "operation": t.Jobs})
		},
		Parked:      entry(Parked),
		GivenUp:     entry(Stuck),
		ExpiredOpen: entry(ExpiredOpen),
		JobLost:     entry(ExpiredOpen),
		Skipped: func(_ context.Context, s stream.Skipped) {
			if s.Why != stream.SkipCompanion {
				m.Count(Unreadable, 1, map[string]any{"record": s.Record, "why": s.Why})
			}
		},
	}
}

// NotMine counts a ticket whose handler wasn't found, and says why
// (completer.TicketNotMine).
func (m *Metrics) NotMine(t jobs.Ticket, why string) {
	m.Count(NotMine, 1, map[string]any{"record": t.Record(), "function": t.Function, "error": why})
}

// Swept counts what a run of a sweep has found.
func (m *Metrics) Swept(r *stream.Report) {
	for name, whys := range map[string][]stream.Why{
		Abandoned:   {stream.WhyOpen, stream.WhyNoRequest, stream.WhyExpiring},
		Undelivered: {stream.WhyUndelivered},
		Waiting:     {stream.WhyUnknown, stream.WhyStuck, stream.WhyBlocked, stream.WhyParked, stream.WhyUnreadable},
	} {
		n := 0
		for _, why := range whys {
			n += r.ByWhy[why].Count
		}
		m.Count(name, n, nil)
	}
	overdue := 0
	if r.Overdue {
		overdue = 1
	}
	m.Count(SweepOverdue, overdue, map[string]any{"pass_began": r.PassBegan, "last_pass": r.LastPass})
}

// Count writes n under a metric's name: one of [All], or the application's own. The
// properties can be searched for in the logs, they make no metrics of their own. A
// property named as the metric, "_aws" or "App" is dropped.
func (m *Metrics) Count(name string, n int, properties map[string]any) {
	type metric struct{ Name, Unit string }
	type directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metric
	}
	line := make(map[string]any, len(properties)+3)
	maps.Copy(line, properties)
	line["_aws"] = map[string]any{
		"Timestamp":         time.Now().UnixMilli(),
		"CloudWatchMetrics": []directive{{Namespace, [][]string{{"App"}}, []metric{{name, "Count"}}}},
	}
	line["App"], line[name] = m.app, n
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.out.Encode(line) // a log that can't be written is nothing to fail a request for
}
